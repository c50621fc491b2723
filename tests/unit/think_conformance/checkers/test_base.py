"""How findings become verdicts, and how verdicts add up."""

from __future__ import annotations

from typing import Any

import pytest

from histories import Story, answer, plain_turn, user
from think_conformance.catalogue.model import Requirement, requirements
from think_conformance.checkers.base import (
    WORST_FIRST,
    Breach,
    Check,
    Finding,
    State,
    Verdict,
    check,
    collect,
    exit_code,
    finding,
    judge,
    load,
    worst,
)
from think_conformance.errors import UsageError


def row(ident: str = "X-1", **more: Any) -> Requirement:
    defaults = {"level": "MUST", "profile": "core", "source": "seed", "sentence": "It holds."}
    return Requirement(id=ident, **{**defaults, **more})


def found(said: Any, **more: Any) -> Check:
    return check("X-1", **more)(lambda view: Finding(said, "because", (1,)))


def verdicts(story: Story, one: Check | None, requirement: Requirement | None = None) -> list[Verdict]:
    return judge(story.history, {"X-1": requirement or row()}, checks={} if one is None else {"X-1": one})


def whole(**more: Any) -> Story:
    story = Story(**more)
    plain_turn(story, [story.open("a")])
    return story.epilogue(user(), answer("w1 "))


def state(story: Story, one: Check | None, requirement: Requirement | None = None) -> State:
    (verdict,) = verdicts(story, one, requirement)
    return verdict.state


# ---- one verdict ------------------------------------------------------------------------------


def test_the_level_decides_what_broken_means() -> None:
    assert state(whole(), found("holds")) == "passed"
    assert state(whole(), found("broken")) == "failed"
    assert state(whole(), found("broken"), row(level="SHOULD")) == "warned"
    assert state(whole(), found("holds"), row(level="SHOULD")) == "passed"


def test_a_verdict_keeps_reason_and_evidence() -> None:
    (verdict,) = verdicts(whole(), found("broken"))
    assert (verdict.case, verdict.reason, verdict.evidence) == ("a-case", "because", [1])


def test_nothing_observed_is_inconclusive_only_where_the_case_exercises_it() -> None:
    assert verdicts(whole(), found("nothing")) == []
    assert state(whole(exercises=["X-1"]), found("nothing")) == "inconclusive"


def test_a_requirement_nobody_checks_is_inconclusive_where_exercised() -> None:
    assert verdicts(whole(), None) == []
    assert state(whole(exercises=["X-1"]), None) == "inconclusive"


def test_a_profile_that_is_not_claimed_is_not_applicable_where_exercised() -> None:
    assert verdicts(whole(claims=[]), found("broken")) == []
    assert state(whole(claims=[], exercises=["X-1"]), found("broken")) == "not-applicable"


def test_facts_are_judged_on_the_reference_alone() -> None:
    fact = row(reference_only=True)
    assert state(whole(exercises=["X-1"]), found("broken"), fact) == "not-applicable"
    assert state(whole(exercises=["X-1"], facts=True), found("broken"), fact) == "failed"


def test_claims_and_exercises_can_be_given() -> None:
    story = whole(claims=[])
    (verdict,) = judge(story.history, {"X-1": row()}, ["core"], ["X-1"], {"X-1": found("nothing")})
    assert verdict.state == "inconclusive"


def test_a_check_that_throws_is_inconclusive_in_one_line() -> None:
    @check("X-1")
    def throws(view: object) -> Finding:
        raise KeyError("first\nsecond")

    (verdict,) = verdicts(whole(), throws)
    assert verdict.state == "inconclusive"
    assert "KeyError" in verdict.reason
    assert "\n" not in verdict.reason


# ---- what makes a pass worthless --------------------------------------------------------------


def doubtful(kind: str) -> Story:
    story = Story()
    a = story.open("a")
    plain_turn(story, [a])
    match kind:
        case "never fired":
            story.fault("late", {"cut": "reset"})
        case "not carried out":
            story.fault("late", {"cut": "reset"}, fires_on=a, outcome="timeout")
        case "not played":
            story.gives_up()
        case "not of the plan":
            story.record("model", "fail", {}, {"reason": "a prompt without a marker"})
    return story.epilogue(user(), answer("w1 "))


@pytest.mark.parametrize("kind", ["never fired", "not carried out", "not played", "not of the plan"])
def test_a_plan_that_did_not_happen_passes_nothing(kind: str) -> None:
    assert state(doubtful(kind), found("holds")) == "inconclusive"
    assert state(doubtful(kind), found("broken")) == "failed"
    assert state(doubtful(kind), found("broken"), row(level="SHOULD")) == "warned"


def test_a_fault_of_the_plan_that_was_not_even_armed_never_fired() -> None:
    story = whole(plan={"faults": [{"id": "late", "leg": "client", "do": [{"drop": True}]}]})
    (verdict,) = verdicts(story, found("holds"))
    assert (verdict.state, verdict.reason) == ("inconclusive", "the fault late never fired")


