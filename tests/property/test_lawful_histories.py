"""No lawful history is red, in any dialect. A wide hunt: `pytest <this file> --hypothesis-profile=wide`."""

from __future__ import annotations

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from simulated import ACTIONS, Dialect, play
from think_conformance.catalogue.model import requirements
from think_conformance.checkers.base import judge
from think_conformance.history.op import History

ANY = settings(deadline=None, suppress_health_check=list(HealthCheck))

actions = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 40)), max_size=60)
dialects = st.builds(
    Dialect,
    outcome=st.booleans(),
    message_ids=st.booleans(),
    seq=st.booleans(),
    remembers=st.booleans(),
    lossy=st.booleans(),
    shape=st.sampled_from("AB"),
    slow=st.booleans(),
)

OFFERED_THEN_SENT_AGAIN = [("step", 16), ("fail", 22), ("crash", 29), ("connect", 17), ("send_again", 38)]
"""The answer to a probe is on its way when the request is sent again."""

FAILED_UNDER_ANOTHER_ID = [
    *OFFERED_THEN_SENT_AGAIN[:1],
    ("stall", 0),
    ("step", 0),
    ("fail", 2),
    ("send_again", 1),
]
"""A turn that failed after its recovery is sent again under the id that began it."""

CALLED_THEN_SENT_AGAIN = [("send_again", 1), *[("step", 0)] * 5, ("deliver", 36), ("send_again", 1)]
"""The answer to one resend is on its way when the next leaves."""

OVERTAKEN = [("send_again", 13), ("arrive", 25), ("step", 33)]
"""Two clients send one request, and the later one's arrives first."""


def states(history: History) -> dict[str, str]:
    return {v.requirement: f"{v.state}: {v.reason} {v.evidence}" for v in judge(history, requirements())}


def red(history: History, state: str = "failed") -> set[str]:
    return {v.requirement for v in judge(history, requirements()) if v.state == state}


@ANY
@given(st.booleans(), actions)
@example(False, OFFERED_THEN_SENT_AGAIN)
@example(False, FAILED_UNDER_ANOTHER_ID)
@example(True, OVERTAKEN)
def test_a_reference_is_never_red_and_never_warned(slow: bool, script: list[tuple[str, int]]) -> None:
    history = play(Dialect(slow=slow), script).history
    told = states(history)
    assert all(state.startswith("passed") for state in told.values()), told
    assert slow or "TURN-150" in told  # a slow network may lose every request


@ANY
@given(dialects, actions)
@example(Dialect(outcome=False, message_ids=False, seq=False, remembers=False), CALLED_THEN_SENT_AGAIN)
def test_another_implementation_is_never_red(dialect: Dialect, script: list[tuple[str, int]]) -> None:
    history = play(dialect, script).history
    assert red(history) == set(), states(history)
    assert red(history, "warned") <= ({"KIT-06"} if dialect.lossy else set()), states(history)
