"""The embedded proxy: one listener, one upstream, one leg.

Runs in the loop of its caller and listens on loopback unless told otherwise. Everything passes; what a
plan armed may strike what the leg is made of, messages of WebSockets or exchanges of HTTP.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress

from think_proxy import journal as records
from think_proxy.carriers.abilities import SOCKET_LEGS, carrier
from think_proxy.carriers.http import ExchangeReader
from think_proxy.carriers.proxy import CLOSE_S, Proxy
from think_proxy.carriers.relay import Lane, Reader, Relay, Side
from think_proxy.carriers.sockets import SocketReader
from think_proxy.carriers.strike import Process, RelayStrike, Strike
from think_proxy.engine import Firing
from think_proxy.journal import Journal
from think_proxy.match import Message
from think_proxy.plan import Leg


class EmbeddedProxy(Proxy):
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
        does = carrier(leg, controls_process=process is not None)
        super().__init__(does, journal=journal, process=process, seed=seed, address=(host, port))
        self._upstream = upstream
        self._tls = tls
        self._leg = leg
        self._server: asyncio.Server | None = None
        self._relays: set[Relay] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, *self._address, backlog=512)
        self._address = (self._address[0], self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        tasks = self._cancelled()
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
        watch = lane.relay.reader.watch
        records.fired(self._journal_of(firing.scope), firing, watch, lane.direction, message)
        self._run(RelayStrike(lane, message, firing, self._process))

    def unreachable(self, reason: str) -> None:
        records.unreachable(self._journal, reason)

    def gone(self, relay: Relay) -> None:
        self._relays.discard(relay)
        for strike in list(self._strikes):
            if isinstance(strike, RelayStrike) and strike.relay is relay and strike.swallowing:
                self._forget(strike)
        if not self._relays:
            self._idle.set()

    def _forget(self, strike: Strike) -> None:
        """A black hole lasts as long as its connection."""
        assert isinstance(strike, RelayStrike), "it makes no others"
        if not strike.swallowing or strike.relay not in self._relays:
            super()._forget(strike)
