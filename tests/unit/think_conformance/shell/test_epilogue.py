"""The end of a case reaches a target that a fault froze, asked to end or killed, and no other gets hurt."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from played import recorder, reference, scenario
from think_conformance.history.op import History
from think_conformance.scenarios.base import Scenario, saw_delta, words
from think_conformance.shell.case import Case
from think_conformance.shell.client import Client
from think_conformance.shell.instance import Instance
from think_conformance.shell.process import KilledWhileStarting, TargetNotReady
from think_conformance.shell.world import World


def struck_by(*actions: str) -> Scenario:
    """A turn that the model holds after two words, and what a fault then does to the process."""
    fault = {
        "id": "strike",
        "leg": "target",
        "when": {"seen": saw_delta("a", 2)},
        "do": [{"process": action} for action in actions],
    }
    return scenario(
        model={"t1": [[*words(1, 2), {"gate": "g"}, "done"], ["done"], ["done"]]},
        operations=[
            {"client": "a", "do": "connect"},
            {"client": "a", "do": "send", "turn": "t1"},
            {"do": "wait", "after": {"fault": "strike"}},
        ],
        faults=[fault] if actions else [],
    )


QUIET = scenario(operations=[{"client": "a", "do": "connect"}])


async def play(case: Scenario, instance: Instance, world: World, name: str = "mine") -> History:
    recorded = recorder()
    async with asyncio.timeout(30):
        await Case(case, name, instance, world, recorded).play(10)
    return recorded.records


def phases(history: History) -> list[str]:
    return [r.payload["phase"] for r in history if r.kind == "epilogue"]


def actions(history: History) -> list[str]:
    return [r.payload["action"] for r in history if r.kind == "process"]


@pytest.mark.parametrize(
    ("struck", "came"),
    [
        (["pause"], ["ready", "pause", "continue"]),
        (["term"], ["ready", "term", "exit", "start", "ready"]),
        (["pause", "term"], ["ready", "pause", "term", "continue", "exit", "start", "ready"]),
        (["kill"], ["ready", "kill", "exit", "start", "ready"]),
    ],
)
async def test_the_truth_is_asked_of_a_target_that_runs(
    tmp_path: Path, struck: list[str], came: list[str]
) -> None:
    async with reference(tmp_path / "one") as (instance, world):
        history = await play(struck_by(*struck), instance, world)
    assert phases(history) == ["begin", "idle", "end"]
    assert actions(history) == came
    assert any(r.kind == "ok" and r.payload.get("messages") for r in history)


async def test_cases_that_end_on_one_dead_target_bring_it_back_once(tmp_path: Path) -> None:
    async with reference(tmp_path / "one") as (instance, world):
        await instance.perform("kill")
        histories = await asyncio.gather(*(play(QUIET, instance, world, f"mine-{n}") for n in range(3)))
        assert instance.epoch == 2
    assert [phases(history) for history in histories] == [["begin", "idle", "end"]] * 3


async def test_a_target_that_dies_while_it_is_dialled_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reference(tmp_path / "one") as (instance, world):
        dial = Client.connect

        async def die_first(client: Client, **how: Any) -> bool:
            if instance.epoch == 1:
                await instance.perform("kill")
            return await dial(client, **how)

        monkeypatch.setattr(Client, "connect", die_first)
        history = await play(scenario(), instance, world)
        assert instance.epoch == 2
    assert phases(history) == ["begin", "idle", "end"]


@pytest.mark.parametrize("error", [TargetNotReady, KilledWhileStarting])
async def test_a_target_that_does_not_come_back_is_noted_and_ends_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    async def stay_away(instance: Instance) -> None:
        raise error("it stays away")

    monkeypatch.setattr(Instance, "ensure_running", stay_away)
    async with reference(tmp_path / "one") as (instance, world):
        history = await play(scenario(), instance, world)
    assert phases(history) == ["begin", "deadline", "end"]
    assert "it stays away" in [r.payload["reason"] for r in history if r.kind == "info"]
