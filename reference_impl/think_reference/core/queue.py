"""All turns of an agent: one place per request id, admission in order, chains by their root.

Owns the order of work: first come, first served (TURN-10); a recovery run keeps the place of its
root, so nothing newer overtakes it (TURN-58).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator

from think_reference.core.turn import Turn

MAX_WAITING = 256
"""Requests that may wait at once; more are refused, so that no client can fill the memory."""


class Turns:
    """Turns by request id. Ended ones stay, so that a resent id is never a new turn (WIRE-58)."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self._by_id: dict[str, Turn] = {}
        self._last: dict[str, str] = {}
        self._waiting: list[tuple[int, int, str]] = []
        self._open: set[str] = set()
        self._next_order = 0
        for turn in sorted(turns, key=lambda t: (t.order, t.run)):
            self.put(turn)

    def put(self, turn: Turn) -> None:
        """Add a turn or replace it by its newer state."""
        before = self._by_id.get(turn.id)
        self._by_id[turn.id] = turn
        self._next_order = max(self._next_order, turn.order + 1)
        newest = self._by_id.get(self._last.get(turn.root, ""))
        if newest is None or newest.run <= turn.run:
            self._last[turn.root] = turn.id
        place = (turn.order, turn.run, turn.id)
        if before is not None and before.state == "queued":
            self._waiting.remove(place)
        if turn.state == "queued":
            insort(self._waiting, place)
        if turn.state == "ended":
            self._open.discard(turn.id)
        else:
            self._open.add(turn.id)

    def get(self, request_id: str) -> Turn | None:
        """The turn with this request id."""
        return self._by_id.get(request_id)

    def __getitem__(self, request_id: str) -> Turn:
        return self._by_id[request_id]

    def __contains__(self, request_id: object) -> bool:
        return request_id in self._by_id

    def __iter__(self) -> Iterator[Turn]:
        return iter(self._by_id.values())

    @property
    def next_order(self) -> int:
        """The place of the next admitted turn."""
        return self._next_order

    @property
    def waiting(self) -> list[Turn]:
        """The queued turns, next one first."""
        return [self._by_id[request_id] for _, _, request_id in self._waiting]

    @property
    def next(self) -> Turn | None:
        """The queued turn that is to run next."""
        return self._by_id[self._waiting[0][2]] if self._waiting else None

    @property
    def full(self) -> bool:
        """Whether no more requests may wait."""
        return len(self._waiting) >= MAX_WAITING

    def newest_run(self, turn: Turn) -> Turn:
        """The last run of this turn's chain: its state is the state of the turn."""
        return self._by_id[self._last[turn.root]]

    def unended(self) -> list[Turn]:
        """Every turn that is queued or running, in order."""
        return sorted((self._by_id[i] for i in self._open), key=lambda t: (t.order, t.run))
