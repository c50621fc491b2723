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

import msgspec

from think_conformance.accounting import Account, scored
from think_conformance.baseline import Baseline, apply
from think_conformance.checkers.base import State, Verdict, exit_code, worst
from think_conformance.checkers.tally import Tally
from think_conformance.history.op import History
from think_conformance.plan import About, TargetPart
from think_conformance.scenarios.base import Scenario
from think_conformance.shell.case import Case, heading
from think_conformance.shell.ending import gravest
from think_conformance.shell.instance import Instance
from think_conformance.shell.prepare import prepare
from think_conformance.shell.recorder import Recorder
from think_conformance.shell.store import Store
from think_conformance.shell.world import ANY, World
from think_conformance.targets import reach
from think_conformance.targets.contract import Target, address
from think_proxy.carriers.abilities import EMBEDDED


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What one run does. `repeat` plays each scenario that often; `profiles` are the ones judged
    (empty: all), held against `baseline`; `nonce` makes the agent names of this run its own; `timeout_s` is
    for one case, `time_limit_s` for all of them together; `revision` is the set of requirements that scores
    (None: all do); `total` how many scenarios there were to select from; `carrier` carries the faults."""

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
    time_limit_s: float | None = None
    revision: int | None = None
    total: int = 0
    carrier: str = EMBEDDED


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A case that is over. `missing` says why it was not played, or not to its end: what of the target it
    needs and there is not, or that the time was up. Such a case has no history that counts."""

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

SAVE_AFTER_S = 1.0
"""How soon, at the earliest, what is known so far is written again while cases go on."""
SAVE_SHARE = 0.05
"""What part of a run, at most, goes into that: the more there is, the longer it takes."""


class Run:
    """One run, played once. `tell` gets the lines of the target's own preparation."""

    def __init__(
        self, options: Options, store: Store, progress: Progress, tell: Callable[[str], None]
    ) -> None:
        self._options = options
        self._store = store
        self._progress = progress
        self._tell = tell
        self._save_at_s = 0.0
        self._shared: Instance | None = None
        self._starting = asyncio.Lock()
        self._tally = Tally(options.profiles)
        self._over: set[str] = set()
        self._left = dict(self._cases())
        self._account = Account(options.total * options.repeat, self._left)
        self._refused = {s.id: reach.refused(s, options.carrier) for s in options.scenarios}

    @property
    def verdicts(self) -> list[Verdict]:
        """All so far, each repeat in view of the others, and held against the baseline."""
        return self._held(self._tally.verdicts, self._over)

    async def play(self) -> int:
        """Every case; the exit code that the verdicts mean. Raises TargetNotReady and UsageError."""
        self._store.save_accounting(self._account.so_far)
        for scenario, why in self._refused.items():
            if why:
                self._tell(f"{scenario} is not played: {why}")
        await prepare(self._options.target, self._tell)
        async with AsyncExitStack() as stack:
            self._stack = stack
            self._data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="think-")))
            self._world = _world(self._options)
            await self._world.start()
            stack.push_async_callback(self._world.close)
            try:
                await self._play_all()
            finally:
                self._save()
        return exit_code(scored(self.verdicts, self._options.revision))

    async def _play_all(self) -> None:
        slots = asyncio.Semaphore(1 if self._alone else self._options.jobs)
        limit = asyncio.timeout(self._options.time_limit_s)
        try:
            async with limit, asyncio.TaskGroup() as group:
                for case, scenario in self._cases():
                    group.create_task(self._in_turn(slots, case, scenario))
        except ExceptionGroup as failed:
            raise gravest(failed.exceptions) from None
        except TimeoutError:
            why = (
                f"not run to its end: the time limit of {self._options.time_limit_s:g} s for the run was over"
            )
            for case, scenario in list(self._left.items()):
                verdicts = self._tally.skip(case, scenario.exercises, why, "inconclusive")
                self._ended(Ended(case=case, verdicts=verdicts, history=[], took_s=0, missing=why))

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
            missing = reach.missing(self._options.target, scenario) or self._refused[scenario.id]
            history = [] if missing else await self._play_one(case, scenario)
            if missing:
                verdicts = self._tally.skip(case, scenario.exercises, missing)
            else:
                verdicts = self._tally.judge(case, history)
            self._over.add(scenario.id)
            verdicts, took_s = self._held(verdicts, {scenario.id}), time.monotonic() - started
            self._ended(Ended(case=case, verdicts=verdicts, history=history, took_s=took_s, missing=missing))

    def _ended(self, ended: Ended) -> None:
        """Writes down that a case is over, and tells it."""
        if ended.missing:
            self._account.left(ended.case, ended.missing)
        else:
            self._account.ran(ended.case)
        del self._left[ended.case]
        if time.monotonic() >= self._save_at_s:
            self._save()
        self._progress(ended)

    def _save(self) -> None:
        """Everything known so far."""
        began = time.monotonic()
        self._store.save_verdicts(self.verdicts)
        self._store.save_accounting(self._account.so_far)
        ended = time.monotonic()
        self._save_at_s = ended + max(SAVE_AFTER_S, (ended - began) / SAVE_SHARE)

    def _held(self, verdicts: list[Verdict], played: set[str]) -> list[Verdict]:
        return apply(self._options.baseline, verdicts, played, self._options.profiles)

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
            head = heading(case, name, scenario, plan, options.target, options.seed)
            recorder.append("run", "case", {}, head)
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
        world = self._world.environment
        instance = Instance(
            options.target, data, log, world, self._args, options.seed, carrier=options.carrier
        )
        await instance.start()
        return instance

    async def _share(self) -> Instance:
        async with self._starting:
            if self._shared is None:
                self._shared = await self._start(None)
                self._stack.push_async_callback(self._shared.stop)
            return self._shared


def _world(options: Options) -> World:
    """Where a service that runs already was told to find it."""
    given = (options.target.model_listen, options.target.effects_listen)
    places = (ANY if where is None else address(where) for where in given)
    return World(options.seed, *places, carrier=options.carrier)
