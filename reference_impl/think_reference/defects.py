"""Deliberate faults, to prove that checks can fail: each replaces one policy of the core."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from think_conformance.wire.codec import loads
from think_conformance.wire.frames import ChatClear, ChatResponse, Message, Outcome, StreamPending
from think_reference.core.effects import Broadcast, Effect, Replay, Send, Write
from think_reference.core.policies import Policies
from think_reference.core.prompt import Asked
from think_reference.core.queue import Turns
from think_reference.core.recovery import PutBack
from think_reference.core.stream import empty_terminal, replay_frame
from think_reference.core.transcript import Transcript, text_of
from think_reference.core.turn import Turn


class Defect(Struct, frozen=True):
    """policies: the core's decisions with one replaced. breaks: the requirement ids that must turn red."""

    name: str
    summary: str
    policies: Policies
    breaks: tuple[str, ...]


# ---- what is told -----------------------------------------------------------------------------


def _aborted_after_completed(frame: ChatResponse) -> list[ChatResponse]:
    if frame.outcome != "completed":
        return [frame]
    return [frame, replace(frame, outcome="aborted")]


def _no_end_of_a_continuation(frame: ChatResponse) -> list[ChatResponse]:
    return [] if frame.continuation and frame.outcome == "completed" else [frame]


def _stopped_twice(frame: ChatResponse) -> list[ChatResponse]:
    return [frame, frame] if frame.continuation and frame.outcome == "aborted" else [frame]


def _skipped_as_aborted(frame: ChatResponse) -> list[ChatResponse]:
    return [replace(frame, outcome="aborted") if frame.outcome == "skipped" else frame]


def _without_the_end_of_a_text(frame: ChatResponse) -> list[ChatResponse]:
    return [] if loads(frame.body)["type"] == "text-end" else [frame]


def _each_chunk_twice(replay: Replay) -> list[Effect]:
    twice = (seq for seq in range(len(replay.chunks)) for _ in range(2))
    return [Send(replay.conn, replay_frame(replay, seq)) for seq in twice]


def _nobody(offered: Iterable[int]) -> frozenset[int]:
    return frozenset()


def _not_that_a_turn_waits(greeting: list[Effect]) -> list[Effect]:
    return [e for e in greeting if not (isinstance(e, Send) and isinstance(e.frame, StreamPending))]


def _twice(answers: list[Effect]) -> list[Effect]:
    return answers * 2


def _nothing(effects: list[Effect]) -> list[Effect]:
    return []


def _told_to_all(conn: int) -> list[Effect]:
    return [Broadcast(ChatClear())]


def _told_to_none(conn: int) -> list[Effect]:
    return []


def _answered(conn: int, request_id: str) -> list[Effect]:
    return [Send(conn, empty_terminal(request_id))]


# ---- what is done -----------------------------------------------------------------------------


def _without_the_queue(turns: Iterable[Turn]) -> list[Turn]:
    return [turn for turn in turns if turn.state != "queued"]


def _nothing_to_put_back(turns: Iterable[Turn]) -> list[Turn]:
    return []


def _without_successor(decided: PutBack) -> PutBack:
    return replace(decided, successor=None)


def _once_more_when_ended(turn: Turn) -> str | None:
    return f"{turn.id}-again" if turn.state == "ended" else None


def _the_last_completed(turns: Turns) -> Turn | None:
    last = max(turns, key=lambda turn: turn.order, default=None)
    if last is None or last.outcome != "completed" or last.run or last.id.endswith("-again"):
        return None
    ident = f"{last.id}-again"
    return replace(
        last, id=ident, root=ident, order=turns.next_order, state="queued", outcome=None, message_id=None
    )


def _no(turn: Turn) -> bool:
    return False


def _yes(turn: Turn) -> bool:
    return True


def _with_an_order(prompt: list[Asked]) -> list[Asked]:
    return [*prompt, {"role": "user", "content": "Be brief."}]


def _cancelled(text: str) -> bool:
    return "cancelled" in text


def _no_failure(outcome: Outcome) -> Outcome:
    return "completed" if outcome == "error" else outcome


