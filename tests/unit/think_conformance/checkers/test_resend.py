"""Checks of requests that are sent again: green, red and grey histories."""

from __future__ import annotations

import pytest

from histories import Story, answer, plain_turn, user
from think_conformance.checkers.base import load
from think_conformance.history.views import View

STORED = (user(), answer("w1 "))


def said(story: Story) -> str:
    return load()["WIRE-58"](View(story.history)).said


def running(**more: bool) -> tuple[Story, str]:
    story = Story(**more)
    a = story.open("a")
    story.send(a)
    story.call()
    story.start(a)
    return story, a


def ends(story: Story, *names: str) -> Story:
    story.call_ends()
    story.transcript(list(names), *STORED)
    story.terminal(list(names))
    return story.epilogue(*STORED)


def test_a_request_that_was_sent_once_shows_nothing() -> None:
    assert said(ends(*running())) == "nothing"


def test_a_resend_of_a_running_turn_gets_the_replay() -> None:
    story, a = running()
    story.send(a)
    story.start(a, replay=True)
    story.complete_replay(a)
    assert said(ends(story, a)) == "holds"


def test_a_resend_that_gets_only_what_was_owed_anyway_is_broken() -> None:
    story, a = running()
    story.send(a)
    story.words(a, "w1 ")
    assert said(ends(story, a)) == "broken"


def test_a_resend_of_a_waiting_turn_is_told_to_wait() -> None:
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.transcript(b, user())
    story.send(b)
    story.pending(b)
    story.call()
    story.start([a, b])
    assert said(ends(story, a, b)) == "holds"


@pytest.mark.parametrize(
    ("reply", "verdict"), [("terminal", "holds"), ("pending", "broken"), ("nothing", "broken")]
)
def test_a_resend_of_an_ended_turn_gets_its_terminal(reply: str, verdict: str) -> None:
    story = Story()
    a = story.open("a")
    plain_turn(story, [a])
    story.send(a)
    if reply == "terminal":
        story.terminal(a)
    elif reply == "pending":
        story.pending(a)
    assert said(story.epilogue(*STORED)) == verdict


@pytest.mark.parametrize("probe", [None, "p1"])
def test_a_call_on_its_way_when_the_request_is_sent_again_is_no_wrong_answer(probe: str | None) -> None:
    story = Story()
    a, b = story.open("a"), story.open("b")
    plain_turn(story, [a])
    story.send(b)
    story.pending(b, probe=probe)
    story.offer(b, probe=probe)
    story.terminal(b, replay=True)
    assert said(story.epilogue(*STORED)) == "holds"


def test_an_answer_to_a_probe_is_none_to_a_resend() -> None:
    story, a = running()
    b = story.open("b")
    story.probe(b)
    story.send(b)
    story.offer(b, probe="p1")
    assert said(ends(story, a)) == "broken"


def test_a_newcomer_that_sends_again_was_owed_no_terminal_of_an_older_end() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.call()
    story.start(a)
    story.call_ends()
    b = story.open("b")  # the end is on its way to a
    story.transcript(a, *STORED)
    story.terminal(a)
    story.send(b)
    story.terminal(b)
    assert said(story.epilogue(*STORED)) == "holds"


def test_a_resend_that_runs_the_model_again_is_broken() -> None:
    story = Story()
    a = story.open("a")
    plain_turn(story, [a])
    story.send(a)
    story.terminal(a)
    story.call()
    story.call_ends()
    assert said(story.epilogue(*STORED)) == "broken"


def test_a_resend_on_a_connection_that_broke_is_owed_nothing() -> None:
    story, a = running()
    b = story.open("b")
    story.send(b)
    story.close(b)
    assert said(ends(story, a)) == "nothing"


@pytest.mark.parametrize(("facts", "verdict"), [(True, "broken"), (False, "nothing")])
def test_across_a_restart_only_the_reference_must_remember(facts: bool, verdict: str) -> None:
    story = Story(facts=facts)
    a = story.open("a")
    plain_turn(story, [a])
    story.kill(a)
    story.restart()
    story.send(story.open("a"))
    assert said(story.epilogue(*STORED)) == verdict
