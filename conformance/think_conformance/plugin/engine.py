"""One run of the kit on a thread of its own: started once, asked for case by case, stopped at the end."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from think_conformance.baseline import Compared
from think_conformance.scenarios.base import Scenario
from think_conformance.shell.ending import INTERRUPTED
from think_conformance.shell.logbook import logbook
from think_conformance.shell.order import Order
from think_conformance.shell.run import Ended, Options, Run
from think_conformance.shell.store import Store, fresh_folder


class Engine:
    """Plays cases in parallel, as many at a time as the options say. Not started until it is told to.
    `told` grows by lines for the user; `at_odds` tells what only the whole of a run shows to be otherwise
    than the baseline says, and no case by itself."""

    def __init__(self, order: Order, options: Options) -> None:
        self._order = order
        self._options = options
        self._running = threading.Event()
        self._outcomes: dict[str, Future[Ended]] = {}
        self._thread: threading.Thread | None = None
        self._broke: BaseException | None = None
        self.store: Store | None = None
        self.told: list[str] = []
        self.at_odds: list[str] = []

    def start(self, scenarios: list[Scenario], out: Path | None) -> None:
        """Begin to play these, once. UsageError when the folder cannot be used."""
        if self._thread is not None:
            return
        self.store = Store(out or fresh_folder())
        self._outcomes = {scenario.id: Future() for scenario in scenarios}
        options = replace(self._options, scenarios=scenarios)
        self._thread = threading.Thread(
            target=self._play, args=(options, self.store), name="think-conformance"
        )
        self._thread.start()
        self._running.wait()

    def outcome(self, case: str) -> Ended:
        """Waits until the case is over. Raises what ended the run, if that came first."""
        return self._outcomes[case].result()

    def stop(self) -> None:
        """End the run, cut short if cases are left; returns when nothing of it runs any more. Raises what
        ended the run before that."""
        if self._thread is None:
            return
        if not all(outcome.done() for outcome in self._outcomes.values()):
            with suppress(RuntimeError):  # it ended by itself just now
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()
        if self._broke is not None:
            raise self._broke

    def _play(self, options: Options, store: Store) -> None:
        try:
            with logbook(self._order, options, store, self.told.append) as ending:
                ending.exit_code = asyncio.run(self._run(options, store))
        except BaseException as error:
            self._broke = error
        finally:
            self._running.set()
            ended = self._broke or asyncio.CancelledError("the run was stopped")
            for outcome in self._outcomes.values():
                if not outcome.done():
                    outcome.set_exception(ended)

    async def _run(self, options: Options, store: Store) -> int:
        run = Run(
            options, store, lambda ended: self._outcomes[ended.case].set_result(ended), self.told.append
        )
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.ensure_future(run.play())
        self._running.set()
        try:
            code = await self._task
        except asyncio.CancelledError:
            return INTERRUPTED
        self.at_odds = [
            f"{verdict.state.upper()} {verdict.requirement} {verdict.case}: {verdict.reason}"
            for verdict in run.verdicts
            if isinstance(verdict, Compared) and verdict.baseline and verdict.baseline.case is None
            if verdict.state in ("unexpected-pass", "not-testable")
        ]
        return code
