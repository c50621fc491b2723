"""Checks of stop: green, red and grey histories."""

from __future__ import annotations

import pytest

from histories import Story, answer, held_turn, plain_turn, said, stopped, user
from think_conformance.wire.frames import ChatResponse

STOP = ["CANCEL-05", "CANCEL-09", "WIRE-155", "WIRE-156", "WIRE-150", "WIRE-41"]


@pytest.mark.parametrize("requirement", STOP)
def test_a_plain_turn_shows_nothing(requirement: str) -> None:
    story = Story()
    plain_turn(story, [story.open("a")])
    assert said(requirement, story.epilogue(user(), answer("w1 "))) == "nothing"


# ---- CANCEL-05 --------------------------------------------------------------------------------


def test_a_stop_that_aborts_holds() -> None:
    assert said("CANCEL-05", stopped("aborted")) == "holds"


@pytest.mark.parametrize("outcome", ["completed", "error", "skipped", None])
def test_a_stop_that_ends_otherwise_or_not_at_all_is_broken(outcome: str | None) -> None:
    assert said("CANCEL-05", stopped(outcome)) == "broken"


def test_a_stop_that_leaves_the_model_running_is_broken() -> None:
    assert said("CANCEL-05", stopped("aborted", hangs_up=False)) == "broken"


def left_running(*, waits: bool) -> Story:
    """The turn is told to be aborted; its model is not hung up on and answers when the gates are opened at
    the end of the case."""
    story, a, b = held_turn(plan={"operations": [{"do": "stop"}, {"do": "wait"}]})
    story.cancel(b)
    story.terminal([a, b], outcome="aborted")
    if waits:
        story.passes(7)
        story.operation("wait", "info", number=1)
    story.begin()
    story.call_ends(how="done")
    name = story.observe()
    story.idle(name, "epilogue-1")
    return story.end(name, user(), answer("w1 "))


def test_a_model_that_answers_on_after_the_stop_is_broken_where_its_end_was_waited_for() -> None:
    assert said("CANCEL-05", left_running(waits=True)) == "broken"


def test_a_model_that_answers_on_after_the_stop_is_no_pass_where_nobody_waited() -> None:
    assert said("CANCEL-05", left_running(waits=False)) == "nothing"


def waited(number: int, seconds: float) -> str:
    story, _, b = held_turn(plan={"operations": [{"do": "stop"}, {"do": "wait"}]})
    story.cancel(b)
    story.passes(seconds)
    story.operation("wait" if number else "stop", "info", number=number)
    return said("CANCEL-05", story.epilogue(user(), answer("w1 ")))


def test_a_last_operation_that_waits_in_vain_for_the_end_shows_a_stop_without_effect() -> None:
    assert waited(1, 7) == "broken"
    assert waited(0, 7) == "nothing"


def test_a_case_that_the_kit_cuts_short_behind_a_stop_blames_nobody() -> None:
    assert waited(1, 1) == "nothing"
    story, _, b = held_turn()
    story.cancel(b)
    story.gives_up(after_s=0.1)
    assert said("CANCEL-05", story.epilogue(user(), answer("w1 "))) == "nothing"


def during_a_tool(outcome: str | None, *, asked_again: bool) -> Story:
    """The first call asked for a tool and ended; the second, if it is made, holds at a gate."""
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.call()
    story.start([a, b])
    story.call_ends()
    story.record("effects", "effect", {"key": "paid"})
    story.cancel(a)
    if asked_again:
        story.call()
        story.gate()
    if outcome:
        story.terminal([a, b], outcome=outcome)
    else:
        story.gives_up()
    return story.epilogue(user())


def test_a_stop_during_a_tool() -> None:
    assert said("CANCEL-05", during_a_tool("aborted", asked_again=False)) == "holds"
    assert said("CANCEL-05", during_a_tool(None, asked_again=True)) == "broken"
    assert said("CANCEL-05", during_a_tool("completed", asked_again=True)) == "broken"


def test_a_stop_that_may_have_come_too_late_is_not_judged() -> None:
    story, a, b = held_turn()
    story.operation("open-gate", gate="g")
    story.cancel(a)
    story.call_ends()
    story.terminal([a, b], outcome="completed")
    assert said("CANCEL-05", story.epilogue(user(), answer("w1 "))) == "nothing"


def test_a_stop_whose_connection_broke_is_not_judged() -> None:
    story, a, b = held_turn()
    story.cancel(a)
    story.close(a)
    story.call_ends(how="aborted")
    story.terminal(b, outcome="error")
    assert said("CANCEL-05", story.epilogue(user(), answer("w1 "))) == "nothing"


# ---- CANCEL-09, WIRE-155, WIRE-156 ------------------------------------------------------------


def recovered(stop: str, outcome: str | None, *, streams: bool = True, told: int = 1) -> Story:
    """A crash, and the turn goes on as `s1`; `stop` is the id that is stopped, before or while it streams."""
    story, a, b = held_turn()
    story.kill(a, b, calls=[1])
    story.restart()
    c = story.open("a")
    if not streams:
        story.pending(c, "s1")
        story.cancel(c, stop)
    story.offer(c, "s1")
    if streams or outcome is None:
        story.call()
        story.start(c, "s1", continuation=True)
        story.gate()
    if streams:
        story.cancel(c, stop)
    if outcome:
        story.call_ends(how="aborted")
        for _ in range(told):
            story.terminal(c, "s1", outcome)
    else:
        story.gives_up()
    return story.epilogue(user(), answer("w1 "))