@pytest.mark.parametrize("said", ["holds", "broken"])
def test_what_the_kit_did_not_keep_is_nobodys_failure(said: str) -> None:
    story = whole()
    story.record("client", "frame-in", {"client": "a", "connection": "a.1"}, {"truncated": True, "size": 9})
    (verdict,) = verdicts(story, found(said))
    assert verdict.state == "inconclusive"
    assert (
        verdict.reason == "not all was observed: a record `frame-in` of 9 bytes is more than a history keeps"
    )


def test_a_model_call_outside_the_plan_is_named() -> None:
    (verdict,) = verdicts(doubtful("not of the plan"), found("holds"))
    assert verdict.reason == "a model call was not of the plan: a prompt without a marker"


# ---- what the target refused ------------------------------------------------------------------


def refused(**more: Any) -> Story:
    """A whole case, but for its configuration."""
    story = Story(**more)
    story.record("run", "fail", {}, {"reason": "the agent could not be configured: no such method"})
    plain_turn(story, [story.open("a")])
    return story.epilogue(user(), answer("w1 "))


@pytest.mark.parametrize("said", ["holds", "broken", "nothing"])
@pytest.mark.parametrize("level", ["MUST", "SHOULD"])
def test_what_a_refused_method_keeps_from_being_tested_is_not_testable(said: str, level: str) -> None:
    (verdict,) = verdicts(refused(exercises=["X-1"]), found(said), row(level=level))
    assert (verdict.state, verdict.evidence) == ("not-testable", [2])
    assert "`configure`" in verdict.reason
    assert "no such method" in verdict.reason


def test_nothing_else_of_such_a_case_is_judged() -> None:
    assert verdicts(refused(), found("broken")) == []


def test_what_is_not_claimed_needs_nothing() -> None:
    assert state(refused(exercises=["X-1"], claims=[]), found("broken")) == "not-applicable"


def unquiet(kind: str) -> Story:
    story = Story()
    plain_turn(story, [story.open("a")])
    match kind:
        case "deadline":
            return story.epilogue(idle=False)
        case "cut short":
            story.begin()
        case "open call":
            story.call()
            return story.epilogue()
    return story


@pytest.mark.parametrize("kind", ["no epilogue", "deadline", "cut short", "open call"])
def test_without_quiet_nothing_that_needs_it_passes(kind: str) -> None:
    assert state(unquiet(kind), found("holds", needs_quiet=True)) == "inconclusive"
    assert state(unquiet(kind), found("holds")) == "passed"
    assert state(unquiet(kind), found("broken", needs_quiet=True)) == "failed"


def test_a_history_without_a_head_is_refused() -> None:
    with pytest.raises(UsageError, match="case record"):
        judge([], {})
    headless = Story().history[1:]
    with pytest.raises(UsageError, match="case record"):
        judge(headless, {})


# ---- findings and registration ----------------------------------------------------------------


def test_a_finding_tells_the_first_breach_and_how_many_more() -> None:
    both = finding([Breach("one", (1,)), Breach("two", (2,))], seen=True, nothing="-")
    assert both == Finding("broken", "one (and 1 more)", (1,), ("one", "two"))
    assert finding([], seen=True, nothing="-").said == "holds"
    assert finding([], seen=False, nothing="why") == Finding("nothing", "why")


def test_what_binds_only_some_targets_is_void_for_others_and_doubted_where_the_play_was_cut_short() -> None:
    story = Story(exercises=["X-1"])
    a = story.open("a")
    assert state(story, found("void")) == "not-applicable"
    assert state(Story(exercises=["X-1"], facts=True), found("void")) == "inconclusive"
    story.close(a)
    story.gives_up()
    assert state(story, found("void")) == "inconclusive"


def test_two_checks_of_one_requirement_are_refused() -> None:
    with pytest.raises(ValueError, match="X-1"):
        collect([found("holds"), found("broken")])


def test_every_row_has_a_check_and_every_check_a_row() -> None:
    assert set(load()) == set(requirements())


# ---- adding up --------------------------------------------------------------------------------


def verdict(requirement: str, state: State) -> Verdict:
    return Verdict(requirement, "c", state)


def test_the_order_of_states_is_total() -> None:
    assert len(set(WORST_FIRST)) == 9
    assert worst(reversed(WORST_FIRST)) == "failed"
    assert worst(["passed", "not-applicable", "warned"]) == "warned"
    assert worst([]) == "inconclusive"


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ([], 2),
        (["not-applicable"], 2),
        (["passed", "not-applicable", "warned", "expected-fail"], 0),
        (["passed", "inconclusive"], 2),
        (["failed", "inconclusive"], 1),
        (["passed", "not-testable"], 1),
        (["passed", "unexpected-pass"], 1),
        (["passed", "flaky"], 1),
    ],
)
def test_exit_codes(states: list[State], code: int) -> None:
    assert exit_code(verdict("A", s) for s in states) == code
