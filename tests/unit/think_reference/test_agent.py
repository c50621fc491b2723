"""The agent that the kit talks to: what `configure` stores and when it counts."""

from __future__ import annotations

from typing import Any

import pytest

from reference_world import World, user
from think_conformance.wire.frames import RpcRequest, RpcResponse
from think_reference.agent import ConformanceAgent, Think
from think_reference.core.application import Storage
from think_reference.core.effects import Evict, Persist, PutMeta, Send
from think_reference.core.events import Received


def configured(**options: Any) -> tuple[World, list[Any]]:
    world = World(ConformanceAgent)
    world.connect(1)
    return world, world.on(Received(1, RpcRequest(id="x", method="configure", args=[options])))


def test_options_are_stored_before_the_answer_and_in_force_after_a_restart() -> None:
    world, effects = configured(prepareDelayMs=250, terminalMessage="sorry")
    assert effects == [
        Persist((PutMeta("app.configuration", {"prepareDelayMs": 250, "terminalMessage": "sorry"}),)),
        Send(1, RpcResponse(id="x", success=True, done=True)),
    ]
    world.send(1, "r1", user("u1"))
    assert world.timers == {}, "not before it is loaded again"
    world.crash()
    (at,) = world.timers.values()
    assert at == world.now + 0.25


@pytest.mark.parametrize("options", [{"prepareDelay": 1}, {"maxAttempts": "two"}])
def test_an_option_that_is_unknown_or_wrong_is_refused(options: dict[str, Any]) -> None:
    world, effects = configured(**options)
    (send,) = effects
    assert not send.frame.success
    assert next(iter(options)) in send.frame.error
    assert world.rows.meta == {}


@pytest.mark.parametrize(("given", "used"), [(2.9, 2), (0, 1), (-3, 1), (10, 10)])
def test_attempts_are_floored_and_at_least_one(given: float, used: int) -> None:
    agent = ConformanceAgent(Storage({"app.configuration": {"maxAttempts": given}}))
    assert agent.max_attempts == used


def test_without_configuration_the_defaults_are_those_of_the_class() -> None:
    agent = ConformanceAgent(Storage({}))
    assert (agent.max_attempts, agent.prepare_delay_ms, agent.terminal_message) == (
        Think.max_attempts,
        Think.prepare_delay_ms,
        Think.terminal_message,
    )


@pytest.mark.parametrize("open_turn", [False, True])
def test_evict_drops_the_agent_without_an_answer_and_wakes_it_only_for_an_open_turn(open_turn: bool) -> None:
    world, _ = configured(keepAliveIntervalMs=400)
    world.crash()
    world.connect(1)
    if open_turn:
        world.send(1, "r1", user("u1"))
    effects = world.on(Received(1, RpcRequest(id="e", method="evict", args=[])))
    assert effects == [Evict(world.now + 0.4 if open_turn else None)]
