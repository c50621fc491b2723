"""Repeats agree: same verdict per requirement, same faults at the same ordinals."""

from __future__ import annotations

from think_conformance.checkers.agreement import flaky
from think_conformance.checkers.base import Verdict
from think_conformance.history.op import History, Record


def verdict(case: str, state: str, reason: str = "") -> Verdict:
    evidence = [3] if reason else []
    return Verdict(requirement="WIRE-104", case=case, state=state, reason=reason, evidence=evidence)  # type: ignore[arg-type]


def fired(ordinal: int) -> History:
    return [Record(0, 0.0, "proxy", "fault-fired", {"fault": "reset"}, {"ordinal": ordinal})]


def test_equal_repeats_are_left_alone() -> None:
    verdicts = [verdict("x", "passed"), verdict("x@2", "passed")]
    assert flaky(verdicts, {"x": fired(3), "x@2": fired(3)}) == verdicts


def test_different_verdicts_are_flaky_and_keep_the_failure() -> None:
    marked = flaky([verdict("x", "passed"), verdict("x@2", "failed", "a gap")], {})
    assert [v.state for v in marked] == ["flaky", "flaky"]
    assert "here failed: a gap" in marked[1].reason
    assert [v.repeats for v in marked] == [["failed", "passed"]] * 2
    assert [v.breaches for v in marked] == [[], ["a gap"]]


def test_a_fault_that_struck_elsewhere_is_flaky() -> None:
    marked = flaky([verdict("x", "passed"), verdict("x@2", "passed")], {"x": fired(3), "x@2": fired(4)})
    assert [v.state for v in marked] == ["flaky", "flaky"]
    assert [v.repeats for v in marked] == [[], []]


def test_other_scenarios_do_not_matter() -> None:
    verdicts = [verdict("x", "passed"), verdict("y", "failed")]
    assert flaky(verdicts, {"x": fired(3), "y": fired(4)}) == verdicts
