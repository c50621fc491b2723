"""Scripts of the model: markers, what is refused, and the events of a completion."""

from __future__ import annotations

import json
from typing import Any

import pytest

from think_conformance.errors import UsageError
from think_conformance.plan import Step
from think_conformance.shell.model_script import Completion, check_scripts, find_marker


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


@pytest.mark.parametrize(
    ("messages", "marker"),
    [
        ([user("hi [[c/t1]]")], ("c", "t1")),
        ([user("[[c/t1]]"), user("[[c/t2]] and [[c/t3]]")], ("c", "t3")),
        ([user("[[c/t1]]"), {"role": "assistant", "content": "[[c/t2]]"}], ("c", "t1")),
        ([user("[[c/t1]]"), user("no marker")], ("c", "t1")),
        ([user([{"type": "text", "text": "x"}, {"type": "text", "text": "[[a/b/t]]"}])], ("a/b", "t")),
        ([user("[[c]] [[/t]] [[c/]]")], None),
        ([user([{"type": "image"}, 3, {"text": 5}]), user(None), "junk"], None),
        ("junk", None),
    ],
)
def test_the_last_marker_in_a_user_message_counts(messages: Any, marker: tuple[str, str] | None) -> None:
    assert find_marker(messages) == marker


def test_every_step_of_the_format_is_accepted() -> None:
    steps: list[Step] = [
        {"gate": "g"},
        {"status": 503, "body": {"x": 1}, "headers": {"retry-after": "1"}},
        {"text": "a"},
        {"reasoning": "b"},
        {"tool": "t", "args": {"k": 1}, "id": "i"},
        {"usage": {"total_tokens": 3}},
        {"error": "boom"},
        {"silence": True},
        {"cut": True},
        "done",
    ]
    check_scripts({"t1": [steps, ["done"]]})


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        (["dne"], "call 1, step 1: `dne` is no step; did you mean `done`?"),
        ([{"txt": "a"}], "is no step; known: done, text"),
        ([{"text": 3}], "`text` is to be a str"),
        ([{"text": "a", "args": {}}], "`args` cannot stand beside `text`"),
        ([{"tool": "t", "arg": {}}], "did you mean `args`?"),
        ([{"cut": False}], "`cut` is to be true"),
        ([{"status": 200}], "400 to 599"),
        ([{"text": "a"}, {"status": 500}], "step 2: `status` comes after the answer has begun"),
    ],
)
def test_a_wrong_step_is_told_by_turn_call_and_position(steps: list[Step], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_scripts({"t1": [steps]})
    assert str(caught.value).startswith("model script of `t1`, call 1, step ")
    assert told in str(caught.value)


def test_a_turn_without_calls_is_refused() -> None:
    with pytest.raises(UsageError, match="`t1`: no calls"):
        check_scripts({"t1": []})


def spoken(*steps: Step) -> list[Any]:
    completion = Completion("x")
    events = [event for step in steps for event in completion.events(step)]
    assert all(event.startswith(b"data: ") and event.endswith(b"\n\n") for event in events)
    return [
        event[6:-2].decode() if event == b"data: [DONE]\n\n" else json.loads(event[6:]) for event in events
    ]


def test_text_ends_with_stop_usage_and_done() -> None:
    first, thought, finish, usage, done = spoken(
        {"text": "hi"}, {"reasoning": "hm"}, {"usage": {"total_tokens": 9}}, "done"
    )
    assert first == {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": "hi"}, "finish_reason": None}],
    }
    assert thought["choices"][0]["delta"]["reasoning_content"] == "hm"
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert (usage["choices"], usage["usage"]) == ([], {"total_tokens": 9})
    assert done == "[DONE]"


def test_tool_calls_are_numbered_and_change_the_finish() -> None:
    one, two, finish, *_ = spoken({"tool": "f", "args": {"k": 1}}, {"tool": "g", "id": "mine"}, "done")
    calls = [event["choices"][0]["delta"]["tool_calls"][0] for event in (one, two)]
    assert calls == [
        {"index": 0, "id": "x-tool-0", "type": "function", "function": {"name": "f", "arguments": '{"k":1}'}},
        {"index": 1, "id": "mine", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
    assert finish["choices"][0]["finish_reason"] == "tool_calls"


def test_an_error_within_the_stream_is_an_error_object() -> None:
    assert spoken({"error": "boom"})[0]["error"]["message"] == "boom"
