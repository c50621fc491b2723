"""What -k and --profile select, and how a typo is answered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from think_conformance.catalogue.model import Requirement
from think_conformance.errors import Unknown, UsageError
from think_conformance.plan import Plan
from think_conformance.scenarios.base import Scenario
from think_conformance.scenarios.selection import NESTING, by_expression, by_ids, by_profile, share


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


def test_requirements_select_what_exercises_them() -> None:
    assert [s.id for s in by_ids(SCENARIOS, ROWS, ["TURN-150"])] == ["resume.reset", "recovery.kill"]
    assert [s.id for s in by_ids(SCENARIOS, ROWS, ["TURN-43", "CANCEL-05"])] == [
        "recovery.kill",
        "control.stop",
    ]
    assert by_ids(SCENARIOS, ROWS, []) == SCENARIOS


def test_an_unknown_requirement_is_answered_with_the_nearest_id() -> None:
    with pytest.raises(Unknown, match=r"requirement `turn-43`; did you mean `TURN-43`"):
        by_ids(SCENARIOS, ROWS, ["turn-43"])


@given(st.sets(st.text("abc.", min_size=1), max_size=40), st.integers(1, 50), st.randoms())
def test_shares_are_disjoint_together_all_stable_and_even(names: set[str], n: int, chance: object) -> None:
    scenarios = [scenario(name) for name in sorted(names)]
    shares = [share(scenarios, f"{i}/{n}") for i in range(1, n + 1)]
    dealt = [s.id for one in shares for s in one]
    assert sorted(dealt) == sorted(names)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    shuffled = list(scenarios)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert [share(shuffled, f"{i}/{n}") for i in range(1, n + 1)] == shares


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/0", "-1/3", "1/3/5", "a/b", "1 / 3", "²/3"])
def test_a_share_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="give I/N, such as 1/3"):
        share(SCENARIOS, text)
