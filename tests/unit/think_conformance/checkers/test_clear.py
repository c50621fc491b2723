"""Checks of clear: green, red and grey histories."""

from __future__ import annotations

import pytest

from histories import Story, answer, held_turn, plain_turn, said, user
from think_conformance.wire.frames import ChatClear

CLEAR = ["WIRE-190", "WIRE-77", "WIRE-191", "WIRE-192"]


@pytest.mark.parametrize("requirement", CLEAR)
def test_a_plain_turn_shows_nothing(requirement: str) -> None:
    story = Story()
    plain_turn(story, [story.open("a"), story.open("b")])
    assert said(requirement, story.epilogue(user(), answer("w1 "))) == "nothing"


def cleared(
    running: str | None = "aborted",
    waiting: str = "skipped",
    *,
    hangs_up: bool = True,
    told: str = "b",
    left: tuple[dict[str, object], ...] = (),
    lost: bool = False,
) -> Story:
    """`r1` is held, `r2` waits, `a` clears the chat; `told` are the clients that get `chat_clear`."""
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.call()
    story.start([a, b])
    story.words([a, b], "w1 ")
    story.gate()
    story.send(a, 2)
    story.transcript(b, user(), user(2))
    story.out(a, ChatClear())
    if lost:
        story.close(a)
    for client in told:
        story.get({"a": a, "b": b}[client], ChatClear())
    if hangs_up:
        story.call_ends(how="aborted")
    if running:
        story.terminal([b] if lost else [a, b], outcome=running)
    else:
        story.gives_up()
    story.terminal([b] if lost else [a, b], "r2", waiting, messages=["u2"])
    return story.epilogue(*left)


@pytest.mark.parametrize("requirement", CLEAR)
def test_a_clear_that_ends_everything_and_is_told_holds(requirement: str) -> None:
    assert said(requirement, cleared()) == "holds"


@pytest.mark.parametrize("requirement", CLEAR)
def test_a_clear_that_may_not_have_arrived_is_not_judged(requirement: str) -> None:
    assert (
        said(requirement, cleared("completed", "completed", left=(user(),), told="", lost=True)) == "nothing"
    )


def test_a_running_turn_that_is_not_aborted_by_a_clear_is_broken() -> None:
    assert said("WIRE-190", cleared("skipped")) == "broken"
    assert said("WIRE-190", cleared("completed")) == "broken"
    assert said("WIRE-190", cleared(None)) == "broken"
    assert said("WIRE-190", cleared(hangs_up=False)) == "broken"


def left_running(*, waits: bool) -> Story:
    """The turn is told to be aborted by a clear; its model answers when the gates are opened at the end."""
    story, a, b = held_turn(plan={"operations": [{"do": "clear"}, {"do": "wait"}]})
    story.out(a, ChatClear())
    story.get(b, ChatClear())
    story.terminal([a, b], outcome="aborted")
    if waits:
        story.passes(7)
        story.operation("wait", "info", number=1)
    story.begin()
    story.call_ends(how="done")
    name = story.observe()
    story.idle(name, "epilogue-1")
    return story.end(name)


def test_a_model_that_answers_on_after_the_clear_is_broken_where_its_end_was_waited_for() -> None:
    assert said("WIRE-190", left_running(waits=True)) == "broken"


def test_a_model_that_answers_on_after_the_clear_is_no_pass_where_nobody_waited() -> None:
    assert said("WIRE-190", left_running(waits=False)) == "nothing"


def test_a_case_that_the_kit_cuts_short_behind_a_clear_blames_nobody() -> None:
    story, a, _ = held_turn()
    story.out(a, ChatClear())
    story.gives_up(after_s=0.1)
    assert said("WIRE-190", story.epilogue()) == "nothing"


def test_a_waiting_turn_that_is_not_skipped_by_a_clear_is_broken() -> None:
    assert said("WIRE-190", cleared(waiting="aborted")) == "broken"


def test_a_turn_that_was_about_to_end_is_not_judged() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.call()
    story.start(a)
    story.out(a, ChatClear())
    story.call_ends()
    story.terminal(a)
    assert said("WIRE-190", story.epilogue()) == "nothing"


def test_who_looks_on_must_be_told_and_who_cleared_must_not() -> None:
    assert said("WIRE-77", cleared(told="")) == "broken"
    assert said("WIRE-191", cleared(told="ab")) == "broken"


def test_where_two_clear_the_chat_each_may_be_told_of_the_other() -> None:
    story = Story()
    a, b = story.open("a"), story.open("b")
    for name, other in [(a, b), (b, a)]:
        story.out(name, ChatClear())
        story.get(other, ChatClear())
    assert said("WIRE-191", story.epilogue()) == "nothing"
    assert said("WIRE-77", story.epilogue()) == "holds"


def test_what_was_cleared_and_comes_back_is_broken() -> None:
    assert said("WIRE-192", cleared(left=(user(),))) == "broken"
    assert said("WIRE-192", cleared(left=(answer("w1 "),))) == "broken"


def test_what_is_sent_after_a_clear_is_not_judged() -> None:
    story = Story()
    a = story.open("a")
    plain_turn(story, [a])
    story.out(a, ChatClear())
    plain_turn(story, [a], 2)
    assert said("WIRE-192", story.epilogue(user(2), answer("w1 ", "a2"))) == "nothing"
