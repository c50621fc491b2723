"""The table of a turn's moves."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from think_conformance.wire.frames import Outcome
from think_reference.core.turn import LEGAL, State, Turn

TURN = Turn(id="r", root="r", order=0)
STATES = {"queued": TURN, "running": TURN.started("m"), "ended": TURN.started("m").ended("completed")}
ENDS = [(state, outcome) for state in get_args(State) for outcome in get_args(Outcome)]


@pytest.mark.parametrize(("state", "outcome"), ENDS)
def test_every_end_that_is_not_in_the_table_is_refused(state: Any, outcome: Any) -> None:
    turn = STATES[state]
    if outcome in LEGAL[state].get("ended", ()):
        assert turn.ended(outcome, "why").outcome == outcome
    else:
        with pytest.raises(AssertionError, match="no way"):
            turn.ended(outcome)


def test_a_turn_starts_once() -> None:
    assert STATES["running"].message_id == "m"
    for state in ("running", "ended"):
        with pytest.raises(AssertionError, match="no way"):
            STATES[state].started("again")


def test_only_a_queued_turn_is_skipped_and_only_a_running_one_completes() -> None:
    assert LEGAL["queued"]["ended"] == {"aborted", "skipped"}
    assert "skipped" not in LEGAL["running"]["ended"]
    assert LEGAL["ended"] == {}
