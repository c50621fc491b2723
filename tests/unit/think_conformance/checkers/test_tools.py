"""Checks of tools across a crash: green, red and grey histories."""

from __future__ import annotations

from typing import Any

import pytest

from histories import Story, answer, plain_turn, said, user
from think_conformance.wire.frames import Message

ASKS = [{"tool": "record_effect", "args": {"key": "{case}/paid"}}, "done"]
PLAN = {"model": {"t1": [ASKS, [{"text": "w1 "}, "done"]]}}
KEY = "/paid"  # of a case without a name
QUESTION = {"role": "user", "content": "[[case/t1]]"}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "type": "function"}]}


def result(content: str = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "x", "content": content}


def stored(state: str = "output-available") -> Message:
    part = {"type": "tool-record_effect", "toolCallId": "x", "state": state}
    return {"id": "a1", "role": "assistant", "parts": [part]}


def effect(story: Story) -> int:
    return story.record("effects", "effect", {"key": KEY}, {"key": KEY})


def struck(*, settled: bool) -> Story:
    """The tool's effect has come, its result perhaps too, when the target is killed."""
    story = Story(plan=PLAN)
    a = story.open("a")
    story.send(a)
    story.call()
    story.start(a)
    story.call_ends()
    effect(story)
    if settled:
        story.call(messages=[QUESTION, CALL, result()])
    story.kill(a, calls=[1] if settled else [])
    story.restart()
    return story


def goes_on(story: Story, *prompt: dict[str, Any], again: bool = False, state: str = "output-error") -> Story:
    if again:
        effect(story)
    story.call(messages=[QUESTION, *prompt])
    story.call_ends()
    return story.epilogue(user(), stored(state))


@pytest.mark.parametrize(
    ("prompt", "again", "verdict"),
    [
        ((CALL, result("interrupted")), False, "holds"),
        ((CALL,), False, "broken"),
        ((CALL, result("interrupted")), True, "broken"),
    ],
)
def test_an_interrupted_call(prompt: tuple[dict[str, Any], ...], again: bool, verdict: str) -> None:
    assert said("TURN-46", goes_on(struck(settled=False), *prompt, again=again)) == verdict


def test_a_settled_call_is_not_interrupted() -> None:
    story = goes_on(struck(settled=True), CALL, result(), state="output-available")
    assert said("TURN-46", story) == "nothing"


@pytest.mark.parametrize(
    ("prompt", "again", "state", "verdict"),
    [
        ((CALL, result()), False, "output-available", "holds"),
        ((CALL, result("interrupted")), False, "output-available", "broken"),
        ((), False, "output-available", "broken"),
        ((CALL, result()), True, "output-available", "broken"),
        ((CALL, result()), False, "input-available", "broken"),
    ],
)
def test_a_settled_result(prompt: tuple[dict[str, Any], ...], again: bool, state: str, verdict: str) -> None:
    assert said("TURN-48", goes_on(struck(settled=True), *prompt, again=again, state=state)) == verdict


def test_a_result_that_only_a_client_saw_is_settled_too() -> None:
    story = Story(plan=PLAN)
    a = story.open("a")
    story.send(a)
    story.call()
    story.call_ends()
    effect(story)
    story.chunk(a, {"type": "tool-output-available", "toolCallId": "x", "output": "done"}, seq=1)
    story.kill(a)
    story.restart()
    assert said("TURN-48", goes_on(story, CALL, result(), state="output-available")) == "holds"
    assert said("TURN-46", story) == "nothing"


def test_an_interrupted_call_has_no_settled_result() -> None:
    assert said("TURN-48", goes_on(struck(settled=False), CALL, result("interrupted"))) == "nothing"


def test_an_effect_that_the_model_asked_for_twice_may_come_twice() -> None:
    story = struck(settled=False)
    story.history[0].payload["plan"]["model"]["t1"] = [ASKS, ASKS]
    assert said("TURN-46", goes_on(story, CALL, result("interrupted"), again=True)) == "holds"


@pytest.mark.parametrize("requirement", ["TURN-46", "TURN-48"])
def test_a_plain_turn_shows_nothing(requirement: str) -> None:
    story = Story(plan=PLAN)
    plain_turn(story, [story.open("a")])
    assert said(requirement, story.epilogue(user(), answer("w1 "))) == "nothing"