def test_a_stop_of_a_recovered_turn_by_either_id_holds() -> None:
    assert said("CANCEL-09", recovered("r1", "aborted")) == "holds"
    assert said("WIRE-155", recovered("r1", "aborted")) == "holds"
    assert said("WIRE-155", recovered("s1", "aborted")) == "holds"
    assert said("WIRE-156", recovered("r1", "aborted")) == "holds"


def test_a_stop_before_the_recovered_turn_streams_holds() -> None:
    assert said("CANCEL-09", recovered("r1", "aborted", streams=False)) == "holds"


@pytest.mark.parametrize("outcome", ["completed", "error", None])
def test_a_stop_of_a_recovered_turn_without_effect_is_broken(outcome: str | None) -> None:
    assert said("CANCEL-09", recovered("r1", outcome)) == "broken"
    assert said("WIRE-155", recovered("r1", outcome)) == "broken"
    assert said("WIRE-155", recovered("s1", outcome)) == "broken"
    assert said("CANCEL-05", recovered("r1", outcome)) == "nothing"


def test_a_recovery_that_begins_although_it_was_stopped_is_broken() -> None:
    assert said("CANCEL-09", recovered("r1", None, streams=False)) == "broken"
    assert said("WIRE-155", recovered("r1", None, streams=False)) == "nothing"


def test_the_original_id_says_nothing_of_the_other() -> None:
    assert said("CANCEL-09", recovered("s1", "completed")) == "nothing"


def test_a_stop_of_a_recovered_turn_that_is_told_twice_is_broken() -> None:
    assert said("WIRE-156", recovered("r1", "aborted", told=2)) == "broken"
    assert said("WIRE-156", recovered("r1", "completed")) == "nothing"


# ---- WIRE-150 ---------------------------------------------------------------------------------


def queued(outcome: str, *, calls: bool = False, met: bool = True, keeps: bool = True) -> Story:
    """`r2` waits behind `r1`, which is held, and is stopped; the answer to a probe shows that it was met."""
    story, a, b = held_turn()
    story.send(a, 2)
    story.transcript([b], user(), user(2))
    story.cancel(a, "r2")
    story.probe(a, "p9")
    if met:
        story.offer(a, "r1", "p9")
    story.operation("open-gate", gate="g")
    story.call_ends()
    story.terminal([a, b])
    if calls:
        story.call(2)
        story.call_ends(2)
    story.terminal([a, b], "r2", outcome, messages=["u2"])
    return story.epilogue(user(), answer("w1 "), *([user(2)] if keeps else []))


def test_a_waiting_turn_that_is_stopped_holds() -> None:
    assert said("WIRE-150", queued("aborted")) == "holds"


def test_a_waiting_turn_that_runs_or_ends_otherwise_or_loses_its_question_is_broken() -> None:
    assert said("WIRE-150", queued("completed", calls=True)) == "broken"
    assert said("WIRE-150", queued("aborted", calls=True)) == "broken"
    assert said("WIRE-150", queued("skipped")) == "broken"
    assert said("WIRE-150", queued("aborted", keeps=False)) == "broken"


def test_a_stop_of_a_waiting_turn_that_may_have_come_late_is_not_judged() -> None:
    assert said("WIRE-150", queued("completed", calls=True, met=False)) == "nothing"


# ---- WIRE-41 ----------------------------------------------------------------------------------


def stray(*, answered: bool = False, outcome: str = "completed", met: bool = True) -> Story:
    story, a, b = held_turn()
    story.cancel(a, "nothing")
    if answered:
        story.terminal(a, "nothing", None, replay=True)
    if met:
        story.probe(a, "p9")
        story.offer(a, "r1", "p9")
    story.call_ends(how="aborted" if outcome == "aborted" else "done")
    story.terminal([a, b], outcome=outcome)
    return story.epilogue(user(), answer("w1 "))


def test_a_stop_of_nothing_that_is_ignored_holds() -> None:
    assert said("WIRE-41", stray()) == "holds"
    assert said("WIRE-41", stray(met=False)) == "nothing"


def test_a_stop_of_nothing_that_is_answered_or_stops_another_turn_is_broken() -> None:
    assert said("WIRE-41", stray(answered=True)) == "broken"
    assert said("WIRE-41", stray(outcome="aborted")) == "broken"


def ended(*more: str, asks: bool = False) -> Story:
    """The turn is over; it is stopped, and what comes `more` of it, perhaps because the client `asks`."""
    story = Story()
    a = story.open("a")
    plain_turn(story, [a])
    if asks:
        story.ack(a)
    story.cancel(a)
    for outcome in more:
        story.get(a, ChatResponse(id="r1", body="", done=True, replay=True, outcome=outcome))  # type: ignore[arg-type]
    story.probe(a, "p9")
    story.idle(a, "p9")
    return story.epilogue(user(), answer("w1 "))


def test_a_stop_of_an_ended_turn() -> None:
    assert said("WIRE-41", ended()) == "holds"
    assert said("WIRE-41", ended("completed")) == "broken"
    assert said("WIRE-41", ended("completed", asks=True)) == "holds"
