"""The agents of this process: which classes there are, and which agents are loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from think_reference.agent import Think
from think_reference.core.agent import Agent
from think_reference.core.names import kebab
from think_reference.core.policies import Policies
from think_reference.shell.driver import Driver
from think_reference.shell.journal import Journal, JournalError, path_of, unfinished
from think_reference.shell.model import Model


class Host:
    """`classes` by binding name. `fatal` is told of an error that must end the process."""

    def __init__(
        self,
        classes: dict[str, type[Think]],
        folder: Path,
        model: Model,
        fatal: Callable[[BaseException], None],
        *,
        policies: Policies | None = None,
        durable: bool = False,
    ) -> None:
        self._classes = {kebab(binding): cls for binding, cls in classes.items()}
        self._folder, self._model, self._fatal = folder, model, fatal
        self._policies, self._durable = policies, durable
        self._drivers: dict[tuple[str, str], Driver] = {}

    def serves(self, kind: str) -> bool:
        """Whether there is a class of this kebab name."""
        return kind in self._classes

    def restore(self) -> None:
        """Load every agent with unfinished work: it is put back before anyone can connect."""
        for kind, name in unfinished(self._folder):
            if self.serves(kind):
                self.agent(kind, name)

    def agent(self, kind: str, name: str) -> Driver:
        """The agent, loaded if it was not; raises JournalError."""
        key = (kind, name)
        if key not in self._drivers:
            journal = Journal(path_of(self._folder, kind, name), kind, name, durable=self._durable)
            agent = Agent(name, kind, self._classes[kind], self._policies)
            driver = Driver(agent, journal, self._model, self._fatal)
            try:
                driver.load()
            except JournalError:
                driver.stop()
                raise
            self._drivers[key] = driver
        return self._drivers[key]

    def stop(self) -> None:
        """Stop every agent."""
        for driver in self._drivers.values():
            driver.stop()
