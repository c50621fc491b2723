"""Who is to blame: one contradiction is one requirement's matter."""

from __future__ import annotations

import pytest

from histories import Story, answer, user
from think_conformance.catalogue.model import requirements
from think_conformance.checkers.base import judge, load
from think_conformance.checkers.causes import own_words
from think_conformance.history.views import View


def told(*outcomes: str) -> Story:
    """`a` loses its connection, comes back, and is told these outcomes."""
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.call()
    story.start([a, b])
    story.close(a)
    again = story.open("a")
    story.probe(again)
    story.offer(again, probe="p1")
    story.call_ends()
    story.transcript(b, user(), answer("w1 "))
    for outcome in outcomes:
        story.terminal(b, outcome=outcome)
    return story.epilogue(user(), answer("w1 "))


@pytest.mark.parametrize("requirement", ["CANCEL-01", "CANCEL-13", "WIRE-153", "TURN-17", "WIRE-113"])
def test_only_a_turn_that_was_told_nothing_but_aborted_was_stopped_by_the_loss(requirement: str) -> None:
    check = load()[requirement]
    assert check(View(told("aborted").history)).said == "broken"
    assert check(View(told("completed", "aborted").history)).said == "holds"


def test_two_outcomes_are_blamed_on_those_who_speak_of_outcomes() -> None:
    verdicts = judge(told("completed", "aborted").history, requirements())
    red = {v.requirement for v in verdicts if v.state in ("failed", "warned")}
    assert red == {"TURN-150", "WIRE-85", "WIRE-206", "WIRE-209"}


def test_words_that_two_scripts_share_belong_to_nobody() -> None:
    one = [[{"text": "one "}, {"text": "both "}, {"text": " "}, "done"]]
    two = [[{"text": "and both "}, {"text": "two "}, "done"]]
    story = Story(plan={"model": {"t1": one, "t2": two}})
    a = story.open("a")
    story.send(a, 1)
    story.send(a, 2)
    assert own_words(View(story.history)) == {"case/t1": {"one "}, "case/t2": {"and both ", "two "}}
