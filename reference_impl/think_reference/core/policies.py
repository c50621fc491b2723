"""The decisions that a deliberate defect may replace, each behind one name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from think_conformance.wire.frames import ChatResponse
from think_reference.core.effects import Effect, Replay
from think_reference.core.recovery import interrupted
from think_reference.core.turn import Turn


def one_terminal(frame: ChatResponse) -> list[ChatResponse]:
    """A run that ends is told once (WIRE-85)."""
    return [frame]


def one_pass(replay: Replay) -> list[Effect]:
    """Each stored chunk is replayed once (WIRE-104)."""
    return [replay]


def never(turn: Turn) -> str | None:
    """A request that is sent again runs nothing (WIRE-58)."""
    return None


class Policies(Struct, frozen=True):
    """terminals: the frames that tell a live end. replays: how stored chunks are replayed. restored:
    the turns that a load finds in the journal. interrupted: those of them to put back. again: the request
    id of the second run that a resent request starts, if it starts one."""

    terminals: Callable[[ChatResponse], list[ChatResponse]] = one_terminal
    replays: Callable[[Replay], list[Effect]] = one_pass
    restored: Callable[[Iterable[Turn]], list[Turn]] = list
    interrupted: Callable[[Iterable[Turn]], list[Turn]] = interrupted
    again: Callable[[Turn], str | None] = never
