"""The decisions that a deliberate defect may replace, each behind one name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from think_conformance.wire.frames import ChatResponse
from think_reference.core.recovery import interrupted
from think_reference.core.turn import Turn


def one_terminal(frame: ChatResponse) -> list[ChatResponse]:
    """A run that ends is told once (WIRE-85)."""
    return [frame]


class Policies(Struct, frozen=True):
    """terminals: the frames that tell a live end. interrupted: the turns to put back at load."""

    terminals: Callable[[ChatResponse], list[ChatResponse]] = one_terminal
    interrupted: Callable[[Iterable[Turn]], list[Turn]] = interrupted