def _without_the_last_word(transcript: Transcript, answer: Message, anchor: str | None) -> list[Write]:
    *parts, last = answer["parts"] or [{}]
    if last.get("type") == "text":
        last = {**last, "text": " ".join(last["text"].split()[:-1])}
    return [transcript.store_answer({**answer, "parts": [*parts, last]}, anchor)]


def _with_a_copy(transcript: Transcript, answer: Message, anchor: str | None) -> list[Write]:
    copy = {**answer, "id": f"{answer['id']}-copy"}
    return [transcript.store_answer(message, anchor) for message in (answer, copy)]


def _at_the_end(transcript: Transcript, answer: Message, anchor: str | None) -> list[Write]:
    return [transcript.store_answer(answer, None)]


def _in_place_of_the_question(transcript: Transcript, answer: Message, anchor: str | None) -> list[Write]:
    stored = transcript.store_answer(answer, anchor)
    return [stored] if anchor is None else [stored, transcript.drop(anchor)]


def _what_is_stored(partial: Message | None) -> str:
    return text_of(partial) if partial is not None else ""


def _as_it_was(transcript: Transcript) -> Transcript:
    return transcript


_OF_A_CRASH = ("TURN-29", "TURN-41", "TURN-42", "TURN-43", "TURN-46", "TURN-150", "WIRE-119")
"""What is red when an interrupted turn is not run again."""

