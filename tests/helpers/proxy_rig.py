"""A proxy between two raw sockets, so that a test sees every byte and every ending on both sides."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import msgspec

from think_proxy.carriers.abilities import EMBEDDED
from think_proxy.carriers.choice import PROXIES
from think_proxy.carriers.messages import header, unmask
from think_proxy.carriers.proxy import Proxy
from think_proxy.plan import Fault, Leg

DEADLINE_S = 30.0
SCOPE = "/agents/a/one"

CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


def frame(
    payload: bytes, opcode: int = TEXT, *, fin: bool = True, mask: bytes = b"", rsv1: bool = False
) -> bytes:
    """One WebSocket frame; masked as by a client when there is a `mask` of four bytes."""
    first = (0x80 if fin else 0) | (0x40 if rsv1 else 0) | opcode
    bit = 0x80 if mask else 0
    if len(payload) < 126:
        head = bytes([first, bit | len(payload)])
    elif len(payload) < 65536:
        head = bytes([first, bit | 126]) + struct.pack("!H", len(payload))
    else:
        head = bytes([first, bit | 127]) + struct.pack("!Q", len(payload))
    return head + mask + unmask(payload, mask)


def said(n: int) -> bytes:
    """The frame of a server's n-th message."""
    return frame(b'{"type":"delta","n":%d}' % n)


def asked(n: int) -> bytes:
    """The frame of a client's n-th message."""
    return frame(b'{"type":"ask","n":%d}' % n, mask=b"\x01\x02\x03\x04")


def faults(*rows: dict[str, Any], leg: Leg = "client") -> list[Fault]:
    """Faults as a plan would have them; `id` is `f` unless given."""
    return msgspec.convert([{"id": "f", "leg": leg, "when": {}, **row} for row in rows], list[Fault])


def opening(target: str) -> bytes:
    """The request that opens a WebSocket."""
    fields = "Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13"
    return f"GET {target} HTTP/1.1\r\n{fields}\r\n\r\n".encode()


def rst(sock: socket.socket) -> None:
    """Makes the next close of this socket a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Peer:
    """One end of a TCP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.heard = bytearray()

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def expect(self, data: bytes) -> None:
        """The next bytes are these."""
        async with asyncio.timeout(DEADLINE_S):
            got = await self.reader.readexactly(len(data))
        assert got == data

    async def head(self) -> bytes:
        async with asyncio.timeout(DEADLINE_S):
            return await self.reader.readuntil(b"\r\n\r\n")

    async def frame(self) -> bytes:
        """The payload of the next frame, in clear."""
        async with asyncio.timeout(DEADLINE_S):
            got = bytearray(await self.reader.readexactly(2))
            while (found := header(got)) is None:
                got += await self.reader.readexactly(1)
            return unmask(await self.reader.readexactly(found.length), found.mask)

    async def rest(self) -> tuple[bytes, str]:
        """All that still comes, and how it ends: `fin` or `reset`."""
        got = bytearray()
        async with asyncio.timeout(DEADLINE_S):
            try:
                while data := await self.reader.read(65536):
                    got += data
            except ConnectionResetError:
                return bytes(got), "reset"
        return bytes(got), "fin"

    def silent(self) -> bool:
        """Nothing has come that was not read, no ending either."""
        return not self.reader._buffer and not self.reader.at_eof() and not self.reader.exception()

    def fin(self) -> None:
        self.writer.write_eof()

    def reset(self) -> None:
        rst(self.writer.get_extra_info("socket"))
        self.writer.transport.abort()


class Records:
    """A journal that can be waited for."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        self._more = asyncio.Event()

    def __call__(self, kind: str, ids: dict[str, Any], payload: dict[str, Any]) -> None:
        self.rows.append((kind, ids, payload))
        self._more.set()

    def of(self, kind: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
        return [row for row in self.rows if row[0] == kind]

    async def seen(self, kind: str, count: int = 1) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """The `count`-th record of this kind, once it is there."""
        async with asyncio.timeout(DEADLINE_S):
            while len(self.of(kind)) < count:
                self._more.clear()
                await self._more.wait()
        return self.of(kind)[count - 1]


class Control:
    """The process control of a test: every action waits until `go`."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.called = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, action: str, token: str) -> None:
        self.calls.append((action, token))
        self.called.set()
        await self.go.wait()


class Rig:
    """An upstream that only accepts, the proxy in front of it, and clients through the proxy."""

    def __init__(self, leg: Leg) -> None:
        self.leg = leg
        self.journal = Records()
        self.control = Control()
        self.accepted: asyncio.Queue[Peer] = asyncio.Queue()
        self.peers: list[Peer] = []
        self.proxy: Proxy

    def arm(self, *rows: dict[str, Any], scope: str = SCOPE) -> None:
        self.proxy.arm(faults(*rows, leg=self.leg), scope)

    async def client(self, says: bytes = b"") -> Peer:
        """A client that says this at once."""
        client = Peer(*await asyncio.open_connection("127.0.0.1", self.proxy.port))
        self.peers.append(client)
        client.send(says)
        return client

    async def connect(self, says: bytes = b"") -> tuple[Peer, Peer]:
        """A client and the upstream's end of its connection, which a carrier may open at the first word."""
        client = await self.client(says)
        async with asyncio.timeout(DEADLINE_S):
            return client, await self.accepted.get()

    async def open(self, target: str = f"{SCOPE}?_pk=a.1", extensions: str = "") -> tuple[Peer, Peer]:
        """The same with a WebSocket established between them."""
        client, upstream = await self.connect(opening(target))
        await self.upgraded(client, upstream, target, extensions)
        return client, upstream

    async def upgrade(self, client: Peer, upstream: Peer, target: str) -> None:
        """A WebSocket on a connection that is there."""
        client.send(opening(target))
        await self.upgraded(client, upstream, target)

    async def upgraded(self, client: Peer, upstream: Peer, target: str, extensions: str = "") -> None:
        """The upstream agrees to what a client asked."""
        assert await upstream.head() == opening(target)
        extra = f"Sec-WebSocket-Extensions: {extensions}\r\n" if extensions else ""
        answer = f"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{extra}\r\n"
        upstream.send(answer.encode())
        assert await client.head() == answer.encode()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self.peers.append(peer)
        self.accepted.put_nowait(peer)


@asynccontextmanager
async def rig(
    leg: Leg = "client",
    server_side: ssl.SSLContext | None = None,
    tls: ssl.SSLContext | None = None,
    carrier: str = EMBEDDED,
) -> AsyncIterator[Rig]:
    """A running rig; everything is closed behind it. The upstream speaks TLS where it is given."""
    made = Rig(leg)
    server = await asyncio.start_server(made._accept, "127.0.0.1", 0, ssl=server_side)
    made.proxy = PROXIES[carrier](
        server.sockets[0].getsockname(),
        journal=made.journal,
        process=made.control,
        seed=7,
        leg=leg,
        tls=tls,
    )
    await made.proxy.start()
    try:
        yield made
    finally:
        await made.proxy.close()
        server.close()
        for peer in made.peers:
            peer.writer.transport.abort()


def pieces(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    """`data` in pieces, cut at these places (as far as they lie inside)."""
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(places)]
