"""Checks of stop and loss: green, red and grey histories."""

from __future__ import annotations

import pytest

from histories import Story, answer, plain_turn, user
from think_conformance.checkers.base import load
from think_conformance.history.views import View

CONTROL = ["CANCEL-05", "CANCEL-13", "WIRE-153", "CANCEL-01", "TURN-17"]
LOSS = ["WIRE-153", "CANCEL-01", "TURN-17", "CANCEL-13"]


def said(requirement: str, story: Story) -> str:
    return load()[requirement](View(story.history)).said


def running() -> tuple[Story, str, str]:
    """A turn whose model is held at a gate; `a` asked, `b` looks on."""
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.call()
    story.start([a, b])
    story.words([a, b], "w1 ")
    story.gate()
    return story, a, b


@pytest.mark.parametrize("requirement", CONTROL)
def test_a_plain_turn_shows_nothing(requirement: str) -> None:
    story = Story()
    plain_turn(story, [story.open("a")])
    assert said(requirement, story.epilogue(user(), answer("w1 "))) == "nothing"


def stopped(outcome: str | None) -> Story:
    story, a, b = running()
    story.cancel(b)
    story.call_ends(how="aborted")
    story.transcript([a, b], user(), answer("w1 "))
    if outcome:
        story.terminal([a, b], outcome=outcome)
    else:
        story.gives_up()
    return story.epilogue(user(), answer("w1 "))


def test_a_stop_that_aborts_holds() -> None:
    assert said("CANCEL-05", stopped("aborted")) == "holds"
    assert said("CANCEL-13", stopped("aborted")) == "holds"


def held_and_stopped(outcome: str | None, *, hangs_up: bool = True) -> Story:
    """The gate is never opened by the plan: nothing but the stop can end the turn."""
    story, a, b = running()
    story.cancel(b)
    if hangs_up:
        story.call_ends(how="aborted")
    if outcome:
        story.terminal([a, b], outcome=outcome)
    else:
        story.gives_up()
    return story.epilogue(user(), answer("w1 "))


@pytest.mark.parametrize("outcome", ["completed", "error", "skipped", None])
@pytest.mark.parametrize("requirement", ["CANCEL-05", "CANCEL-13"])
def test_a_stop_that_ends_otherwise_or_not_at_all_is_broken(requirement: str, outcome: str | None) -> None:
    assert said(requirement, held_and_stopped(outcome)) == "broken"


def test_a_stop_that_leaves_the_model_running_is_broken() -> None:
    assert said("CANCEL-05", held_and_stopped("aborted", hangs_up=False)) == "broken"


def test_a_stop_that_may_have_come_too_late_is_not_judged() -> None:
    story, a, b = running()
    story.operation("open-gate", gate="g")
    story.cancel(a)
    story.call_ends()
    story.terminal([a, b], outcome="completed")
    assert said("CANCEL-05", story.epilogue(user(), answer("w1 "))) == "nothing"


def test_a_stop_whose_connection_broke_is_not_judged() -> None:
    story, a, b = running()
    story.cancel(a)
    story.close(a)
    story.call_ends(how="aborted")
    story.terminal(b, outcome="error")
    assert said("CANCEL-05", story.epilogue(user(), answer("w1 "))) == "nothing"


def lost(outcome: str, *, how: str = "done") -> Story:
    story, a, b = running()
    story.close(a)
    story.call_ends(how=how)
    story.transcript(b, user(), answer("w1 "))
    story.terminal(b, outcome=outcome)
    return story.epilogue(user(), answer("w1 "))


@pytest.mark.parametrize("requirement", LOSS)
def test_a_turn_that_outlives_its_connection_holds(requirement: str) -> None:
    assert said(requirement, lost("completed")) == "holds"


@pytest.mark.parametrize("requirement", LOSS)
def test_a_turn_aborted_by_a_loss_is_broken(requirement: str) -> None:
    assert said(requirement, lost("aborted", how="aborted")) == "broken"


def test_a_model_call_hung_up_on_by_a_loss_is_broken() -> None:
    assert said("TURN-17", lost("completed", how="aborted")) == "broken"
    assert said("WIRE-153", lost("completed", how="aborted")) == "holds"


def test_a_crash_is_no_mere_loss() -> None:
    story, a, b = running()
    story.kill(a, b, calls=[1])
    story.restart()
    c = story.open("c")
    story.terminal(c, outcome="aborted")
    assert said("WIRE-153", story.epilogue(user(), answer("w1 "))) == "nothing"


def test_a_loss_before_the_first_sign_of_the_turn_counts() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.close(a)
    story.call()
    story.call_ends()
    assert said("WIRE-153", story.epilogue(user(), answer("w1 "))) == "holds"
