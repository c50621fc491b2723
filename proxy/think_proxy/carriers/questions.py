"""What the mitmproxy process asks and what it is told, and how both are framed.

One stream between two processes of one machine and one version: a length of four bytes, then msgpack. Whoever
asks waits; whatever it asked about waits with it.
"""

from __future__ import annotations

from asyncio import StreamReader

import msgspec
from msgspec import Struct

from think_proxy.carriers.messages import MESSAGE_CAP
from think_proxy.plan import Direction, Status

FRAME_CAP = MESSAGE_CAP + 1024 * 1024
"""Bytes: a message with all that is said around it."""


class Settings(Struct, frozen=True):
    """How the process is to be run: what its one argument says. `channel` is the number of an open socket,
    `sockets` whether WebSockets are carried or exchanges."""

    channel: int
    sockets: bool
    upstream: tuple[str, int]
    listen: tuple[str, int]


class Listening(Struct, frozen=True, tag=True):
    """It carries from now on."""

    port: int


class Failed(Struct, frozen=True, tag=True):
    """It cannot carry, or not any more. errno: of an address that cannot be had, else 0."""

    reason: str
    errno: int = 0


class Opening(Struct, frozen=True, tag=True):
    """May the WebSocket `flow` be opened by this request?"""

    ask: int
    flow: str
    target: str
    head: bytes


class Said(Struct, frozen=True, tag=True):
    """May this message of a WebSocket pass? content: None for what is too large to be shown."""

    ask: int
    flow: str
    direction: Direction
    content: bytes | None


class Ended(Struct, frozen=True, tag=True):
    """A WebSocket is over. orderly: False where the server ended it without a word, and mitmproxy told the
    client a close all the same."""

    flow: str
    orderly: bool


class Requested(Struct, frozen=True, tag=True):
    """May this request pass? body: as it came, None for what is too large to be shown; `plain` whether that
    is its content."""

    ask: int
    target: str
    body: bytes | None
    plain: bool


Question = Listening | Failed | Opening | Said | Ended | Requested


class Pass(Struct, frozen=True, tag=True):
    """It may."""

    ask: int


class Drop(Struct, frozen=True, tag=True):
    """It is lost, all else goes on."""

    ask: int


class Finish(Struct, frozen=True, tag=True):
    """The connection ends in order, without an answer."""

    ask: int


class Instead(Struct, frozen=True, tag=True):
    """The client gets this answer, and the server never gets the request."""

    ask: int
    status: Status


Answer = Pass | Drop | Finish | Instead

_questions = msgspec.msgpack.Decoder(Question)
_answers = msgspec.msgpack.Decoder(Answer)


def framed(said: Question | Answer) -> bytes:
    """The bytes of one."""
    data = msgspec.msgpack.encode(said)
    return len(data).to_bytes(4) + data


async def question(reader: StreamReader) -> Question:
    """The next one. IncompleteReadError or OSError at the end, ValueError for what is none."""
    return _questions.decode(await _frame(reader))


async def answer(reader: StreamReader) -> Answer:
    """The next one. Raises as `question` does."""
    return _answers.decode(await _frame(reader))


async def _frame(reader: StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4))
    if size > FRAME_CAP:
        raise ValueError(f"a frame of {size} bytes: at most {FRAME_CAP} are said")
    return await reader.readexactly(size)
