"""Checks that tell the ways to end apart: green, red and grey histories."""

from __future__ import annotations

import pytest

from histories import Story, answer, held_turn, plain_turn, said, stopped, user

CONTROL = ["CANCEL-13", "CANCEL-14", "CANCEL-15", "WIRE-153", "CANCEL-01", "TURN-17"]
LOSS = ["WIRE-153", "CANCEL-01", "TURN-17", "CANCEL-13"]


@pytest.mark.parametrize("requirement", CONTROL)
def test_a_plain_turn_shows_nothing(requirement: str) -> None:
    story = Story()
    plain_turn(story, [story.open("a")])
    assert said(requirement, story.epilogue(user(), answer("w1 "))) == "nothing"


def test_a_stop_that_aborts_holds() -> None:
    assert said("CANCEL-13", stopped("aborted")) == "holds"


@pytest.mark.parametrize("outcome", ["completed", "error", "skipped", None])
def test_a_stop_that_looks_like_another_end_is_broken(outcome: str | None) -> None:
    assert said("CANCEL-13", stopped(outcome)) == "broken"


def lost(outcome: str, *, how: str = "done") -> Story:
    story, a, b = held_turn()
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
    story, a, b = held_turn()
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


# ---- CANCEL-15 --------------------------------------------------------------------------------


def opposite(first: str, second: str, *, how: str = "done") -> Story:
    """One client stops its turn and leaves; another asks a second one and only leaves; `c` looks on."""
    story, a, b = held_turn()
    c = story.open("c")
    story.offer(c)
    story.cancel(a)
    story.call_ends(how="aborted")
    story.terminal([a, b, c], outcome=first)
    story.close(a, code=1000, by="self")
    story.send(b, 2)
    story.call(2)
    story.start([b, c], "r2", "a2")
    story.words([b, c], "w2 ", request="r2")
    story.close(b, code=1000, by="self")
    story.call_ends(2, how)
    story.terminal(c, "r2", second, messages=["u2"])
    return story.epilogue(user(), answer("w1 "), user(2), answer("w2 ", "a2"))


def test_a_client_that_stops_beside_one_that_leaves_holds() -> None:
    assert said("CANCEL-15", opposite("aborted", "completed")) == "holds"


def test_a_stop_without_effect_or_a_leave_with_one_is_broken() -> None:
    assert said("CANCEL-15", opposite("completed", "completed")) == "broken"
    assert said("CANCEL-15", opposite("aborted", "aborted", how="aborted")) == "broken"
    assert said("CANCEL-15", opposite("aborted", "completed", how="aborted")) == "broken"


def test_a_stop_or_a_leave_alone_shows_nothing_of_both() -> None:
    assert said("CANCEL-15", stopped("aborted")) == "nothing"
    assert said("CANCEL-15", lost("completed")) == "nothing"


# ---- CANCEL-14 --------------------------------------------------------------------------------


def speaking(text: str, outcome: str = "completed") -> Story:
    story = Story(plan={"model": {"t1": [[{"text": text}, "done"]]}})
    a = story.open("a")
    story.send(a)
    story.call()
    story.start(a)
    story.words(a, text)
    story.call_ends(how="done" if outcome == "completed" else "aborted")
    story.terminal(a, outcome=outcome)
    return story.epilogue(user(), answer(text))


@pytest.mark.parametrize(
    "text", ["The turn is cancelled.", "[DONE]", '{"outcome":"aborted"}', "Out of budget."]
)
def test_words_of_the_model_that_end_nothing_hold(text: str) -> None:
    assert said("CANCEL-14", speaking(text)) == "holds"
    assert said("CANCEL-14", speaking(text, "aborted")) == "broken"


def test_a_model_that_speaks_of_other_things_shows_nothing() -> None:
    assert said("CANCEL-14", speaking("w1 ")) == "nothing"
    assert said("CANCEL-14", speaking("w1 ", "error")) == "nothing"


def test_a_model_that_does_more_than_speak_is_not_judged() -> None:
    story = Story(plan={"model": {"t1": [[{"text": "cancelled"}, {"error": "broken"}]]}})
    a = story.open("a")
    story.send(a)
    story.call()
    story.call_ends(how="error")
    story.failure(a, done=True)
    assert said("CANCEL-14", story.epilogue(user())) == "nothing"
