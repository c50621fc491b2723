"""The decisions that a deliberate defect may replace, each behind one name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from think_conformance.wire.frames import ChatClear, ChatResponse, Message, Outcome, ServerFrame
from think_reference.core.effects import Broadcast, Effect, Replay, Write
from think_reference.core.prompt import Asked
from think_reference.core.queue import Turns
from think_reference.core.recovery import PutBack, interrupted
from think_reference.core.transcript import Transcript
from think_reference.core.turn import Turn

# ---- what is told -----------------------------------------------------------------------------


def one_terminal(frame: ChatResponse) -> list[ChatResponse]:
    """A run that ends is told once (WIRE-85)."""
    return [frame]


def every_chunk(frame: ChatResponse) -> list[ChatResponse]:
    """Each live chunk is sent once, in order (WIRE-83)."""
    return [frame]


def one_pass(replay: Replay) -> list[Effect]:
    """Each stored chunk is replayed once (WIRE-104)."""
    return [replay]


def only_the_unended(turns: Turns) -> list[Turn]:
    """Newcomers are told of a recovery while it is under way (WIRE-99)."""
    return turns.unended()


def all_but_the_sender(conn: int) -> list[Effect]:
    """A clear is told to the others (WIRE-77, WIRE-191)."""
    return [Broadcast(ChatClear(), frozenset({conn}))]


def silence(conn: int, request_id: str) -> list[Effect]:
    """What names no turn that could be meant is not answered (WIRE-41, WIRE-107)."""
    return []


# ---- what is done -----------------------------------------------------------------------------


def never(turn: Turn) -> str | None:
    """A request that is sent again runs nothing (WIRE-58)."""
    return None


def nothing_new(turns: Turns) -> Turn | None:
    """A probe runs nothing (WIRE-59)."""
    return None


def always(turn: Turn) -> bool:
    """A cancel stops the turn it names (CANCEL-05)."""
    return True


def no_cancel(turn: Turn) -> bool:
    """A lost connection stops nothing (WIRE-153)."""
    return False


def mere_words(text: str) -> bool:
    """What the model says stops nothing (CANCEL-14)."""
    return False


def as_it_was(outcome: Outcome) -> Outcome:
    """A turn ends as its work did."""
    return outcome


def failures(turn: Turn) -> bool:
    """A failed turn leaves a record (TURN-152)."""
    return turn.outcome == "error"


def behind_its_question(transcript: Transcript, answer: Message, anchor: str | None) -> list[Write]:
    """An answer is stored whole and once, behind its question (WIRE-61)."""
    return [transcript.store_answer(answer, anchor)]


def no_repetition(partial: Message | None) -> str:
    """A continuation adds to what is stored and says nothing of it again (TURN-54)."""
    return ""


def handed_over(decided: PutBack) -> PutBack:
    """An interrupted run is followed by its successor (WIRE-109)."""
    return decided


def emptied(transcript: Transcript) -> Transcript:
    """A cleared chat holds nothing (WIRE-190)."""
    return Transcript()


class Policies(Struct, frozen=True):
    """What is told. terminals: the frames that tell a live end. closing: the last frames of a turn, in
    order. live: the frames of a live chunk. replays: how stored chunks are replayed. withheld: who gets no
    live chunks, of those that have not acked. greeting: what a newcomer is told of the chat. answers: to
    a probe. calls: to who waits for a stream that opens. stray_ack: the answer to an ack of another id than
    that which streams. recovering: the turns of which newcomers may be told that they are
    being recovered. clears: how a clear by a connection is told. stray_cancel: the answer to a cancel of
    an unknown id.

    What is done. restored: the turns that a load finds in the journal. interrupted: those of them to put
    back. handover: what becomes of one. again: the request id of the second run that a resent request
    starts, if it starts one. revived: the turn that a probe starts, if it starts one. stops: whether a
    cancel stops the turn it names. loss: whether a lost connection stops the running turn. prompt: what
    the model is asked. obeys: whether what it says stops the turn. outcome: how a turn ends. recorded:
    whether it leaves a failure record. stores: the writes that store its answer, behind a message.
    repeats: what a continuation of a stored part says first. cleared: what a clear leaves of a
    transcript."""

    terminals: Callable[[ChatResponse], list[ChatResponse]] = one_terminal
    closing: Callable[[list[ServerFrame]], list[ServerFrame]] = list
    live: Callable[[ChatResponse], list[ChatResponse]] = every_chunk
    replays: Callable[[Replay], list[Effect]] = one_pass
    withheld: Callable[[Iterable[int]], frozenset[int]] = frozenset
    greeting: Callable[[list[Effect]], list[Effect]] = list
    answers: Callable[[list[Effect]], list[Effect]] = list
    calls: Callable[[list[Effect]], list[Effect]] = list
    stray_ack: Callable[[int, str], list[Effect]] = silence
    recovering: Callable[[Turns], list[Turn]] = only_the_unended
    clears: Callable[[int], list[Effect]] = all_but_the_sender
    stray_cancel: Callable[[int, str], list[Effect]] = silence

    restored: Callable[[Iterable[Turn]], list[Turn]] = list
    interrupted: Callable[[Iterable[Turn]], list[Turn]] = interrupted
    handover: Callable[[PutBack], PutBack] = handed_over
    again: Callable[[Turn], str | None] = never
    revived: Callable[[Turns], Turn | None] = nothing_new
    stops: Callable[[Turn], bool] = always
    loss: Callable[[Turn], bool] = no_cancel
    prompt: Callable[[list[Asked]], list[Asked]] = list
    obeys: Callable[[str], bool] = mere_words
    outcome: Callable[[Outcome], Outcome] = as_it_was
    recorded: Callable[[Turn], bool] = failures
    stores: Callable[[Transcript, Message, str | None], list[Write]] = behind_its_question
    repeats: Callable[[Message | None], str] = no_repetition
    cleared: Callable[[Transcript], Transcript] = emptied
