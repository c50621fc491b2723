"""What every carrier does alike: it arms, lets the engine decide, runs what was decided, and heals."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable

from think_proxy import journal as records
from think_proxy.carriers.strike import Process, Strike
from think_proxy.engine import Carrier, Engine
from think_proxy.journal import Done, Journal
from think_proxy.plan import Fault

CLOSE_S = 2.0
"""How long a carrier has to end in order."""


class Proxy(ABC):
    """One listener, one upstream, one leg."""

    def __init__(
        self,
        does: Carrier,
        *,
        journal: Journal,
        process: Process | None,
        seed: int,
        address: tuple[str, int],
    ) -> None:
        self._journal = journal
        self._process = process
        self._address = address
        self._engine = Engine(does, seed)
        self._journals: dict[str, Journal] = {}
        self._strikes: dict[Strike, asyncio.Task[None]] = {}

    @property
    def port(self) -> int:
        """The port it listens on: the real one once started."""
        return self._address[1]

    @abstractmethod
    async def start(self) -> None:
        """Listens. OSError when the address cannot be had."""

    def arm(self, faults: Iterable[Fault], scope: str, *, journal: Journal | None = None) -> None:
        """Arms faults for what lies in `scope`; all of them or none. On a leg of WebSockets that is the
        connections at or below a path, open ones included, behind the target the exchanges that contain a
        text, but for those under way. Raises Unsupported; ValueError for an id that is armed already."""
        faults = list(faults)
        self._engine.arm(faults, scope)
        if journal is not None:
            self._journals[scope] = journal
        for fault in faults:
            records.planned(self._journal_of(scope), fault)

    async def heal(self, scope: str | None) -> None:
        """Disarms this scope (None: all) and lifts what its faults still do. Returns when their lists
        are over, at the latest when their time is up. A black hole ends in a reset."""
        self._engine.disarm(scope)
        struck = {one: task for one, task in self._strikes.items() if scope in (None, one.firing.scope)}
        for strike in struck:
            strike.heal()
        await asyncio.gather(*struck.values())
        for known in [scope] if scope is not None else list(self._journals):
            self._journals.pop(known, None)

    @abstractmethod
    async def close(self) -> None:
        """Stops listening, stops all lists and drops every connection."""

    async def lost(self) -> str:
        """Returns, with the reason, when it can carry no more and its owner did not will it: what runs in
        the process of its owner never does."""
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never

    def _run(self, strike: Strike) -> None:
        """Begins what was fired."""
        journal = self._journal_of(strike.firing.scope)

        def done(did: list[str], outcome: Done, reason: str) -> None:
            records.done(journal, strike.firing, did, outcome, reason)

        task = asyncio.get_running_loop().create_task(strike.run(done))
        self._strikes[strike] = task
        task.add_done_callback(lambda _: self._forget(strike))

    def _forget(self, strike: Strike) -> None:
        """A strike is over with its list."""
        self._strikes.pop(strike, None)

    def _cancelled(self) -> list[asyncio.Task[None]]:
        """All lists, stopped where they are."""
        tasks = list(self._strikes.values())
        for task in tasks:
            task.cancel()
        return tasks

    def _journal_of(self, scope: str) -> Journal:
        return self._journals.get(scope, self._journal)
