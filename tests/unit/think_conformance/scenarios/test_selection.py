"""What -k and --profile select, and how a typo is answered."""

from __future__ import annotations

import pytest

from think_conformance.catalogue.model import Requirement
from think_conformance.errors import Unknown, UsageError
from think_conformance.plan import Plan
from think_conformance.scenarios.base import Scenario
from think_conformance.scenarios.selection import NESTING, by_expression, by_profile


def scenario(ident: str, *exercises: str) -> Scenario:
    return Scenario(id=ident, title=ident, exercises=exercises, plan=Plan(version=1))


def row(ident: str, profile: str) -> Requirement:
    return Requirement(id=ident, level="MUST", profile=profile, source="seed", sentence="s")  # type: ignore[arg-type]


SCENARIOS = [
    scenario("resume.reset", "WIRE-104", "TURN-150"),
    scenario("recovery.kill", "TURN-43", "TURN-150"),
    scenario("control.stop", "CANCEL-05"),
]
ROWS = {
    r.id: r
    for r in (
        row("WIRE-104", "resume"),
        row("TURN-150", "core"),
        row("TURN-43", "recovery"),
        row("CANCEL-05", "control"),
    )
}

EXPRESSIONS = {
    "resume": ["resume.reset"],
    "RESUME": ["resume.reset"],
    "turn-150": ["resume.reset", "recovery.kill"],
    "TURN-150 and not kill": ["resume.reset"],
    "not TURN-150": ["control.stop"],
    "stop or kill": ["recovery.kill", "control.stop"],
    "(stop or kill) and TURN-43": ["recovery.kill"],
    "stop or kill and TURN-43": ["recovery.kill", "control.stop"],
    "not not stop": ["control.stop"],
    "not (resume or stop)": ["recovery.kill"],
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_selects(expression: str) -> None:
    assert [s.id for s in by_expression(SCENARIOS, expression)] == EXPRESSIONS[expression]


@pytest.mark.parametrize("expression", ["", "and", "stop and", "(stop", "stop)", "not", "stop kill", "()"])
def test_a_broken_expression_is_refused(expression: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        by_expression(SCENARIOS, expression)


@pytest.mark.parametrize("deep", ["not " * 100_000 + "stop", "(" * 100_000 + "stop" + ")" * 100_000])
def test_an_expression_without_end_is_refused(deep: str) -> None:
    with pytest.raises(UsageError, match="nested more than"):
        by_expression(SCENARIOS, deep)


def test_an_expression_as_deep_as_allowed_is_played() -> None:
    negations = "not " * (NESTING - 1 - NESTING % 2)
    assert by_expression(SCENARIOS, negations + "stop") == SCENARIOS[:2]
    assert by_expression(SCENARIOS, "stop" + " or stop" * 5000) == SCENARIOS[2:]


def test_an_unknown_word_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(Unknown, match=r"`WIRE-1044`; did you mean `WIRE-104`"):
        by_expression(SCENARIOS, "WIRE-1044")


def test_a_part_of_a_requirement_id_is_no_match() -> None:
    with pytest.raises(Unknown, match="TURN-15"):
        by_expression(SCENARIOS, "TURN-15")


def test_profiles_select_what_exercises_them() -> None:
    assert [s.id for s in by_profile(SCENARIOS, ROWS, ["core"])] == ["resume.reset", "recovery.kill"]
    assert [s.id for s in by_profile(SCENARIOS, ROWS, ["resume", "control"])] == [
        "resume.reset",
        "control.stop",
    ]
    assert by_profile(SCENARIOS, ROWS, []) == SCENARIOS


def test_an_unknown_profile_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(Unknown, match=r"profile `contrl`; did you mean `control`"):
        by_profile(SCENARIOS, ROWS, ["contrl"])
