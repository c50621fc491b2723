"""No lawful history is red, in any dialect."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulated import ACTIONS, Dialect, play
from think_conformance.catalogue.model import requirements
from think_conformance.checkers.base import judge
from think_conformance.history.op import History

FAST = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

actions = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 40)), max_size=60)
dialects = st.builds(
    Dialect,
    outcome=st.booleans(),
    message_ids=st.booleans(),
    seq=st.booleans(),
    remembers=st.booleans(),
    lossy=st.booleans(),
    shape=st.sampled_from("AB"),
)


def states(history: History) -> dict[str, str]:
    return {v.requirement: f"{v.state}: {v.reason} {v.evidence}" for v in judge(history, requirements())}


def red(history: History, state: str = "failed") -> set[str]:
    return {v.requirement for v in judge(history, requirements()) if v.state == state}


@FAST
@given(actions)
def test_a_reference_is_never_red_and_never_warned(script: list[tuple[str, int]]) -> None:
    history = play(Dialect(), script).history
    told = states(history)
    assert all(state.startswith("passed") for state in told.values()), told
    assert told["TURN-150"].startswith("passed")


@FAST
@given(dialects, actions)
def test_another_implementation_is_never_red(dialect: Dialect, script: list[tuple[str, int]]) -> None:
    history = play(dialect, script).history
    assert red(history) == set(), states(history)
    assert red(history, "warned") <= ({"KIT-06"} if dialect.lossy else set()), states(history)
