"""A target on trial: started by itself, then probed, one plan after the other.

Owns the watching of a start. What is found wrong, `targets/diagnosis.py` says.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from think_conformance.history.op import History
from think_conformance.history.views import View
from think_conformance.plan import About
from think_conformance.shell import ports
from think_conformance.shell.case import Case, heading
from think_conformance.shell.instance import Instance
from think_conformance.shell.prepare import prepare
from think_conformance.shell.process import TargetNotReady, TargetProcess
from think_conformance.shell.recorder import Recorder
from think_conformance.shell.store import Store
from think_conformance.shell.world import World
from think_conformance.targets.contract import Target
from think_conformance.targets.diagnosis import Diagnosis, Probe, Start, no_restart, of_file, of_start, probes

SEED = 0
"""No probe leaves anything to chance."""
PROBE_S = 60.0
DAEMON_S = 2.0
"""How long a port may take to be taken by what a target that ended at once has left behind."""


async def on_trial(target: Target, store: Store, tell: Callable[[str], None]) -> list[Diagnosis]:
    """Everything found wrong with a target that is started by command. `tell` gets a line per probe. Plans,
    histories and the target's log are left in the store."""
    await prepare(target, tell)
    async with AsyncExitStack() as stack:
        data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="think-")))
        world = World(SEED)
        await world.start()
        stack.push_async_callback(world.close)
        log = store.folder / "target.log"
        instance = Instance(target, data / "data", log, world.environment, (), SEED)
        if failed := await _start(instance):
            return [*of_file(target), of_start(failed)]
        stack.push_async_callback(instance.stop)
        return [*of_file(target), *await _probed(instance, world, store, tell)]


async def _start(instance: Instance) -> Start | None:
    """Starts it; what was seen meanwhile when that fails."""
    process = instance.process
    assert isinstance(process, TargetProcess), "what runs behind a URL is not started"
    starting = asyncio.create_task(instance.start())
    elsewhere: frozenset[int] = frozenset()
    try:
        while not starting.done():
            if process.alive and process.pid is not None:
                elsewhere = ports.listening(process.pid) or elsewhere
            await asyncio.wait([starting], timeout=0.1)
        await starting
    except TargetNotReady as error:
        if process.port in elsewhere:
            elsewhere = frozenset()
        held = await _held(process.port) if not elsewhere else False
        return Start(reason=str(error), port=process.port, elsewhere=elsewhere, held=held)
    finally:
        starting.cancel()
        await asyncio.wait([starting])
    return None


async def _held(port: int) -> bool:
    """Whether somebody has, or soon takes, the port of a target that is gone."""
    deadline = asyncio.get_running_loop().time() + DAEMON_S
    while ports.is_free(port):
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(0.05)  # nobody tells when a port is taken
    return True


async def _probed(
    instance: Instance, world: World, store: Store, tell: Callable[[str], None]
) -> list[Diagnosis]:
    found: list[Diagnosis] = []
    nonce = secrets.token_hex(3)
    for probe in probes(instance.target):
        try:
            history = await _play(probe, f"probe-{probe.id}-{nonce}", instance, world, store)
        except TargetNotReady as error:
            return [*found, no_restart(str(error))]
        told = list(probe.find(View(history)))
        found += told
        tell(f"{probe.id}: {', '.join(d.name for d in told) or 'ok'} ({probe.title})")
        if told and (probe.vital or not instance.alive):
            break
    return found


async def _play(probe: Probe, name: str, instance: Instance, world: World, store: Store) -> History:
    scenario, target = probe.scenario, instance.target
    plan = msgspec.structs.replace(scenario.plan, about=About(scenario.id, scenario.title))
    store.save_plan(scenario.id, plan)
    recorder = Recorder(store.history(scenario.id))
    try:
        recorder.append("run", "case", {}, heading(scenario.id, name, scenario, plan, target, SEED))
        await instance.ensure_running()
        await Case(scenario, name, instance, world, recorder).play(PROBE_S + target.heartbeat_s)
    finally:
        recorder.close()
    return recorder.records
