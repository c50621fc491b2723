"""Requirements and scenarios, told to a person."""

from __future__ import annotations

from think_conformance.catalogue.model import Requirement, requirements
from think_conformance.cli.explaining import WIDTH, requirement, scenario
from think_conformance.scenarios.base import load
from think_conformance.targets.defects import Defect

DEFECTS = [
    Defect("two-terminals", "tells two outcomes", ["WIRE-85", "TURN-150"]),
    Defect("slow", "is slow", ["X-1"]),
]


def test_a_requirement_with_all_that_hangs_on_it() -> None:
    lines = list(requirement(requirements()["WIRE-85"], load().values(), DEFECTS))
    text = " ".join(" ".join(lines).split())
    assert lines[0].startswith("WIRE-85  MUST  profile core  source seed: ")
    assert requirements()["WIRE-85"].sentence in text
    assert "judged by A connection that follows a request to the end gets its terminal, once." in text
    one = next(s for s in load().values() if "WIRE-85" in s.exercises)
    assert f"{one.id} {one.title}" in text
    assert "two-terminals tells two outcomes" in text
    assert "is slow" not in text


def test_what_nothing_breaks_says_so() -> None:
    lines = list(requirement(requirements()["WIRE-85"], [], []))
    assert lines[-2:] == ["broken by the deliberate defects", "  nothing yet"]


def test_what_only_the_reference_is_held_to_says_so() -> None:
    fact = Requirement(
        id="X-1", level="MUST", profile="core", source="real", sentence="It is so.", reference_only=True
    )
    assert "  Only the reference is held to this." in list(requirement(fact, [], []))


def test_a_scenario_with_its_plan_in_words() -> None:
    one = load()["control.stop-during-output"]
    lines = list(scenario(one, requirements()))
    assert lines[:2] == [one.id, f"  {one.title}"]
    assert "  4. a stops turn t1, once b has received its 2nd text-delta chunk" in lines
    text = " ".join(" ".join(lines).split())
    for ident in one.exercises:
        assert f"{ident} {requirements()[ident].sentence}" in text
    assert max(map(len, lines)) <= WIDTH
