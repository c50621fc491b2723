"""The outcome of one case."""

from __future__ import annotations

import pytest

from think_conformance.checkers.base import State, Verdict
from think_conformance.shell.run import Ended


@pytest.mark.parametrize(
    ("states", "missing", "state"),
    [
        (("passed", "expected-fail"), "", "expected-fail"),
        (("expected-fail", "failed"), "", "failed"),
        ((), "", "inconclusive"),
        ((), "needs: leg model", "not-applicable"),
        (("not-applicable",), "needs: leg model", "not-applicable"),
        (("not-applicable", "not-testable"), "needs: leg model", "not-testable"),
    ],
)
def test_a_case_is_as_bad_as_its_worst_verdict(states: tuple[State, ...], missing: str, state: State) -> None:
    verdicts = [Verdict("A-1", "x", one) for one in states]
    assert Ended(case="x", verdicts=verdicts, history=[], took_s=0, missing=missing).state == state
