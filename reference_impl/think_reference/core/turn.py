"""One run of a turn, as the journal keeps it, and the table of its legal moves.

A turn is a chain of runs: the first has the request id the client chose (the root), each recovery
adds a run with an id of its own (TURN-01, TURN-55). A row is never changed in place.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from think_conformance.wire.frames import Outcome

State = Literal["queued", "running", "ended"]
Kind = Literal["submit", "regenerate", "retry", "continue"]

LEGAL: dict[State, dict[State, frozenset[Outcome | None]]] = {
    "queued": {"running": frozenset({None}), "ended": frozenset({"aborted", "skipped"})},
    "running": {"ended": frozenset({"completed", "error", "aborted", "recovering"})},
    "ended": {},
}
"""From, to, and the outcomes allowed on that way (WIRE-86). `ended` has no way out."""


class Turn(Struct, frozen=True, kw_only=True):
    """The row of one request id.

    root: request id that began the chain; its runs count from 0. order: place in the queue, the
    same for a whole chain. message_ids: the user messages it answers (WIRE-60). anchor: the message
    its answer is stored behind, and the last one of its prompt (WIRE-61, WIRE-62). message_id: the
    answer's id, given at the start. body: the client's custom fields (WIRE-56). attempt and
    evaluated_at: the recovery budget (TURN-75), epoch seconds. error: text of a failure.
    """

    id: str
    root: str
    order: int
    run: int = 0
    kind: Kind = "submit"
    state: State = "queued"
    outcome: Outcome | None = None
    message_ids: tuple[str, ...] = ()
    anchor: str | None = None
    message_id: str | None = None
    body: dict[str, Any] = {}
    attempt: int = 0
    evaluated_at: float = 0.0
    error: str = ""

    @property
    def continuation(self) -> bool:
        """Whether this run extends a stored partial (WIRE-84)."""
        return self.kind == "continue"

    def started(self, message_id: str) -> Turn:
        """This turn, running."""
        return self._moved("running", None, message_id=message_id)

    def ended(self, outcome: Outcome, error: str = "") -> Turn:
        """This turn, ended."""
        return self._moved("ended", outcome, error=error)

    def _moved(self, state: State, outcome: Outcome | None, **changes: Any) -> Turn:
        allowed = LEGAL[self.state].get(state, frozenset())
        if outcome not in allowed:
            raise AssertionError(f"turn {self.id}: no way from {self.state} to {state} ({outcome})")
        return replace(self, state=state, outcome=outcome, **changes)
