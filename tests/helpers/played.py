"""Cases of one's own, played in the process of the test against the reference that comes with the kit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from think_conformance.plan import Plan
from think_conformance.scenarios.base import Scenario
from think_conformance.shell.instance import Instance
from think_conformance.shell.recorder import Recorder
from think_conformance.shell.world import World
from think_conformance.targets.contract import load_target


@asynccontextmanager
async def reference(folder: Path, seed: int = 0) -> AsyncIterator[tuple[Instance, World]]:
    """A running reference and the world behind it. `folder` is its own and made by it."""
    async with AsyncExitStack() as stack:
        world = World(seed)
        await world.start()
        stack.push_async_callback(world.close)
        log = folder.with_suffix(".log")
        instance = Instance(load_target("reference"), folder, log, world.environment, (), seed)
        await instance.start()
        stack.push_async_callback(instance.stop)
        yield instance, world


def recorder() -> Recorder:
    """One that holds the head of a history and writes nothing."""
    made = Recorder(None)
    head = {"case": "case.mine", "claims": [], "exercises": [], "plan": {"version": 1}}
    made.append("run", "case", {}, head)
    return made


def scenario(**plan: Any) -> Scenario:
    """A plan as plain data, without `version`, as a scenario."""
    built = msgspec.convert({"version": 1, **plan}, Plan)
    return Scenario(id="case.mine", title="", exercises=(), plan=built)
