"""Checks of failed turns: green, red and grey histories."""

from __future__ import annotations

from typing import Any

import pytest

from histories import Story, answer, plain_turn, said, user

FAILS = {"model": {"t1": [[{"text": "w1 "}, {"error": "overloaded"}], [{"text": "w2 "}, "done"]]}}
FINE = {"model": {"t1": [[{"text": "w1 "}, "done"]]}}


def begun(plan: dict[str, Any] = FAILS) -> tuple[Story, str]:
    story = Story(plan=plan)
    a = story.open("a")
    story.send(a)
    story.call()
    story.start(a)
    return story, a


# ---- KIT-10 -----------------------------------------------------------------------------------


def test_a_failure_that_is_told_with_its_text_holds() -> None:
    story, a = begun()
    story.call_ends(how="error")
    story.failure(a, done=True)
    assert said("KIT-10", story.epilogue(user())) == "holds"


@pytest.mark.parametrize("outcome", ["completed", "aborted", "error"])
def test_a_failure_told_otherwise_or_without_a_word_is_broken(outcome: str) -> None:
    story, a = begun()
    story.call_ends(how="error")
    story.terminal(a, outcome=outcome)
    assert said("KIT-10", story.epilogue(user())) == "broken"


def test_a_failure_that_a_later_call_made_good_is_none() -> None:
    story, a = begun()
    story.call_ends(how="error")
    story.call()
    story.call_ends()
    story.terminal(a)
    assert said("KIT-10", story.epilogue(user(), answer("w2 "))) == "nothing"


def test_a_plain_turn_did_not_fail() -> None:
    story = Story(plan=FINE)
    plain_turn(story, [story.open("a")])
    assert said("KIT-10", story.epilogue(user(), answer("w1 "))) == "nothing"


@pytest.mark.parametrize(
    ("action", "verdict"),
    [
        ({"status": {"code": 500}}, "broken"),
        ({"cut": "reset"}, "broken"),
        ({"truncate": {"end": "reset"}}, "broken"),
        ({"truncate": {"end": "clean"}}, "nothing"),  # whether that is a failure is the target's choice
        ({"cut": "fin"}, "nothing"),
        ({"stall": {"for": 0.3}}, "nothing"),
    ],
)
def test_a_fault_that_breaks_the_answer_is_a_failure(action: dict[str, Any], verdict: str) -> None:
    story, a = begun(FINE)
    story.fault("f", action, leg="model", fires_on="")
    story.call_ends()
    story.terminal(a)
    assert said("KIT-10", story.epilogue(user(), answer("w1 "))) == verdict


# ---- WIRE-110 ---------------------------------------------------------------------------------


def failed() -> Story:
    story, a = begun()
    story.call_ends(how="error")
    story.failure(a, done=True)
    return story


def comes(story: Story, *, offered: bool = True, told: bool = True) -> Story:
    b = story.open("b")
    story.probe(b)
    if not offered:
        story.idle(b)
        return story
    story.offer(b, probe="p1")
    story.ack(b)
    if told:
        story.failure(b, done=True)
    return story


def ends(story: Story) -> Story:
    """An epilogue whose observer is offered the failed turn as well."""
    story.begin()
    name = story.observe()
    story.offer(name, probe="epilogue-1")
    story.ack(name)
    story.failure(name, done=True)
    return story.end(name, user())


def test_who_comes_later_is_told() -> None:
    assert said("WIRE-110", ends(comes(failed()))) == "holds"


def test_who_comes_later_and_is_not_offered_the_turn_is_not_told() -> None:
    assert said("WIRE-110", ends(comes(failed(), offered=False))) == "broken"


def test_who_acks_the_offer_and_hears_nothing_is_not_told() -> None:
    assert said("WIRE-110", ends(comes(failed(), told=False))) == "broken"


def test_a_newer_turn_ends_the_duty() -> None:
    story = failed()
    plain_turn(story, ["a.1"], 2)
    assert said("WIRE-110", comes(story, offered=False).epilogue(user())) == "nothing"


def test_a_turn_that_completed_is_no_failure() -> None:
    story = Story(plan=FINE)
    plain_turn(story, [story.open("a")])
    assert said("WIRE-110", comes(story, offered=False).epilogue(user(), answer("w1 "))) == "nothing"
