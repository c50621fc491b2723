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
from think_reference.shell.driver import RETRY_S, Driver
from think_reference.shell.journal import Journal, JournalError, LoadError, path_of, unfinished
from think_reference.shell.model import Model

_log = logging.getLogger(__name__)

UNLOAD_S = 60.0
"""How long an agent is at least idle before it leaves memory; twice that at most."""

Key = tuple[str, str]
"""(kebab class name, agent name)"""


class Host:
    """`classes` by binding name."""

    def __init__(
        self,
        classes: Mapping[str, Callable[[Storage], Think]],
        folder: Path,
        model: Model,
        *,
        policies: Policies | None = None,
        durable: bool = False,
        unload_s: float = UNLOAD_S,
    ) -> None:
        self._classes = {kebab(binding): cls for binding, cls in classes.items()}
        self._folder, self._model = folder, model
        self._policies, self._durable = policies, durable
        self._unload_s = unload_s
        self._drivers: dict[Key, Driver] = {}
        self._wakes: dict[Key, asyncio.TimerHandle] = {}
        self._sweeper: asyncio.Task[None] | None = None

    def serves(self, kind: str) -> bool:
        """Whether there is a class of this kebab name."""
        return kind in self._classes

    def restore(self) -> None:
        """Load every agent with unfinished work: it is put back before anyone can connect; one that
        cannot be loaded is set aside. From now on idle agents leave memory. Raises JournalError."""
        for kind, name in unfinished(self._folder):
            if self.serves(kind):
                with suppress(LoadError):
                    self.agent(kind, name)
        self._sweeper = asyncio.ensure_future(self._sweep())

    def agent(self, kind: str, name: str) -> Driver:
        """The agent, loaded if it was not; raises JournalError and, logged, LoadError."""
        key = (kind, name)
        driver = self._drivers.get(key) or self._driver(key)
        try:
            driver.load()
        except LoadError as error:
            _log.error("%s", error)
            raise
        self._drivers[key] = driver
        if wake := self._wakes.pop(key, None):
            wake.cancel()
        return driver

    def stop(self) -> None:
        """Stop every agent."""
        for timer in (self._sweeper, *self._wakes.values()):
            if timer is not None:
                timer.cancel()
        for driver in self._drivers.values():
            driver.stop()

    def _driver(self, key: Key) -> Driver:
        kind, name = key
        path = path_of(self._folder, kind, name)
        return Driver(
            f"{kind}/{name}",
            partial(Agent, name, kind, self._classes[kind], self._policies),
            partial(Journal, path, kind, name, durable=self._durable),
            self._model,
            partial(self._on_dropped, key),
        )

    def _on_dropped(self, key: Key, wake_s: float | None) -> None:
        del self._drivers[key]
        if wake_s is not None:
            self._wake_in(wake_s, key)

    def _wake_in(self, wake_s: float, key: Key) -> None:
        self._wakes[key] = asyncio.get_running_loop().call_later(wake_s, self._wake, key)

    def _wake(self, key: Key) -> None:
        """The heartbeat of an agent that nobody connected to since it was dropped (TURN-29). While its
        journal cannot be had it is tried again: it may be owed a recovery."""
        try:
            with suppress(LoadError):
                self.agent(*key)
        except JournalError:  # told when it was dropped
            self._wake_in(RETRY_S, key)

    async def _sweep(self) -> None:
        """Let agents leave memory to which nothing happened since the last sweep; for ever."""
        while True:
            await asyncio.sleep(self._unload_s)
            for key in list(self._drivers):
                if driver := self._drivers.get(key):
                    driver.doze()
                    if not driver.loaded and not driver.connected:
                        del self._drivers[key]
                    await asyncio.sleep(0)  # closing a file takes the disk's time: one by one
