"""Plans in words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from think_conformance.narration import tell
from think_conformance.plan import Plan
from think_conformance.scenarios.base import DELTA, load, saw_delta, saw_frame


def told(**plan: Any) -> list[str]:
    return list(tell(msgspec.convert({"version": 1, **plan}, Plan)))


def fault(when: dict[str, Any], *do: dict[str, Any], leg: str = "client", **more: Any) -> str:
    (line,) = told(faults=[{"id": "f", "leg": leg, "when": when, "do": list(do), **more}])
    return line


def test_the_model_says_its_words_in_one_breath() -> None:
    steps = [{"text": "w1 "}, {"text": "w2 "}, {"gate": "g"}, {"tool": "pay", "args": {"key": "k"}}, "done"]
    assert told(model={"t1": [steps, ["done"]]}) == [
        'model, turn t1, call 1: says "w1 ", "w2 "; holds at gate `g`; calls pay(key k); ends',
        "model, turn t1, call 2: ends",
    ]


def test_operations_are_numbered_and_say_when() -> None:
    story = told(
        model={"t1": [[{"gate": "g"}, "done"]]},
        faults=[{"id": i, "leg": "client", "when": {}, "do": [{"cut": "reset"}]} for i in ("crash", "cut")],
        operations=[
            {"do": "connect", "client": "a"},
            {"do": "send", "client": "a", "turn": "t1", "text": "Hi.", "echo": "own-ids"},
            {"do": "stop", "client": "a", "turn": "t1", "after": {"seen": saw_delta("b", 2)}},
            {"do": "stop", "client": "b", "turn": "t1", "newest": True},
            {"do": "wait", "after": {"fault": "crash", "fired": "cut"}},
            {"do": "open-gate", "gate": "g", "after": {"seen": {"kind": "model-call", "nth": 3}}},
        ],
    )
    assert story[1:-2] == [
        "1. a connects",
        '2. a sends turn t1: "Hi.", repeating the conversation under own ids',
        "3. a stops turn t1, once b has received its 2nd text-delta chunk",
        "4. b stops turn t1, under the id it was shown last",
        "5. wait until fault `cut` has fired and fault `crash` is over",
        "6. gate `g` opens, once the model is called for the 3rd time",
    ]


def test_a_fault_says_where_when_and_what() -> None:
    crash = fault({"seen": saw_frame("b", type="cf_agent_chat_clear")}, {"process": "kill"}, leg="target")
    assert crash == "fault `f` strikes when b has received its 1st chat_clear frame: kill"
    cut = fault({"client": "a", "direction": "down", "nth": 11, **DELTA}, {"cut": {"close": 1012}}, times=2)
    assert cut.startswith(
        "fault `f` strikes on the client leg at the 11th text-delta chunk to a, up to 2 times"
    )
    assert cut.endswith(": close with 1012")
    stall = fault({"direction": "up"}, {"stall": {"for": 0.5}}, {"cut": "reset"}, leg="model")
    assert stall.startswith("fault `f` strikes on the model leg at the 1st message to the model: ")
    assert stall.endswith(": stall for 0.5 s, then cut (reset)")


def test_configuration_is_told() -> None:
    assert told(configure={"maxAttempts": 3, "on": True}) == [
        "the agent is configured with maxAttempts 3, on true"
    ]


@pytest.mark.parametrize("name", load())
def test_every_scenario_can_be_told(name: str) -> None:
    plan = load()[name].plan
    lines = list(tell(plan))
    assert len(lines) >= len(plan.operations) + len(plan.faults)
    for line in lines:
        assert line.isprintable()
        assert "Struct" not in line
        assert "None" not in line
