"""The embedded proxy: one listener, one upstream, one leg.

Runs in the loop of its caller and listens on loopback unless told otherwise. Everything passes; what a
plan armed may strike what the leg is made of, messages of WebSockets or exchanges of HTTP.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from contextlib import suppress

from think_proxy import journal as records
from think_proxy.carriers.abilities import SOCKET_LEGS, carrier
from think_proxy.carriers.http import ExchangeReader
from think_proxy.carriers.relay import Lane, Reader, Relay, Side
from think_proxy.carriers.sockets import SocketReader
from think_proxy.carriers.strike import Process, Strike
from think_proxy.engine import Engine, Firing
from think_proxy.journal import Done, Journal
from think_proxy.match import Message
from think_proxy.plan import Fault, Leg

CLOSE_S = 2.0


class EmbeddedProxy:
    """upstream: host and port; `tls`: spoken there, and only there. journal: where records go, unless `arm`
    names another place. process: does the process actions; without it plans that need them are refused.
    port 0: any free one."""

    def __init__(
        self,
        upstream: tuple[str, int],
        *,
        journal: Journal,
        process: Process | None,
        seed: int = 0,
        host: str = "127.0.0.1",
        port: int = 0,
        leg: Leg = "client",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._upstream = upstream
        self._tls = tls
        self._journal = journal
        self._process = process
        self._address = (host, port)
        self._leg = leg
        self._engine = Engine(carrier(leg, controls_process=process is not None), seed)
        self._journals: dict[str, Journal] = {}
        self._server: asyncio.Server | None = None
        self._relays: set[Relay] = set()
        self._strikes: dict[Strike, asyncio.Task[None]] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def port(self) -> int:
        """The port it listens on: the real one once started."""
        return self._address[1]

    async def start(self) -> None:
        """Listens. OSError when the address cannot be had."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, *self._address, backlog=512)
        self._address = (self._address[0], self._server.sockets[0].getsockname()[1])

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

    async def close(self) -> None:
        """Stops listening, stops all lists and drops every connection."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._strikes.values())
        for task in tasks:
            task.cancel()
        for relay in list(self._relays):
            relay.abort()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), CLOSE_S)

    def _accept(self) -> Side:
        relay = Relay(self, self._upstream, self._tls)
        self._relays.add(relay)
        self._idle.clear()
        return relay.client

    # ---- what a relay asks of its owner ---------------------------------------------------------

    def reader(self) -> Reader:
        return SocketReader(self._engine) if self._leg in SOCKET_LEGS else ExchangeReader(self._engine)

    def strike(self, lane: Lane, message: Message, firing: Firing) -> None:
        journal = self._journal_of(firing.scope)
        records.fired(journal, firing, lane.relay.reader.watch, lane.direction, message)
        strike = Strike(lane, message, firing, self._process)

        def done(did: list[str], outcome: Done, reason: str) -> None:
            records.done(journal, firing, did, outcome, reason)

        task = asyncio.get_running_loop().create_task(strike.run(done))
        self._strikes[strike] = task
        task.add_done_callback(lambda _: self._forget(strike))

    def unreachable(self, reason: str) -> None:
        records.unreachable(self._journal, reason)

    def gone(self, relay: Relay) -> None:
        self._relays.discard(relay)
        for strike in [one for one in self._strikes if one.relay is relay and one.swallowing]:
            self._forget(strike)
        if not self._relays:
            self._idle.set()

    def _forget(self, strike: Strike) -> None:
        """A strike is over with its list; a black hole lasts as long as its connection."""
        if not strike.swallowing or strike.relay not in self._relays:
            self._strikes.pop(strike, None)

    def _journal_of(self, scope: str) -> Journal:
        return self._journals.get(scope, self._journal)
