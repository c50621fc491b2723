"""The tool loop: what is stored before a tool runs, what the model is asked with, what a crash leaves."""

from __future__ import annotations

from typing import Any

import pytest

from reference_world import NAME, World, responses, terminals, user
from think_conformance.wire.codec import loads
from think_conformance.wire.frames import ChatMessages, Message
from think_reference.agent import Think
from think_reference.core.application import Tool
from think_reference.core.bounds import MAX_DEPTH
from think_reference.core.effects import (
    AbortWork,
    AddChunk,
    Broadcast,
    CallModel,
    Persist,
    Rows,
    RunTool,
    UpdateMessage,
)
from think_reference.core.ids import answer_id, run_id
from think_reference.core.prompt import GO_ON
from think_reference.core.repair import INTERRUPTED, repaired

U1, U2 = user("u1"), user("u2")
A1 = answer_id(NAME, "r1", 0)
ASKED_U1 = {"role": "user", "content": "u1"}


async def _never(call_id: str, given: dict[str, Any]) -> None:
    raise AssertionError("the core runs nothing")


SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}}


class Tooled(Think):
    """Two tools, few steps."""

    max_steps = 3
    tools = {"look": Tool("Looks.", SCHEMA, _never), "go": Tool("Goes.", {"type": "object"}, _never)}


def asked(application: type[Think] = Tooled) -> World:
    world = World(application)
    world.connect(1)
    world.send(1, "r1", U1)
    return world


def looking(**more: str) -> World:
    """The model asked for `look`, which runs."""
    world = asked()
    world.say("hm")
    world.ask_tool("c1", "look", '{"at"', ': "me"}')
    for call_id, tool in more.items():
        world.ask_tool(call_id, tool)
    world.finish("tool-calls")
    return world


def call(call_id: str, state: str, tool: str = "look", **more: Any) -> dict[str, Any]:
    """A tool part."""
    part = {"type": f"tool-{tool}", "toolCallId": call_id, "toolName": tool, "state": state}
    return {**part, "input": {"at": "me"} if tool == "look" else {}, **more}


def kinds(world: World, request_id: str = "r1") -> list[str]:
    return [
        loads(f.body)["type"] for f in responses(world.frames[1]) if f.seq is not None and f.id == request_id
    ]


def calls_of(message: Message) -> list[dict[str, Any]]:
    return [p for p in message["parts"] if "toolCallId" in p]


def function(call_id: str, tool: str = "look", arguments: str = '{"at":"me"}') -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": tool, "arguments": arguments}}


def test_the_tools_are_offered_as_functions() -> None:
    world = asked()
    look, go = world.called[0].tools
    assert look == {
        "type": "function",
        "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA},
    }
    assert go["function"]["name"] == "go"
    assert asked(Think).called[0].tools == []


def test_a_whole_call_is_stored_before_its_tool_starts_and_its_result_before_the_next_step() -> None:
    world = asked()
    stored, shown = world.ask_tool("c1", "look", '{"at": "me"}')
    assert isinstance(stored, Persist)
    assert [type(w) for w in stored.writes] == [AddChunk]
    assert isinstance(shown, Broadcast)
    assert world.finish("tool-calls") == [RunTool("r1", "c1", "look", {"at": "me"})]
    stored, shown, *step, ask = world.returned({"seen": 1})
    assert isinstance(stored, Persist)
    assert loads(shown.frame.body) == {
        "type": "tool-output-available",
        "toolCallId": "c1",
        "output": {"seen": 1},
    }
    assert step
    assert isinstance(ask, CallModel)


def test_an_answer_goes_on_with_the_results_until_no_tool_is_asked_for() -> None:
    world = looking()
    world.returned({"seen": 1})
    assert world.called[-1].messages == [
        ASKED_U1,
        {"role": "assistant", "content": "hm", "tool_calls": [function("c1")]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"seen":1}'},
    ]
    world.say("you")
    world.finish()
    assert kinds(world) == [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "tool-input-start",
        "tool-input-delta",
        "tool-input-delta",
        "tool-input-available",
        "tool-output-available",
        "finish-step",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]
    assert world.agent.messages[1]["parts"] == [
        {"type": "step-start"},
        {"type": "text", "text": "hm", "state": "done"},
        call("c1", "output-available", output={"seen": 1}),
        {"type": "step-start"},
        {"type": "text", "text": "you", "state": "done"},
    ]
    assert terminals(world.frames[1]) == [("r1", "completed")]


def test_the_calls_of_a_step_run_one_at_a_time_in_order() -> None:
    world = looking(c2="go", c3="look")
    assert [t.call_id for t in world.ran] == ["c1"]
    world.returned("text")
    assert [t.call_id for t in world.ran] == ["c1", "c2"]
    world.raised("no way")
    world.returned(None)
    assert [t.call_id for t in world.ran] == ["c1", "c2", "c3"]
    assert world.called[-1].messages[1:] == [
        {
            "role": "assistant",
            "content": "hm",
            "tool_calls": [function("c1"), function("c2", "go", "{}"), function("c3", "look", "{}")],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "text"},
        {"role": "tool", "tool_call_id": "c2", "content": "no way"},
        {"role": "tool", "tool_call_id": "c3", "content": "null"},
    ]


@pytest.mark.parametrize(
    ("tool", "text", "why"),
    [
        ("fly", "{}", "there is no tool `fly`"),
        ("look", '{"at"', "not JSON"),
        ("look", "[1]", "must be an object"),
        ("look", '{"a":' + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1) + "}", "nested"),
    ],
)
def test_a_call_that_cannot_be_run_is_told_to_the_model(tool: str, text: str, why: str) -> None:
    world = asked()
    world.ask_tool("c1", tool, text)
    world.finish("tool-calls")
    assert world.ran == []
    assert "tool-input-error" in kinds(world)
    assert why in world.called[-1].messages[-1]["content"]
    world.finish()
    (part,) = calls_of(world.agent.messages[1])
    assert (part["state"], why in part["errorText"]) == ("output-error", True)


