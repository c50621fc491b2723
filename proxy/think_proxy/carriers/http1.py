"""HTTP/1.1 as far as a relay must understand it: where heads and bodies end, what a body holds, and
when a connection becomes a WebSocket. Pure.

One exchange at a time: the bytes behind a request wait for the end of its answer, since only the
answer tells what they are. What does not read as HTTP passes as it stands, unseen, from there on.
"""

from __future__ import annotations

import math
import re
from http.client import responses
from typing import Literal, NamedTuple

from think_proxy.plan import Direction, Status

HEAD_CAP = 64 * 1024
LINE_CAP = 8 * 1024

_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")


class _Strange(Exception):
    """This is not the HTTP we know."""


class Head(NamedTuple):
    """First line in three parts; header names in lower case, repeated ones joined by a comma."""

    first: tuple[str, str, str]
    headers: dict[str, str]

    @classmethod
    def parse(cls, raw: bytes) -> Head:
        line, *rest = raw.decode("latin-1").replace("\r\n", "\n").rstrip("\n").split("\n")
        parts = (*line.split(" ", 2), "")
        if len(parts) < 3:
            raise _Strange
        headers: dict[str, str] = {}
        for one in rest:
            name, colon, value = one.partition(":")
            if not colon:
                raise _Strange
            name, value = name.lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return cls((parts[0], parts[1], parts[2]), headers)

    def lists(self, name: str, word: str) -> bool:
        """Whether a comma-separated header has this word."""
        return word in (part.strip().lower() for part in self.headers.get(name, "").split(","))

    @property
    def framing(self) -> Literal["chunked", "length", "close"]:
        """How the body of an answer tells its end."""
        if self.lists("transfer-encoding", "chunked"):
            return "chunked"
        announced = "content-length" in self.headers and "transfer-encoding" not in self.headers
        return "length" if announced else "close"


class Part(NamedTuple):
    """The next stretch of one direction: `raw` as it came. head: set when it is the head of a request or
    of its answer. data: the body in it. tail: what ends a chunked body, from the last chunk on. over:
    the request, or the answer, is whole with it."""

    raw: bytes
    head: Head | None = None
    data: bytes = b""
    tail: bytes = b""
    over: bool = False


class Body:
    """Follows a body to its end. `left` is what still comes of the current stretch, in bytes."""

    def __init__(self, left: float, *, chunked: bool = False) -> None:
        self._left = left
        self._chunked = chunked
        self._due: Literal["size", "end of data", "trailer"] = "size"
        self.over = not chunked and not left

    def take(self, buffer: bytearray) -> Part:
        """The front of `buffer` that belongs to the body."""
        at, data = 0, bytearray()
        tail = 0 if self._due == "trailer" else None
        while not self.over and at < len(buffer):
            if self._left:
                step = int(min(self._left, len(buffer) - at))
                data += buffer[at : at + step]
                self._left -= step
                at += step
                self.over = not self._left and not self._chunked
                continue
            try:
                end = self._line_end(buffer, at)
            except _Strange:
                if at:  # what is sound passes first
                    break
                raise
            if end is None:
                break
            if tail is None and self._due == "trailer":
                tail = at
            at = end
        raw = _cut(buffer, at)
        return Part(raw, None, bytes(data), b"" if tail is None else raw[tail:], self.over)

    def _line_end(self, buffer: bytearray, at: int) -> int | None:
        """Where the line at `at` ends, and what it says is noted; None while it is incomplete."""
        end = buffer.find(b"\n", at, at + LINE_CAP)
        if end >= 0:
            self._read_line(bytes(buffer[at:end]).strip())
            return end + 1
        if len(buffer) - at >= LINE_CAP:
            raise _Strange
        return None

    def _read_line(self, line: bytes) -> None:
        if self._due == "trailer":
            self.over = not line
        elif self._due == "end of data":
            if line:
                raise _Strange
            self._due = "size"
        else:
            digits = line.partition(b";")[0].strip()
            if not re.fullmatch(rb"[0-9a-fA-F]{1,16}", digits):
                raise _Strange
            self._left = int(digits, 16)
            self._due = "end of data" if self._left else "trailer"


class Request(NamedTuple):
    method: str
    target: str
    upgrade: bool


