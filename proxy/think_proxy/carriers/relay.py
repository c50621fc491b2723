"""One connection through the proxy: two TCP sides, and a lane for each direction between them.

Without a fault everything passes unchanged and in order, the ending too: FIN as FIN (one direction
at a time), RST as RST. A lane that cannot go on stops reading, so that memory stays bounded. Behind TLS
upstream, which knows no end of one direction alone, the end of one is the end of both.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import sys
from collections.abc import Callable
from functools import partial
from typing import Literal, Protocol

from think_proxy.engine import Firing, Watch
from think_proxy.match import Message
from think_proxy.plan import Direction

LANE_LIMIT = 256 * 1024
"""Bytes a stopped lane gathers before it stops reading (one more read of the loop may come on top)."""

FLUSH_S = 2.0
"""How long a reset waits for what was written before it to be sent."""

FLUSH_POLL_S = 0.01
"""How often it looks: the kernel tells when asked, it does not call."""

FAREWELL_S = 5.0
"""How long a peer that was told the end has to end its own side."""

CONNECT_S = 10.0

Ending = Literal["fin", "reset"]


class Reader(Protocol):
    """Takes the bytes of one connection apart, both directions, into what passes and what may be hit.
    Which messages there are depends on the leg."""

    @property
    def watch(self) -> Watch:
        """The eye on what the last message was part of."""

    @property
    def coupled(self) -> bool:
        """Whether one direction may have to wait for the other."""

    @property
    def dies_with_caller(self) -> bool:
        """Whether nobody wants what is under way once the client has ended its side."""

    def take(self, direction: Direction, buffer: bytearray, ended: bool) -> bytes | Message | None:
        """The next that can pass, off the front of `buffer`: bytes that nobody asks about, or a whole
        message. None when more must come first, in this direction or in the other; `ended` says that
        it never will in this one."""

    def flush(self, direction: Direction, buffer: bytearray) -> bytes:
        """All that is left, when nothing more will come."""

    def waiting(self, direction: Direction) -> bool:
        """Whether bytes of this direction wait for the other one, not for more bytes."""

    def gathering(self, direction: Direction) -> bool:
        """Whether a message that is not whole yet may fill the buffer beyond the limit of a lane."""

    def inside(self, direction: Direction) -> bool:
        """Whether the last bytes of this direction ended where nothing may be put between."""


class Owner(Protocol):
    """What a relay needs of the proxy it belongs to."""

    def reader(self) -> Reader: ...

    def strike(self, lane: Lane, message: Message, firing: Firing) -> None:
        """A message set off a fault: called before the message passes."""

    def unreachable(self, reason: str) -> None: ...

    def gone(self, relay: Relay) -> None: ...


def kernel_unsent(sock: socket.socket) -> int:
    """Bytes the kernel took and has not sent, which a reset would throw away; 0 where it does not tell."""
    if sys.platform != "linux":
        return 0
    import fcntl

    siocoutqnsd = 0x894B  # linux/sockios.h
    return int.from_bytes(fcntl.ioctl(sock.fileno(), siocoutqnsd, bytes(4)), sys.byteorder)


class Side(asyncio.Protocol):
    """One TCP connection. What it says goes into `lane`; `feeder` is the lane that writes to it."""

    lane: Lane
    feeder: Lane
    transport: asyncio.Transport

    def __init__(self, relay: Relay, on_connected: Callable[[], None]) -> None:
        self._relay = relay
        self._on_connected = on_connected
        self.connected = False
        self.writable = False
        self._said_end = False
        self._heard_end = False
        self._resetting = False
        self._was_reset = False
        self._reading = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.connected = self.writable = True
        self._on_connected()

    def data_received(self, data: bytes) -> None:
        self.lane.receive(data)

    def eof_received(self) -> bool:
        self._heard_end = True
        self.lane.end("fin")
        self._close_if_over()
        return self.transport.can_write_eof()  # then the other direction goes on

    def connection_lost(self, exc: Exception | None) -> None:
        self.connected = self.writable = False
        self.lane.end("reset" if exc or self._was_reset else "fin")
        self.feeder.die()
        self._relay.side_gone()

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self.feeder.pump()

    def read(self, reading: bool) -> None:
        """Reads, or stops reading, so that the peer feels it."""
        if not self.connected or self._heard_end or reading is self._reading:
            return
        self._reading = reading
        if reading:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def finish(self) -> None:
        """FIN, behind what was written."""
        if not self.connected or self._said_end or self._resetting:
            return
        self._said_end = True
        if not self.transport.can_write_eof():
            self.transport.close()
            return
        try:
            self.transport.write_eof()
        except OSError:  # the peer has reset, and the loop does not know yet
            self._was_reset = True
            self.transport.abort()
        else:
            self._close_if_over()

    def reset(self) -> None:
        """RST, behind what was written, as far as that can be sent within FLUSH_S."""
        if not self.connected or self._resetting:
            return
        self._resetting = True
        self._reset_when_sent(asyncio.get_running_loop().time() + FLUSH_S)

    def abort(self) -> None:
        if self.connected:
            self.transport.abort()

    def _reset_when_sent(self, deadline: float) -> None:
        if not self.connected:
            return
        sock = self.transport.get_extra_info("socket")
        unsent = self.transport.get_write_buffer_size() + kernel_unsent(sock)
        if unsent and asyncio.get_running_loop().time() < deadline:
            self._relay.later(FLUSH_POLL_S, partial(self._reset_when_sent, deadline))
            return
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _close_if_over(self) -> None:
        if self._said_end and self._heard_end:
            self.transport.close()


class Lane:
    """One direction, from the side that says to the side that hears."""

    def __init__(self, relay: Relay, direction: Direction, source: Side, sink: Side) -> None:
        self.relay = relay
        self.direction = direction
        self.source = source
        self.sink = sink
        source.lane = sink.feeder = self
        self._buffer = bytearray()
        self._holds = 0
        self._ending: Ending | None = None
        self._dead = False
        self._border: asyncio.Future[None] | None = None

    def receive(self, data: bytes) -> None:
        if not self._dead:
            self._buffer += data
            self.pump()

    def end(self, how: Ending) -> None:
        """The source has ended. A reset may follow a FIN."""
        if self._dead:
            return
        self._ending = how
        if self._holds and self.direction == "up" and self.relay.reader.dies_with_caller:
            self.relay.hang_up(how)
        else:
            self.pump()

    def die(self) -> None:
        """From now on everything is swallowed, the ending included."""
        self._dead = True
        self._buffer.clear()
        self._at_border()
        self.source.read(True)

    def hold(self) -> None:
        self._holds += 1

    def release(self) -> None:
        self._holds -= 1
        self.pump()

    def forward(self, raw: bytes) -> None:
        """Passes a held message, ahead of all that waits."""
        if not self._dead:
            self.sink.transport.write(raw)

    async def border(self) -> None:
        """Returns when the sink has seen whole frames only, or will see no more."""
        while not self._dead and self.relay.reader.inside(self.direction):
            self._border = self._border or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._border)

    def pump(self) -> None:
        """Passes what can pass."""
        coupled = self.relay.reader.coupled
        self._pump()
        if coupled:
            self.relay.opposite(self)._pump()

    def _pump(self) -> None:
        while self._open and (unit := self._next()) is not None:
            if isinstance(unit, bytes):
                self.sink.transport.write(unit)
            elif (firing := self.relay.reader.watch.decide(self.direction, unit)) is None:
                self.sink.transport.write(unit.raw)
            else:
                self.relay.owner.strike(self, unit, firing)
        self._at_border()
        if self._open and self._ending and not self._waits_for_answer:
            self._end_sink(self._ending)
        gathering = self._open and self.relay.reader.gathering(self.direction)
        self.source.read(gathering or len(self._buffer) <= LANE_LIMIT)

    @property
    def _open(self) -> bool:
        return not self._holds and not self._dead and self.sink.writable

    @property
    def _waits_for_answer(self) -> bool:
        waits = bool(self._buffer) and self.relay.reader.waiting(self.direction)
        return waits and self._ending != "reset"

    def _next(self) -> bytes | Message | None:
        return self.relay.reader.take(self.direction, self._buffer, self._ending == "fin")

    def _end_sink(self, how: Ending) -> None:
        if rest := self.relay.reader.flush(self.direction, self._buffer):
            self.sink.transport.write(rest)
        if how == "fin":
            self.sink.finish()
        else:
            self.sink.reset()

    def _at_border(self) -> None:
        if self._border and (self._dead or not self.relay.reader.inside(self.direction)):
            self._border.set_result(None)
            self._border = None


class Relay:
    """A client's connection and the upstream connection made for it."""

    def __init__(self, owner: Owner, upstream: tuple[str, int], tls: ssl.SSLContext | None) -> None:
        self.owner = owner
        self.reader = owner.reader()
        self.client = Side(self, self._connect)
        self.upstream = Side(self, lambda: self.up.pump())
        self.up = Lane(self, "up", self.client, self.upstream)
        self.down = Lane(self, "down", self.upstream, self.client)
        self._address = upstream
        self._tls = tls
        self._connecting: asyncio.Task[None] | None = None
        self._timers: list[asyncio.TimerHandle] = []

    def opposite(self, lane: Lane) -> Lane:
        return self.down if lane is self.up else self.up

    def reset(self) -> None:
        """Ends both sides abruptly."""
        self._die()
        self.client.reset()
        self.upstream.reset()

    def finish(self) -> None:
        """Ends both sides in order; who does not answer in time is dropped."""
        self._die()
        self.client.finish()
        self.upstream.finish()
        self.later(FAREWELL_S, self.abort)

    def hang_up(self, how: Ending) -> None:
        """Ends both sides as the client ended its own."""
        if how == "reset":
            self.reset()
        else:
            self.finish()

    async def close(self, farewell: bytes) -> None:
        """As finish, with a last word for the client."""
        await self.down.border()
        self._die()
        if self.client.connected:
            self.client.transport.write(farewell)
        self.finish()

    def swallow(self, seconds: float) -> None:
        """Passes nothing on any more; resets both sides after this time."""
        self._die()
        self.later(seconds, self.reset)

    def abort(self) -> None:
        """Drops both sides at once."""
        self._die()
        if self._connecting is not None:
            self._connecting.cancel()
        self.client.abort()
        self.upstream.abort()

    def later(self, seconds: float, do: Callable[[], None]) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(seconds, do))

    def side_gone(self) -> None:
        if self.client.connected or self.upstream.connected:
            return
        if self._connecting is None or self._connecting.done():
            for timer in self._timers:
                timer.cancel()
            self.owner.gone(self)

    def _die(self) -> None:
        self.up.die()
        self.down.die()

    def _connect(self) -> None:
        self._connecting = asyncio.get_running_loop().create_task(self._reach_upstream())
        self._connecting.add_done_callback(lambda _: self.side_gone())

    async def _reach_upstream(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_S):
                await loop.create_connection(lambda: self.upstream, *self._address, ssl=self._tls)
        except (OSError, TimeoutError) as error:
            self.owner.unreachable(str(error) or "no answer to the connect")
            self.reset()
