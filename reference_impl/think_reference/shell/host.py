"""The agents of this process: which classes there are, and which agents are loaded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from think_reference.agent import Think
from think_reference.core.agent import Agent
from think_reference.core.application import Storage
from think_reference.core.names import kebab
from think_reference.core.policies import Policies
from think_reference.shell.driver import Driver
from think_reference.shell.journal import Journal, JournalError, LoadError, path_of, unfinished
from think_reference.shell.model import Model

_log = logging.getLogger(__name__)

UNLOAD_S = 60.0
"""How long an agent is at least idle before it is unloaded; twice that at most."""

Key = tuple[str, str]
"""(kebab class name, agent name)"""


class Host:
    """`classes` by binding name. `fatal` is told of an error that must end the process."""

    def __init__(
        self,
        classes: Mapping[str, Callable[[Storage], Think]],
        folder: Path,
        model: Model,
        fatal: Callable[[BaseException], None],
        *,
        policies: Policies | None = None,
        durable: bool = False,
        unload_s: float = UNLOAD_S,
    ) -> None:
        self._classes = {kebab(binding): cls for binding, cls in classes.items()}
        self._folder, self._model, self._fatal = folder, model, fatal
        self._policies, self._durable = policies, durable
        self._unload_s = unload_s
        self._drivers: dict[Key, Driver] = {}
        self._idle: set[Key] = set()
        self._wakes: dict[Key, asyncio.TimerHandle] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def serves(self, kind: str) -> bool:
        """Whether there is a class of this kebab name."""
        return kind in self._classes

    def restore(self) -> None:
        """Load every agent with unfinished work: it is put back before anyone can connect; one that
        cannot be loaded is set aside. From now on idle agents are unloaded. Raises JournalError."""
        for kind, name in unfinished(self._folder):
            if self.serves(kind):
                with suppress(LoadError):
                    self.agent(kind, name)
        self._sweep()

    def agent(self, kind: str, name: str) -> Driver:
        """The agent, loaded if it was not; raises JournalError and, logged, LoadError."""
        key = (kind, name)
        self._idle.discard(key)
        if key not in self._drivers:
            try:
                self._drivers[key] = self._load(key)
            except LoadError as error:
                _log.error("%s", error)
                raise
            if wake := self._wakes.pop(key, None):
                wake.cancel()
        return self._drivers[key]

    def stop(self) -> None:
        """Stop every agent."""
        for timer in (self._sweeper, *self._wakes.values()):
            if timer is not None:
                timer.cancel()
        for driver in self._drivers.values():
            driver.stop()

    def _load(self, key: Key) -> Driver:
        kind, name = key
        agent = Agent(name, kind, self._classes[kind], self._policies)
        journal = Journal(path_of(self._folder, kind, name), kind, name, durable=self._durable)
        driver = Driver(agent, journal, self._model, partial(self._on_evicted, key), self._fatal)
        try:
            driver.load()
        except (JournalError, LoadError):
            driver.stop()
            raise
        return driver

    def _on_evicted(self, key: Key, wake_s: float | None) -> None:
        del self._drivers[key]
        if wake_s is not None:
            self._wakes[key] = asyncio.get_running_loop().call_later(wake_s, self._wake, key)

    def _wake(self, key: Key) -> None:
        """The heartbeat of an agent that nobody connected to since it was dropped (TURN-29)."""
        try:
            with suppress(LoadError):
                self.agent(*key)
        except JournalError as error:
            self._fatal(error)

    def _sweep(self) -> None:
        """Unload what was idle at the last sweep too and was not asked for in between."""
        idle = {key for key, driver in self._drivers.items() if driver.idle}
        for key in idle & self._idle:
            self._drivers.pop(key).stop()
        self._idle = idle - self._idle
        self._sweeper = asyncio.get_running_loop().call_later(self._unload_s, self._sweep)
