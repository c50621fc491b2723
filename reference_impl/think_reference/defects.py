"""Deliberate faults, to prove that checks can fail: each replaces one policy of the core."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from think_conformance.wire.frames import ChatResponse
from think_reference.core.effects import Effect, Replay, Send
from think_reference.core.policies import Policies
from think_reference.core.stream import replay_frame
from think_reference.core.turn import Turn


class Defect(Struct, frozen=True):
    """policies: the core's decisions with one replaced. breaks: the requirement ids that must turn red."""

    name: str
    summary: str
    policies: Policies
    breaks: tuple[str, ...]


def _aborted_after_completed(frame: ChatResponse) -> list[ChatResponse]:
    if frame.outcome != "completed":
        return [frame]
    return [frame, replace(frame, outcome="aborted")]


def _each_chunk_twice(replay: Replay) -> list[Effect]:
    twice = (seq for seq in range(len(replay.chunks)) for _ in range(2))
    return [Send(replay.conn, replay_frame(replay, seq)) for seq in twice]


def _without_the_queue(turns: Iterable[Turn]) -> list[Turn]:
    return [turn for turn in turns if turn.state != "queued"]


def _once_more_when_ended(turn: Turn) -> str | None:
    return f"{turn.id}-again" if turn.state == "ended" else None


def _nothing_to_put_back(turns: Iterable[Turn]) -> list[Turn]:
    return []


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
            "no-terminal-after-crash",
            "a turn that a crash interrupted is neither resumed nor ended, and a probe says idle",
            Policies(interrupted=_nothing_to_put_back),
            (
                "TURN-29",
                "TURN-41",
                "TURN-42",
                "TURN-43",
                "TURN-46",
                "TURN-48",
                "TURN-150",
                "WIRE-119",
                "KIT-05",
                "KIT-06",
                "KIT-07",
            ),
        ),
        Defect(
            "doubles-replay",
            "an ack is answered with each stored chunk twice",
            Policies(replays=_each_chunk_twice),
            ("WIRE-104",),
        ),
        Defect(
            "forgets-queued-turn",
            "a turn that waits in the queue when the process dies is never heard of again",
            Policies(restored=_without_the_queue),
            ("TURN-16", "TURN-150", "WIRE-119"),
        ),
        Defect(
            "reruns-resent-request",
            "a request that is sent again after it ended starts a second run, under an id of its own",
            Policies(again=_once_more_when_ended),
            ("KIT-02", "WIRE-58"),
        ),
    )
}
