"""One case: an agent of the reference behind the proxy, the scripted model, official clients before it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec
from javascript import PATIENCE_S, Driver

from think_conformance.history.op import Kind, Record
from think_conformance.shell.case import named
from think_conformance.shell.client import Client, Endpoint
from think_conformance.shell.instance import Instance
from think_conformance.shell.ports import LOOPBACK
from think_conformance.shell.recorder import Recorder
from think_conformance.shell.world import World
from think_proxy.plan import Fault

_names = count(1)

SOCKET = {"minReconnectionDelay": 100, "maxReconnectionDelay": 400, "connectionTimeout": PATIENCE_S * 1000}
"""Options of the official client, milliseconds: it is back soon, where it would wait for seconds, and
leaves no connection because that is slow to open."""


NOTHING: dict[str, Any] = {"status": None, "error": None, "messages": [], "busy": False}
"""What a client shows before it shows anything."""


class Official:
    """One official client: a chat in Node, or a page. `shown` is what it says it shows now: status, error,
    messages, `busy` (any of the other flags of the hook that stand for work)."""

    def __init__(self, driver: Driver, name: str, kind: str, where: dict[str, Any]) -> None:
        self.kind = kind
        self._driver, self._name, self._where = driver, name, where
        self.shown: dict[str, Any] = NOTHING
        self.opened = 0
        self._moved = asyncio.Event()
        driver.listen(name, self._told)

    def _told(self, event: dict[str, Any]) -> None:
        self.shown = event.get("shown", self.shown)
        self.opened += event.get("opened", 0)
        self._moved.set()

    async def open(self) -> None:
        """Connected, with the transcript as it is now."""
        await self.do("open", kind=self.kind, where=self._where)

    async def do(self, what: str, **more: Any) -> None:
        """See the drivers: send, stop, refresh, leave, back, offline, online."""
        if what in ("leave", "refresh"):
            self.shown = NOTHING
        await self._driver.perform(self._name, what, **more)

    async def until(
        self, shows: Callable[[dict[str, Any]], bool], why: str, patience_s: float = PATIENCE_S
    ) -> None:
        """Returns when it shows that; AssertionError with what it shows instead."""
        await self._until(lambda: shows(self.shown), why, patience_s)

    async def until_opened(self, times: int) -> None:
        """Its socket has opened that often."""
        await self._until(lambda: self.opened >= times, f"opened {times} times", PATIENCE_S)

    async def _until(self, holds: Callable[[], bool], why: str, patience_s: float) -> None:
        try:
            async with asyncio.timeout(patience_s):
                while not holds():
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            raise AssertionError(
                f"not within {patience_s:g} s: {why}; opened {self.opened} times, it shows {self.shown}"
            ) from None


class Stage:
    """`turns`: model scripts. `faults`: as in a plan. Use as an async context manager."""

    def __init__(
        self,
        driver: Driver,
        world: World,
        instance: Instance,
        turns: dict[str, Any],
        faults: list[dict[str, Any]],
    ) -> None:
        self.name = f"interop-{next(_names)}"
        self.recorder = Recorder(None)
        self._driver, self._world, self._instance = driver, world, instance
        self._turns = named(turns, self.name)
        self._planned = faults
        self._faults: list[Fault] = []
        self._clients: list[Official] = []

    async def __aenter__(self) -> Stage:
        self._world.load(self.name, self._turns, self.recorder)
        self._instance.join(self.recorder)
        self.arm(self._planned)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.heal()
        self._instance.leave(self.recorder)
        self._world.unload(self.name)
        for client in self._clients:
            await client.do("close")

    def arm(self, faults: list[dict[str, Any]]) -> None:
        """Faults on the client leg, from now on."""
        armed = msgspec.convert([{"leg": "client", **fault} for fault in faults], list[Fault])
        self._instance.proxy.arm(armed, self._scope, journal=self._journal)
        self._faults += armed

    @property
    def _scope(self) -> str:
        return self._instance.scope(self.name)

    def _journal(self, kind: Any, ids: dict[str, Any], payload: Any) -> None:
        self.recorder.append("proxy", kind, ids, payload)

    async def client(self, kind: str, name: str = "a") -> Official:
        """A new one, connected. Faults know it by its name."""
        where = {
            "agent": self._instance.target.agent,
            "name": self.name,
            "host": f"{LOOPBACK}:{self._instance.proxy.port}",
            "id": f"{name}.1",
            **SOCKET,
        }
        client = Official(self._driver, f"{self.name}/{name}", kind, where)
        self._clients.append(client)
        await client.open()
        return client

    def says(self, turn: str) -> str:
        """What a user says to get the script of that turn."""
        return f"Say it. [[{self.name}/{turn}]]"

    async def seen(self, kind: Kind, nth: int = 1, **ids: Any) -> Record:
        """The nth record of that kind with these ids."""

        def matches(record: Record) -> bool:
            return record.kind == kind and ids.items() <= record.ids.items()

        record = await self.recorder.wait_for(matches, PATIENCE_S, nth)
        assert record is not None, f"not seen: {kind} {ids}"
        return record

    def count(self, kind: Kind) -> int:
        """How many records of that kind there are."""
        return sum(record.kind == kind for record in self.recorder.records)

    def open_gate(self, gate: str) -> None:
        """Let the model go on."""
        self._world.model.open_gate(self.name, gate)

    async def heal(self) -> None:
        """No fault any more; what was black-holed is reset."""
        await self._instance.proxy.heal(self._scope)

    @property
    def unfired(self) -> list[str]:
        """Faults that were planned and did not strike."""
        fired = {record.ids["fault"] for record in self.recorder.records if record.kind == "fault-fired"}
        return [fault.id for fault in self._faults if fault.id not in fired]

    async def truth(self) -> list[dict[str, Any]]:
        """The transcript, from the server itself."""
        at = Endpoint.of(self._instance.target, f"{LOOPBACK}:{self._instance.process.port}", self.name)
        reader = Client("reader", lambda: at, Recorder(None), lambda: 0)
        messages = await reader.get_messages(PATIENCE_S)
        assert messages is not None, reader.refusal
        return messages
