"""A whole run: which cases, on which process of the target, in parallel, into one run directory.

Cases whose plan kills have a process of their own; the others share one, started at first use. One
scripted model serves all. Whatever was observed is on disk when the run is cut short.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from think_conformance.baseline import Baseline, apply
from think_conformance.checkers.base import State, Verdict, exit_code, worst
from think_conformance.checkers.tally import Tally
from think_conformance.history.op import History
from think_conformance.plan import About, TargetPart
from think_conformance.scenarios.base import Scenario
from think_conformance.shell.case import Case
from think_conformance.shell.ending import gravest
from think_conformance.shell.instance import Instance
from think_conformance.shell.prepare import prepare
from think_conformance.shell.recorder import Recorder
from think_conformance.shell.store import Store
from think_conformance.shell.world import World
from think_conformance.targets.contract import Target


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What one run does. `repeat` plays each scenario that often; `profiles` are the ones judged
    (empty: all), held against `baseline`; `nonce` makes the agent names of this run its own."""

    target: Target
    scenarios: list[Scenario]
    profiles: frozenset[str]
    seed: int
    nonce: str
    jobs: int
    repeat: int = 1
    timeout_s: float = 60.0
    defect: str | None = None
    baseline: Baseline = Baseline()


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A finished case. `missing` says what of the target it needs and there is not: such a case was not
    played and has no history."""

    case: str
    verdicts: list[Verdict]
    history: History
    took_s: float
    missing: str = ""

    @property
    def state(self) -> State:
        """Its worst."""
        if self.missing and not self.verdicts:
            return "not-applicable"
        return worst(verdict.state for verdict in self.verdicts)


Progress = Callable[[Ended], None]
"""Told once per case."""


class Run:
    """One run, played once. `tell` gets the lines of the target's own preparation."""

    def __init__(
        self, options: Options, store: Store, progress: Progress, tell: Callable[[str], None]
    ) -> None:
        self._options = options
        self._store = store
        self._progress = progress
        self._tell = tell
        self._shared: Instance | None = None
        self._starting = asyncio.Lock()
        self._tally = Tally(options.profiles)
        self._over: set[str] = set()

    @property
    def verdicts(self) -> list[Verdict]:
        """All so far, each repeat in view of the others, and held against the baseline."""
        return self._held(self._tally.verdicts, self._over)

    async def play(self) -> int:
        """Every case; the exit code that the verdicts mean. Raises TargetNotReady and UsageError."""
        await prepare(self._options.target, self._tell)
        async with AsyncExitStack() as stack:
            self._stack = stack
            self._data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="think-")))
            self._world = World(self._options.seed)
            await self._world.start()
            stack.push_async_callback(self._world.close)
            slots = asyncio.Semaphore(1 if self._alone else self._options.jobs)
            try:
                async with asyncio.TaskGroup() as group:
                    for case, scenario in self._cases():
                        group.create_task(self._in_turn(slots, case, scenario))
            except ExceptionGroup as failed:
                raise gravest(failed.exceptions) from None
        return exit_code(self.verdicts)

    @property
    def _alone(self) -> bool:
        """A target with a port of the user's choice runs once at a time."""
        return self._options.target.port is not None

    @property
    def _args(self) -> tuple[str, ...]:
        defect = self._options.defect
        return (*self._options.target.defect_args, defect) if defect else ()

    def _cases(self) -> list[tuple[str, Scenario]]:
        return [
            (scenario.id if again == 0 else f"{scenario.id}@{again + 1}", scenario)
            for again in range(self._options.repeat)
            for scenario in self._options.scenarios
        ]

    async def _in_turn(self, slots: asyncio.Semaphore, case: str, scenario: Scenario) -> None:
        async with slots:
            started = time.monotonic()
            missing = self._out_of_reach(scenario)
            history = [] if missing else await self._play_one(case, scenario)
            if missing:
                verdicts = self._tally.skip(case, scenario.exercises, missing)
            else:
                verdicts = self._tally.judge(case, history)
            self._over.add(scenario.id)
            self._store.save_verdicts(self.verdicts)
            verdicts, took_s = self._held(verdicts, {scenario.id}), time.monotonic() - started
            self._progress(
                Ended(case=case, verdicts=verdicts, history=history, took_s=took_s, missing=missing)
            )

    def _held(self, verdicts: list[Verdict], played: set[str]) -> list[Verdict]:
        return apply(self._options.baseline, verdicts, played, self._options.profiles)

    def _out_of_reach(self, scenario: Scenario) -> str:
        target = self._options.target
        needs = sorted(scenario.needs) if target.start is None else []
        legs = sorted(scenario.legs - set(target.legs))
        if needs:
            return f"needs: {', '.join(needs)}"
        return f"needs: leg {', '.join(legs)}" if legs else ""

    async def _play_one(self, case: str, scenario: Scenario) -> History:
        options = self._options
        name = f"{case.replace('.', '-').replace('@', '-')}-{options.nonce}"
        about = About(scenario.id, scenario.title, scenario.exercises)
        plan = msgspec.structs.replace(
            scenario.plan, seed=options.seed, about=about, target=TargetPart(options.defect)
        )
        self._store.save_plan(case, plan)
        recorder = Recorder(self._store.history(case))
        try:
            recorder.append("run", "case", {}, self._heading(case, name, scenario, plan))
            own = self._alone or "restart" in scenario.needs
            instance = await (self._start(case) if own else self._share())
            try:
                await Case(scenario, name, instance, self._world, recorder).play(options.timeout_s)
            finally:
                if own:
                    await instance.stop()
        finally:
            recorder.close()
        return recorder.records

    async def _start(self, case: str | None) -> Instance:
        folder = self._store.case(case) if case else self._store.folder
        data = self._data / (case or "shared")
        options, log = self._options, folder / "target.log"
        instance = Instance(options.target, data, log, self._world.environment, self._args, options.seed)
        await instance.start()
        return instance

    async def _share(self) -> Instance:
        async with self._starting:
            if self._shared is None:
                self._shared = await self._start(None)
                self._stack.push_async_callback(self._shared.stop)
            return self._shared

    def _heading(self, case: str, name: str, scenario: Scenario, plan: Any) -> dict[str, Any]:
        target = self._options.target
        return {
            "case": case,
            "scenario": scenario.id,
            "title": scenario.title,
            "exercises": list(scenario.exercises),
            "target": target.name,
            "claims": list(target.claims),
            "kind": target.kind,
            "facts": target.facts,
            "heartbeat_s": target.heartbeat_s,
            "seed": self._options.seed,
            "name": name,
            "plan": msgspec.to_builtins(plan),
        }