class Conversation:
    """Both directions of one connection.

    mode: `http` until a request is answered with a switch to WebSocket, or `tunnel` when we lost
    track. request: the one whose answer is due; in mode `websocket` the one that opened it."""

    def __init__(self) -> None:
        self.mode: Literal["http", "websocket", "tunnel"] = "http"
        self.request: Request | None = None
        self.deflate = False
        self._answered = False
        self._bodies: dict[Direction, Body | None] = {"up": None, "down": None}
        self._searched: dict[Direction, int] = {"up": 0, "down": 0}

    def take(self, direction: Direction, buffer: bytearray) -> Part | None:
        """The next that can pass, off the front of `buffer`; None when something must come first."""
        try:
            if self.mode == "http":
                body = self._bodies[direction]
                if body is not None:
                    return self._take_body(direction, body, buffer)
                return self._take_request(buffer) if direction == "up" else self._take_response(buffer)
        except _Strange:
            self.mode = "tunnel"
        return Part(_cut(buffer, len(buffer))) if buffer else None

    def waiting(self, direction: Direction) -> bool:
        """Whether bytes of this direction wait for the other one, not for more bytes."""
        return direction == "up" and self.mode == "http" and self.request is not None

    def _take_body(self, direction: Direction, body: Body, buffer: bytearray) -> Part | None:
        part = body.take(buffer)
        if part.over:
            self._end_body(direction)
        return part if part.raw else None

    def _take_request(self, buffer: bytearray) -> Part | None:
        if self.request is not None or (found := self._find_head("up", buffer)) is None:
            return None
        head, end = found
        method, target, version = head.first
        if not version.startswith("HTTP/1."):
            raise _Strange
        self._bodies["up"] = body = _body(head, otherwise=0)
        self.request = Request(method, target, head.lists("upgrade", "websocket"))
        return Part(_cut(buffer, end), head, over=body is None)

    def _take_response(self, buffer: bytearray) -> Part | None:
        if not buffer:
            return None
        if self.request is None or self._answered:
            raise _Strange
        if (found := self._find_head("down", buffer)) is None:
            return None
        head, end = found
        version, status, _ = head.first
        if not version.startswith("HTTP/1."):
            raise _Strange
        if status == "101" or (self.request.method == "CONNECT" and status.startswith("2")):
            opened = self.request.upgrade and head.lists("upgrade", "websocket")
            self.mode = "websocket" if opened else "tunnel"
            self.deflate = "permessage-deflate" in head.headers.get("sec-websocket-extensions", "")
        elif not status.startswith("1"):
            empty = self.request.method == "HEAD" or status in ("204", "304")
            self._bodies["down"] = body = None if empty else _body(head, otherwise=math.inf)
            self._answered = body is None
            self._end_exchange()
            return Part(_cut(buffer, end), head, over=body is None)
        return Part(_cut(buffer, end))

    def _find_head(self, direction: Direction, buffer: bytearray) -> tuple[Head, int] | None:
        """The head at the front of `buffer` and where it ends; None while it is incomplete."""
        end = _END_OF_HEAD.search(buffer, max(0, self._searched[direction] - 3))
        if end is None or end.end() > HEAD_CAP:
            self._searched[direction] = len(buffer)
            if len(buffer) > HEAD_CAP:
                raise _Strange
            return None
        self._searched[direction] = 0
        return Head.parse(bytes(buffer[: end.end()])), end.end()

    def _end_body(self, direction: Direction) -> None:
        self._bodies[direction] = None
        self._answered = self._answered or direction == "down"
        self._end_exchange()

    def _end_exchange(self) -> None:
        if self._answered and self._bodies["up"] is None:
            self.request = None
            self._answered = False


def answer(status: Status) -> bytes:
    """A whole answer, after which the connection ends."""
    body = status.body.encode()
    phrase = responses.get(status.code, "")
    fields = (f"{name}: {value}" for name, value in answer_headers(status, len(body)).items())
    lines = [f"HTTP/1.1 {status.code} {phrase}", *fields]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def answer_headers(status: Status, length: int) -> dict[str, str]:
    """The headers of that answer, with a body of `length` bytes."""
    return {
        "content-type": "text/plain; charset=utf-8",
        **{name.lower(): value for name, value in status.headers.items()},
        "content-length": str(length),
        "connection": "close",
    }


def _body(head: Head, *, otherwise: float) -> Body | None:
    """The body behind a head (RFC 9112 section 6.3); `otherwise`: its length when nothing tells."""
    if "transfer-encoding" in head.headers:
        body = Body(0, chunked=True) if head.lists("transfer-encoding", "chunked") else Body(otherwise)
    elif (length := head.headers.get("content-length")) is None:
        body = Body(otherwise)
    elif re.fullmatch(r"[0-9]{1,18}", length):
        body = Body(int(length))
    else:
        raise _Strange
    return None if body.over else body


def _cut(buffer: bytearray, end: int) -> bytes:
    taken = bytes(buffer[:end])
    del buffer[:end]
    return taken
