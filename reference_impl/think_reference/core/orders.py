"""What the event at hand leads to: effects, collected in the order in which they are to be done."""

from __future__ import annotations

from think_conformance.wire.frames import ServerFrame
from think_reference.core.effects import Broadcast, Effect, Persist, Write


class Orders:
    """`now`: the time of the event, epoch seconds. `effects`: what must be done so far."""

    def __init__(self) -> None:
        self.now = 0.0
        self.effects: list[Effect] = []

    def begin(self, now: float) -> None:
        """A new event; the list handed out for the last one is no longer touched."""
        self.now, self.effects = now, []

    def do(self, *effects: Effect) -> None:
        """Add these."""
        self.effects += effects

    def persist(self, *writes: Write) -> None:
        """Add one transaction, if there is anything to write."""
        if writes:
            self.effects.append(Persist(writes))

    def tell_all(self, *frames: ServerFrame) -> None:
        """Add frames for every connection."""
        self.effects += [Broadcast(frame) for frame in frames]
