"""Checks of what goes on by itself after a crash: green, red and grey histories."""

from __future__ import annotations

import msgspec
import pytest

from histories import Story, answer, plain_turn, said, user
from think_conformance.checkers.base import load
from think_conformance.history.op import History
from think_conformance.history.views import View

STORED = (user(), answer("w1 "))
RETRY = ["TURN-41", "TURN-42"]


def struck(*, called: bool, chunk: bool = False, text: bool = False) -> Story:
    """A turn that was accepted, perhaps asked its model, perhaps streamed, when the target was killed."""
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.transcript(b, user())
    if called:
        story.call()
    if chunk:
        story.start([a, b])
    if text:
        story.words([a, b], "w1 ")
    story.kill(a, b, calls=[1] if called else [])
    story.restart()
    return story


def goes_on(story: Story) -> Story:
    story.call()
    story.call_ends()
    return story


@pytest.mark.parametrize(("requirement", "called"), [("TURN-41", False), ("TURN-42", True)])
def test_a_turn_that_is_tried_again_holds(requirement: str, called: bool) -> None:
    assert said(requirement, goes_on(struck(called=called)).epilogue(*STORED)) == "holds"


@pytest.mark.parametrize(("requirement", "called"), [("TURN-41", False), ("TURN-42", True)])
def test_a_turn_that_is_given_up_is_broken(requirement: str, called: bool) -> None:
    story = struck(called=called)
    story.terminal(story.open("c"), outcome="error")
    assert said(requirement, story.epilogue(user())) == "broken"


def test_an_opened_stream_without_content_is_tried_again_too() -> None:
    assert said("TURN-42", goes_on(struck(called=True, chunk=True)).epilogue(*STORED)) == "holds"


def test_a_stream_with_content_is_another_matter() -> None:
    assert said("TURN-42", struck(called=True, chunk=True, text=True).epilogue(*STORED)) == "nothing"


@pytest.mark.parametrize("requirement", RETRY)
def test_without_a_crash_nothing_is_tried_again(requirement: str) -> None:
    story = Story()
    plain_turn(story, [story.open("a")])
    assert said(requirement, story.epilogue(*STORED)) == "nothing"


def test_a_turn_that_waits_behind_another_is_not_next() -> None:
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.call()
    story.send(a, 2)
    story.transcript(b, user(1), user(2))
    story.kill(a, b, calls=[1])
    story.restart()
    assert said("TURN-41", story.epilogue(user(1), user(2))) == "nothing"


def test_a_turn_that_a_client_stopped_need_not_be_tried_again() -> None:
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.transcript(b, user())
    story.cancel(b)
    story.kill(a, b)
    story.restart()
    assert said("TURN-41", story.epilogue(user())) == "nothing"


# ---- TURN-29 ----------------------------------------------------------------------------------


def late(story: Story, index: int, seconds: float) -> History:
    """The same history, with everything from `index` on so much later."""
    return [
        record if record.index < index else msgspec.structs.replace(record, at=record.at + seconds)
        for record in story.history
    ]


def woke(history: History) -> str:
    return load()["TURN-29"](View(history)).said


@pytest.mark.parametrize(("seconds", "verdict"), [(1, "holds"), (34, "holds"), (36, "broken")])
def test_it_wakes_within_the_heartbeat_and_a_margin(seconds: float, verdict: str) -> None:
    story = struck(called=True)
    call = story.call()
    story.call_ends()
    story.epilogue(*STORED)
    assert woke(late(story, call, seconds)) == verdict


def test_who_never_wakes_while_nobody_comes_is_broken() -> None:
    story = struck(called=True)
    visit = len(story.history)
    goes_on(story.epilogue(user()))
    assert woke(late(story, visit, 40)) == "broken"


def test_who_was_woken_by_a_client_shows_nothing() -> None:
    story = struck(called=True)
    story.open("c")
    assert woke(goes_on(story).epilogue(*STORED).history) == "nothing"


def test_an_evicted_agent_is_measured_from_its_eviction() -> None:
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.transcript(b, user())
    story.call()
    story.fault("crash", {"process": "evict"}, leg="target", fires_on="")
    story.record("process", "process", {"epoch": 1}, {"action": "evict"})
    story.close(a, b)
    story.call_ends(how="aborted")
    call = story.call()
    story.call_ends()
    story.epilogue(*STORED)
    assert woke(story.history) == "holds"
    assert woke(late(story, call, 40)) == "broken"
