"""Which scenarios prove a defect, and what their verdicts say of it."""

from __future__ import annotations

from think_conformance.plan import Plan
from think_conformance.scenarios.base import Scenario, load
from think_conformance.scenarios.proof import (
    OTHER,
    OTHERS,
    PER_REQUIREMENT,
    Proof,
    exercising,
    proving,
    table,
)


def one(ident: str, exercises: str) -> Scenario:
    return Scenario(id=ident, title="", exercises=tuple(exercises.split()), plan=Plan(version=1))


def proof(breaks: str, red: str, untested: str = "") -> Proof:
    return Proof(
        defect="d",
        breaks=frozenset(breaks.split()),
        red=frozenset(red.split()),
        untested=frozenset(untested.split()),
        cases=1,
        exercising=1,
    )


def test_what_is_red_as_it_should_proves_the_defect() -> None:
    assert proof("A B", "A B").wrong == ""


def test_what_is_not_red_or_red_without_leave_is_named() -> None:
    assert proof("A", "").wrong == "nothing turned red"
    assert proof("A B C", "A").wrong == "not red: B, C"
    assert proof("A", "A C B").wrong == "red and not its own: B, C"
    assert proof("A B", "A C").wrong == "not red: B; red and not its own: C"


def test_what_could_not_be_tested_is_no_proof() -> None:
    assert proof("A", "", "A").wrong == "not red: A; not testable with it: A"
    assert proof("A", "A", "B").wrong == "not testable with it: B"


def test_all_that_exercise_what_a_defect_breaks_are_known() -> None:
    scenarios = [one("s1", "A"), one("s2", "B"), one("s3", "A B C")]
    assert [s.id for s in exercising(["A", "C"], scenarios)] == ["s1", "s3"]


def test_every_broken_requirement_has_its_scenarios_and_the_rarest_come_first() -> None:
    common = [one(f"common-{n}", "A") for n in range(9)]
    chosen = proving(["A", "B"], [*common, one("rare", "A B"), one("other", "C")])
    assert [s.id for s in chosen] == [*(f"common-{n}" for n in range(PER_REQUIREMENT - 1)), "rare"]


def test_a_requirement_has_no_more_scenarios_than_it_needs() -> None:
    scenarios = [one(f"s{n}", "A") for n in range(9)]
    assert len(proving(["A"], scenarios)) == PER_REQUIREMENT


def test_the_fixed_sample_is_there_and_tops_up_what_is_chosen_already() -> None:
    known = load()
    assert set(OTHERS) <= set(known)
    alone = [s.id for s in proving(["WIRE-98"], known.values())]
    assert set(OTHERS[:OTHER]) <= set(alone)
    both = [s.id for s in proving(["CANCEL-05", "KIT-02", "TURN-16"], known.values())]
    assert len(set(both) & set(OTHERS)) >= OTHER


def test_every_requirement_of_the_catalogue_can_be_shown() -> None:
    known = load()
    for ident in {i for s in known.values() for i in s.exercises}:
        assert any(ident in s.exercises for s in proving([ident], known.values())), ident


def test_the_table_marks_what_is_due_and_what_is_not() -> None:
    rows = table([proof("A B", "A C")], ["A", "B", "C", "D"]).splitlines()
    assert rows[0] == "| | d |"
    assert [row.split("|")[1:3] for row in rows[2:]] == [
        [" A ", " ● "],
        [" B ", " – "],
        [" C ", " ! "],
        [" D ", "   "],
    ]
