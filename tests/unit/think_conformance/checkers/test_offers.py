"""Checks of waiting and being called: green, red and grey histories."""

from __future__ import annotations

import pytest

from histories import Story, answer, plain_turn, said, user
from think_conformance.wire.frames import ResumeNone

STORED = (user(), answer("w1 "))
ALL = ["WIRE-107", "WIRE-98", "WIRE-103"]


@pytest.mark.parametrize("requirement", ALL)
def test_a_plain_turn_shows_nothing(requirement: str) -> None:
    story = Story()
    plain_turn(story, [story.open("a")])
    assert said(requirement, story.epilogue(*STORED)) == "nothing"


# ---- WIRE-107 ---------------------------------------------------------------------------------


def wrongly_acked(reply: str, *, ended: bool = False) -> Story:
    """`b` is offered r1 and acks an id that was never used."""
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.call()
    story.start(a)
    story.offer(b)
    story.ack(b, "no-such-request")
    if ended:
        story.terminal(b)
    if reply == "terminal":
        story.terminal(b, "no-such-request", None, replay=True)
    elif reply == "replay":
        story.start(b, replay=True)
    story.call_ends()
    story.terminal([a] if ended else [a, b])
    return story.epilogue(*STORED)


@pytest.mark.parametrize(
    ("reply", "verdict"), [("nothing", "holds"), ("terminal", "broken"), ("replay", "broken")]
)
def test_an_ack_of_an_unknown_id(reply: str, verdict: str) -> None:
    assert said("WIRE-107", wrongly_acked(reply)) == verdict


def test_once_the_stream_has_ended_an_answer_is_due() -> None:
    assert said("WIRE-107", wrongly_acked("terminal", ended=True)) == "holds"


def test_the_right_ack_after_the_wrong_one_is_answered() -> None:
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.call()
    story.start(a)
    story.offer(b)
    story.ack(b, "no-such-request")
    story.ack(b)
    story.start(b, replay=True)
    story.complete_replay(b)
    story.call_ends()
    story.terminal([a, b])
    assert said("WIRE-107", story.epilogue(*STORED)) == "holds"


# ---- WIRE-98 ----------------------------------------------------------------------------------


def waiting() -> tuple[Story, str]:
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.transcript(b, user())
    return story, a


@pytest.mark.parametrize(("told", "verdict"), [("before", "holds"), ("after", "broken"), ("", "broken")])
def test_who_connects_while_a_turn_waits(told: str, verdict: str) -> None:
    story, a = waiting()
    c = story.open("c")
    if told == "before":
        story.pending(c)
    story.transcript(c, user(), connect=True)
    if told == "after":
        story.pending(c)
    story.call()
    story.call_ends()
    story.terminal([a, c])
    assert said("WIRE-98", story.epilogue(*STORED)) == verdict


def test_who_connects_while_a_turn_streams_is_another_matter() -> None:
    story, a = waiting()
    story.call()
    story.start(a)
    story.transcript(story.open("c"), user(), connect=True)
    story.call_ends()
    assert said("WIRE-98", story.epilogue(*STORED)) == "nothing"


# ---- WIRE-103 ---------------------------------------------------------------------------------


def parked(then: str) -> Story:
    story, a = waiting()
    c = story.open("c")
    story.probe(c)
    story.pending(c, probe="p1")
    story.call()
    if then == "offer":
        story.offer(c)
    elif then == "release":
        story.get(c, ResumeNone())
    elif then == "chunk":
        story.start(c)
        story.offer(c)
    elif then == "leaves":
        story.close(c)
    story.start(a)
    story.call_ends()
    story.terminal(a)
    return story.epilogue(*STORED)


@pytest.mark.parametrize(
    ("then", "verdict"),
    [
        ("offer", "holds"),
        ("release", "holds"),
        ("chunk", "broken"),
        ("silence", "broken"),
        ("leaves", "nothing"),
    ],
)
def test_who_was_told_to_wait(then: str, verdict: str) -> None:
    assert said("WIRE-103", parked(then)) == verdict