def test_a_turn_has_a_bounded_number_of_steps() -> None:
    world = asked()
    for step in range(3):
        world.ask_tool(f"c{step}", "go")
        world.finish("tool-calls")
        world.returned(step)
    assert len(world.called) == len(world.ran) == 3
    assert terminals(world.frames[1]) == [("r1", "completed")]
    assert loads(responses(world.frames[1])[-2].body) == {"type": "finish", "finishReason": "tool-calls"}


def test_a_call_id_that_comes_again_is_another_call() -> None:
    world = looking()
    world.returned("first")
    world.ask_tool("c1", "go", "{}")
    world.finish("tool-calls")
    assert [t.call_id for t in world.ran] == ["c1", "c1-2"]
    world.returned("second")
    world.finish()
    assert [p["output"] for p in calls_of(world.agent.messages[1])] == ["first", "second"]
    world.send(1, "r2", U2)
    world.ask_tool("c1", "go")
    world.finish()
    assert world.ran[-1].call_id == "c1-3"


def test_a_stop_ends_the_tool_and_its_call_is_repaired_before_the_next_model_call() -> None:
    world = looking(c2="go")
    world.returned("seen")
    assert world.cancel(1, "r1")[0] == AbortWork("r1")
    assert terminals(world.frames[1]) == [("r1", "aborted")]
    assert [p["state"] for p in calls_of(world.agent.messages[1])] == ["output-available", "input-available"]
    effects = world.send(1, "r2", U2)
    assert world.called[-1].messages == [
        ASKED_U1,
        {"role": "assistant", "content": "hm", "tool_calls": [function("c1"), function("c2", "go", "{}")]},
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
        {"role": "tool", "tool_call_id": "c2", "content": INTERRUPTED},
        {"role": "user", "content": "u2"},
    ]
    repair = next(
        i for i, e in enumerate(effects) if isinstance(e, Persist) and isinstance(e.writes[0], UpdateMessage)
    )
    told = effects[repair + 1]
    assert isinstance(told, Broadcast)
    assert isinstance(told.frame, ChatMessages)
    assert told.frame.messages == world.agent.messages
    assert len(world.ran) == 2


def test_only_unsettled_calls_are_repaired() -> None:
    settled = [
        call("a", "output-available", output=1),
        call("b", "output-error", errorText="x"),
        call("c", "output-denied"),
        {"type": "dynamic-tool", "toolCallId": "d", "toolName": "t", "state": "x", "result": 1},
        {"type": "text", "text": "tool-"},
        "nonsense",
    ]
    message: Message = {"id": "m", "role": "assistant", "parts": settled}
    assert repaired(message) is None
    open_calls = [call("e", "input-available"), {**call("f", "input-streaming"), "input": '{"k": 1}'}]
    mended = repaired({**message, "parts": settled + open_calls})
    assert mended is not None
    assert mended["parts"][:-2] == settled
    assert mended["parts"][-2:] == [
        call("e", "output-error", errorText=INTERRUPTED),
        {**call("f", "output-error", errorText=INTERRUPTED), "input": {"k": 1}},
    ]
    assert repaired({**message, "role": "user", "parts": open_calls}) is None


# ---- killed ---------------------------------------------------------------------------------


def after_crash(rows: Rows) -> World:
    """Another process on this journal; its turn ends without a further tool."""
    world = World(Tooled, rows=rows)
    assert world.ran == [], "no tool is run again"
    return world


def test_wherever_it_dies_no_call_runs_again_and_each_has_a_result() -> None:
    world = looking(c2="go")
    world.returned("seen")
    world.returned("gone")
    world.say("done")
    known: dict[str, Any] = {}
    for rows in world.history:
        for body in rows.chunks.get("r1", []):
            chunk = loads(body)
            if chunk["type"] == "tool-output-available":
                known[chunk["toolCallId"]] = chunk["output"]
        again = after_crash(rows)
        while again.calls:
            again.finish()
        for message in again.agent.messages:
            for part in calls_of(message):
                if part["toolCallId"] in known:
                    assert part["output"] == known[part["toolCallId"]]
                else:
                    assert (part["state"], part["errorText"]) == ("output-error", INTERRUPTED)
        assert again.ran == []
    assert known == {"c1": "seen", "c2": "gone"}


def test_a_crash_during_a_tool_keeps_what_is_settled_and_continues_the_message() -> None:
    world = looking(c2="go")
    world.returned("seen")
    world.crash()
    successor = run_id(NAME, "r1", 1)
    assert world.open_call == successor
    assert world.called[-1].messages == [
        ASKED_U1,
        {"role": "assistant", "content": "hm", "tool_calls": [function("c1"), function("c2", "go", "{}")]},
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
        {"role": "tool", "tool_call_id": "c2", "content": INTERRUPTED},
    ]
    world.say("on")
    world.finish()
    (answer,) = [m for m in world.agent.messages if m["role"] == "assistant"]
    assert answer["id"] == A1
    assert [p["type"] for p in answer["parts"]] == [
        "step-start",
        "text",
        "tool-look",
        "tool-go",
        "step-start",
        "text",
    ]
    assert len(world.ran) == 2


def test_a_prompt_that_ends_in_words_behind_a_result_asks_to_go_on() -> None:
    world = looking()
    world.returned("seen")
    world.say("half")
    world.crash()
    assert world.called[-1].messages[2:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
        {"role": "assistant", "content": "half"},
        {"role": "user", "content": GO_ON},
    ]
