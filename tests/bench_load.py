"""A load for a target that costs next to nothing itself: a scripted model and chat sockets on bare
protocols. No part of the tests.

The model writes each chunk on its own, as fast as the target takes them, and the turns of all agents at
once take turns. The clients read no frame: they count what stands in every one of a kind. So what is
measured is the target; `Load.busy` tells how busy this process was meanwhile.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

TURN_S = 120.0
WORD = "some words of "


class Load(NamedTuple):
    """What a number of turns took. `cpu_s`: of all processes of the target."""

    turns: int
    chunks: int
    wall_s: float
    cpu_s: float
    busy: float

    @property
    def turns_per_s(self) -> float:
        """Turns that ended per second."""
        return self.turns / self.wall_s

    @property
    def chunk_us(self) -> float:
        """Microseconds of processor time that the target spent per chunk of the model."""
        return self.cpu_s / self.chunks * 1e6


@asynccontextmanager
async def model(chunks: int) -> AsyncIterator[str]:
    """A model that answers everything with so many pieces of text; its base URL."""
    server = await asyncio.get_running_loop().create_server(lambda: _Model(chunks), "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    server.close()


async def connect(port: int, path: str) -> Chat:
    """A chat socket."""
    transport, chat = await asyncio.get_running_loop().create_connection(Chat, "127.0.0.1", port)
    key = base64.b64encode(os.urandom(16)).decode()
    transport.write(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    status = await asyncio.wait_for(chat.opened, 10)
    if status != b"HTTP/1.1 101":
        raise ConnectionError(f"{path} was answered with {status!r}")
    return chat


async def play(chats: Iterable[Chat], turns: int, chunks: int, group: int) -> Load:
    """Every chat plays its turns one after the other, all chats at once. `group`: of the target."""
    chats = list(chats)
    shown = [(chat.frames, chat.completed) for chat in chats]
    cpu_s, own_s, began = processor_s(group), time.process_time(), time.perf_counter()
    await asyncio.gather(*(_turns(chat, turns) for chat in chats))
    wall_s = time.perf_counter() - began
    load = Load(
        turns=len(chats) * turns,
        chunks=len(chats) * turns * chunks,
        wall_s=wall_s,
        cpu_s=processor_s(group) - cpu_s,
        busy=(time.process_time() - own_s) / wall_s,
    )
    for chat, (frames, completed) in zip(chats, shown, strict=True):
        whole = chat.completed - completed == turns and chat.frames - frames >= turns * chunks
        if not whole:
            raise ValueError("a turn was not shown whole")
    return load


async def _turns(chat: Chat, turns: int) -> None:
    for _ in range(turns):
        await asyncio.wait_for(chat.turn(), TURN_S)


class Chat(asyncio.Protocol):
    """One socket. `frames`: the chunk frames it got, `completed`: the turns that ended well."""

    def __init__(self) -> None:
        self.opened: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.frames = self.completed = 0
        self._ended: asyncio.Future[None] | None = None
        self._turns = 0
        self._tail = b""

    def connection_made(self, transport: Any) -> None:
        """The socket is there."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Count; a mark may be cut in two, so what could begin one is kept."""
        if not self.opened.done():
            self.opened.set_result(data[:12])
        data = self._tail + data
        self.frames += data.count(_CHUNK)
        ended = data.count(_END)
        self.completed += data.count(_COMPLETED)
        counted = max(data.rfind(mark) + len(mark) if mark in data else 0 for mark in _MARKS)
        self._tail = data[max(counted, len(data) - _LONGEST + 1) :]
        if ended and self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        """Nothing more comes."""
        for future in (self.opened, self._ended):
            if future is not None and not future.done():
                future.set_exception(ConnectionError("the target hung up"))

    async def turn(self) -> None:
        """Ask, and wait for the end."""
        self._turns += 1
        self._ended = asyncio.get_running_loop().create_future()
        message = {"id": f"u{self._turns}", "role": "user", "parts": [{"type": "text", "text": "go on"}]}
        init = {"method": "POST", "body": json.dumps({"messages": [message]})}
        request = {"type": "cf_agent_use_chat_request", "id": f"r{self._turns}", "init": init}
        payload = json.dumps(request).encode()
        # masked, as a client has to, with the mask that changes nothing
        self._transport.write(struct.pack(">BBHI", 0x81, 0x80 | 126, len(payload), 0) + payload)
        await self._ended

    def close(self) -> None:
        """Hang up."""
        self._transport.abort()


# What a body holds is JSON inside JSON, its quotes have backslashes: these stand once in a frame.
_CHUNK = b'"done":false'
_END = b'"done":true'
_COMPLETED = b'"outcome":"completed"'
_MARKS = (_CHUNK, _END, _COMPLETED)
_LONGEST = max(map(len, _MARKS))


class _Model(asyncio.Protocol):
    """One connection, which may ask again and again."""

    def __init__(self, chunks: int) -> None:
        self._chunks, self._left = chunks, 0
        self._came = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._came += data
        head, blank, body = self._came.partition(b"\r\n\r\n")
        if not blank:
            return
        lines = head.lower().split(b"\r\n")
        length = int(next(line.split(b":")[1] for line in lines if line.startswith(b"content-length")))
        if len(body) < length:
            return
        self._came = body[length:]
        self._transport.write(_HEAD)
        self._left = self._chunks
        self._say()

    def _say(self) -> None:
        if self._transport.is_closing():
            return
        if self._left == 0:
            self._transport.write(_FINISH)
            return
        self._left -= 1
        self._transport.write(_PIECE)
        asyncio.get_running_loop().call_soon(self._say)


def _piece(text: str) -> bytes:
    data = f"data: {text}\n\n".encode()
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _event(**fields: Any) -> bytes:
    known = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
    return _piece(json.dumps({**known, **fields}, separators=(",", ":")))


def _choice(delta: dict[str, str], reason: str | None) -> list[dict[str, Any]]:
    return [{"index": 0, "delta": delta, "finish_reason": reason}]


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_PIECE = _event(choices=_choice({"role": "assistant", "content": WORD}, None))
_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
_FINISH = (
    _event(choices=_choice({}, "stop")) + _event(choices=[], usage=_USAGE) + _piece("[DONE]") + b"0\r\n\r\n"
)


def processor_s(group: int) -> float:
    """Processor time of all processes of the group so far. Linux."""
    ticks = sum(sum(map(int, fields[11:15])) for fields in _processes(group))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mb(group: int) -> float:
    """Resident memory of all processes of the group."""
    return sum(int(fields[21]) for fields in _processes(group)) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _processes(group: int) -> list[list[str]]:
    """The fields of /proc/PID/stat from `state` on, of every process of the group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[2]) == group:
            found.append(fields)
    return found