DEFECTS = {
    defect.name: defect
    for defect in (
        Defect(
            "two-terminals",
            "after the completed terminal of a turn, the same request is also told to be aborted",
            Policies(terminals=_aborted_after_completed),
            ("WIRE-85", "WIRE-206", "WIRE-209", "TURN-150"),
        ),
        Defect(
            "keeps-the-end-to-itself",
            "the end of a turn that goes on after a crash is told to nobody who is connected",
            Policies(terminals=_no_end_of_a_continuation),
            ("WIRE-85", "KIT-12"),
        ),
        Defect(
            "tells-a-stop-twice",
            "the stop of a turn that went on after a crash is told twice",
            Policies(terminals=_stopped_twice),
            ("WIRE-156", "WIRE-209"),
        ),
        Defect(
            "takes-skipped-for-aborted",
            "a turn that never ran because the chat was cleared is told to be aborted",
            Policies(terminals=_skipped_as_aborted),
            ("WIRE-190",),
        ),
        Defect(
            "terminal-before-transcript",
            "the end of a turn is told before its stored answer",
            Policies(closing=lambda frames: frames[::-1]),
            ("WIRE-93",),
        ),
        Defect(
            "loses-a-live-chunk",
            "the chunk that ends a text is never sent live",
            Policies(live=_without_the_end_of_a_text),
            ("WIRE-83", "WIRE-104"),
        ),
        Defect(
            "doubles-replay",
            "an ack is answered with each stored chunk twice",
            Policies(replays=_each_chunk_twice),
            ("WIRE-104",),
        ),
        Defect(
            "live-chunk-before-ack",
            "who was offered a stream gets its live chunks before the ack",
            Policies(withheld=_nobody),
            ("WIRE-105",),
        ),
        Defect(
            "silent-about-a-waiting-turn",
            "who connects while a turn is accepted and not streaming is not told of it",
            Policies(greeting=_not_that_a_turn_waits),
            ("WIRE-98",),
        ),
        Defect(
            "answers-a-probe-twice",
            "each resume request gets its answer twice",
            Policies(answers=_twice),
            ("WIRE-102",),
        ),
        Defect(
            "forgets-who-waits",
            "who was told that a turn waits is not offered its stream",
            Policies(calls=_nothing),
            ("WIRE-103",),
        ),
        Defect(
            "answers-a-stray-ack",
            "an ack of another id than that of the active stream is answered",
            Policies(stray_ack=_answered),
            ("WIRE-107",),
        ),
        Defect(
            "status-stuck-after-restart",
            "a turn that went on after a crash is told to be recovering for ever, to whoever connects",
            Policies(recovering=list),
            ("TURN-151", "WIRE-181"),
        ),
        Defect(
            "clears-unseen",
            "that the chat was cleared is told to nobody",
            Policies(clears=_told_to_none),
            ("WIRE-77",),
        ),
        Defect(
            "tells-the-one-who-clears",
            "that the chat was cleared is also told to the one who did it",
            Policies(clears=_told_to_all),
            ("WIRE-191",),
        ),
        Defect(
            "answers-a-stray-stop",
            "a stop of an unknown request is answered",
            Policies(stray_cancel=_answered),
            ("WIRE-41",),
        ),
        Defect(
            "no-terminal-after-crash",
            "a turn that a crash interrupted is neither resumed nor ended, and a probe says idle",
            Policies(interrupted=_nothing_to_put_back),
            (*_OF_A_CRASH, "TURN-48", "KIT-05", "KIT-06", "KIT-07"),
        ),
        Defect(
            "recovery-without-handover",
            "an interrupted turn is told to be recovering, and no run takes it over",
            Policies(handover=_without_successor),
            (*_OF_A_CRASH, "WIRE-183"),
        ),
        Defect(
            "forgets-queued-turn",
            "a turn that waits in the queue when the process dies is never heard of again",
            Policies(restored=_without_the_queue),
            ("TURN-16", "TURN-150", "WIRE-119"),
        ),
        Defect(
            "repeats-itself-after-a-crash",
            "a turn that goes on after a crash says again what it had said",
            Policies(repeats=_what_is_stored),
            ("KIT-08",),
        ),
        Defect(
            "reruns-resent-request",
            "a request that is sent again after it ended starts a second run, under an id of its own",
            Policies(again=_once_more_when_ended),
            ("KIT-02", "WIRE-58"),
        ),
        Defect(
            "reruns-when-probed",
            "who asks for a stream when the last turn is completed makes it run once more",
            Policies(revived=_the_last_completed),
            ("KIT-02", "KIT-03", "TURN-151", "WIRE-58", "WIRE-59", "WIRE-113", "WIRE-119"),
        ),
        Defect(
            "ignores-cancel",
            "a stop has no effect",
            Policies(stops=_no),
            ("CANCEL-05", "CANCEL-09", "CANCEL-13", "CANCEL-15", "WIRE-150", "WIRE-155"),
        ),
        Defect(
            "loss-is-cancel",
            "a connection that is lost stops the turn that runs",
            Policies(loss=_yes),
            ("CANCEL-01", "CANCEL-13", "CANCEL-15", "TURN-17", "WIRE-112", "WIRE-153"),
        ),
        Defect(
            "puts-words-behind-the-question",
            "a prompt does not end with the user's message",
            Policies(prompt=_with_an_order),
            ("WIRE-62",),
        ),
        Defect(
            "obeys-the-model",
            "a model that says that the turn is cancelled has it cancelled",
            Policies(obeys=_cancelled),
            ("CANCEL-14",),
        ),
        Defect(
            "error-shaped-success",
            "a turn whose model failed is told to be completed",
            Policies(outcome=_no_failure),
            ("KIT-10",),
        ),
        Defect(
            "forgets-a-failure",
            "who comes after a turn has failed is not told of it",
            Policies(recorded=_no),
            ("WIRE-110",),
        ),
        Defect(
            "loses-last-delta",
            "the stored answer lacks its last word",
            Policies(stores=_without_the_last_word),
            ("KIT-04",),
        ),
        Defect(
            "stores-an-answer-twice",
            "each answer is stored a second time, under another id",
            Policies(stores=_with_a_copy),
            ("KIT-03",),
        ),
        Defect(
            "appends-answers",
            "an answer is stored behind whatever is there, not behind its question",
            Policies(stores=_at_the_end),
            ("KIT-09",),
        ),
        Defect(
            "forgets-a-question",
            "an answer takes the place of its question",
            Policies(stores=_in_place_of_the_question),
            ("KIT-01",),
        ),
        Defect(
            "clear-forgets-to-forget",
            "the messages of a cleared chat are still there",
            Policies(cleared=_as_it_was),
            ("WIRE-192",),
        ),
    )
}
