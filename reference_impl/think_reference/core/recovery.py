"""What becomes of a run that a dead process left behind: continue, retry, or settle.

Pure: rows of the journal in, a decision out (TURN-40 ... TURN-55). A row in state `running` at load
is the interruption; there is no other sign of it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from think_conformance.wire.chunks import settled
from think_conformance.wire.frames import Message
from think_reference.core.budgets import exhausted, next_attempt
from think_reference.core.ids import run_id
from think_reference.core.stream import rebuilt
from think_reference.core.turn import Turn


class Limits(Struct, frozen=True):
    """How long recovery goes on (TURN-63), and what is said when it gives up (TURN-69)."""

    max_attempts: int
    terminal_message: str


class PutBack(Struct, frozen=True):
    """The decision. ended: the interrupted run, as it is told from now on. successor: the run that
    goes on with the turn. partial: what the dead run had said, to be stored, settled."""

    ended: Turn
    successor: Turn | None
    partial: Message | None


def interrupted(turns: Iterable[Turn]) -> list[Turn]:
    """The runs that a dead process left behind, oldest first."""
    return sorted((t for t in turns if t.state == "running"), key=lambda t: (t.order, t.run))


def put_back(
    agent: str,
    turn: Turn,
    chunks: Iterable[str],
    base: Message | None,
    limits: Limits,
    *,
    taken: Container[str],
    moved_on: bool,
    now: float,
) -> PutBack:
    """Decide on one interrupted run. chunks: what is stored of it. base: the stored message it was
    extending. taken: the request ids there are. moved_on: a newer turn has started meanwhile
    (TURN-52), so this one is not resumed."""
    builder = rebuilt(turn, chunks, base)
    partial = settled(builder.message) if builder.has_content else None
    if moved_on:
        return PutBack(turn.ended("aborted"), None, partial)
    attempt = next_attempt(turn.attempt, turn.evaluated_at, progress=partial is not None, now=now)
    if exhausted(attempt, limits.max_attempts):
        return PutBack(turn.ended("error", limits.terminal_message), None, partial)
    extends = partial is not None or turn.continuation
    ids = (run_id(agent, turn.root, turn.run + 1, clash) for clash in count())
    successor = replace(
        turn,
        id=next(i for i in ids if i not in taken),
        run=turn.run + 1,
        state="queued",
        kind="continue" if extends else "retry",
        message_id=turn.message_id if extends else None,
        attempt=attempt,
        evaluated_at=now,
    )
    return PutBack(turn.ended("recovering"), successor, partial)
