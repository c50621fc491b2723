"""The body of an answer, taken apart into server-sent events (WHATWG HTML, section 9.2.6). Pure.

Where the events end and where chunks or reads end are three different things; only the first is
kept. Every event leaves as a chunk of its own, so that it can be held, lost or broken off by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from think_proxy.carriers.http1 import Head, Part
from think_proxy.carriers.messages import MESSAGE_CAP
from think_proxy.match import Message

LAST_CHUNK = b"0\r\n\r\n"

_LINE_END = rb"(?:\r\n|\n|\r(?=[^\n]))"  # a CR is one by itself only if no LF will follow
_BORDER = re.compile(_LINE_END * 2)
_LENGTH = re.compile(rb"(?i)(?<=\n)content-length:[^\n]*?(?=\r?\n)")


@dataclass(slots=True, kw_only=True)
class BodyMessage(Message):
    """A whole body, or an event of one. head: what precedes it in `raw`, if it is that. body: its bytes,
    free of framing. chunked: how the body of the answer is framed."""

    head: bytes = b""
    body: bytes
    chunked: bool

    def first(self, keep: int | None, *, clean: bool) -> bytes:
        """What passes of it when it breaks off after `keep` bytes (None: half of them); when `clean`,
        the body has a proper end there."""
        kept = self.body[: len(self.body) // 2 if keep is None else keep]
        if self.chunked:
            return self.head + chunk(kept) + (LAST_CHUNK if clean else b"")
        return (_LENGTH.sub(b"Content-Length: %d" % len(kept), self.head) if clean else self.head) + kept


def chunk(data: bytes) -> bytes:
    """A chunk; nothing for nothing, since an empty chunk is the end."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def data_of(text: bytes) -> bytes | None:
    """The data of an event; None when the text holds none, as a comment does, and so tells nobody
    anything."""
    fields = (line.partition(b":") for line in text.splitlines())
    data = [value.removeprefix(b" ") for name, _, value in fields if name == b"data"]
    return b"\n".join(data) if data else None


class EventReader:
    """A body of events. Those larger than MESSAGE_CAP are counted but not shown."""

    def __init__(self, head: Head) -> None:
        self._framing: Literal["chunked", "length", "close"] = head.framing
        self._text = bytearray()  # of the body, what has not left
        self._searched = 0
        self._ordinal = 0
        self._offset = 0
        self._large = False  # the event under way has begun to pass

    def head(self, raw: bytes) -> bytes:
        """The head as it is for what leaves here: an announced length might turn out wrong."""
        return _LENGTH.sub(b"Transfer-Encoding: chunked", raw) if self._framing == "length" else raw

    def read(self, part: Part) -> Iterator[bytes | Message]:
        """What can leave after this part of the body."""
        self._text += part.data
        while (border := _BORDER.search(self._text, self._searched)) is not None:
            self._searched = 0
            yield self._event(self._cut(border.end()))
        self._searched = max(0, len(self._text) - 3)  # a border has at most 4 bytes
        if len(self._text) > MESSAGE_CAP or part.over:
            self._large = True
            yield self.rest()
        yield part.tail or (LAST_CHUNK if part.over else b"")

    def rest(self) -> bytes:
        """What has not left, an event that is not whole."""
        self._searched = 0
        return self._framed(self._cut(len(self._text)))

    def _event(self, text: bytes) -> bytes | Message:
        offset = self._offset - len(text)
        data = data_of(text)
        if data is None and not self._large:
            return self._framed(text)
        self._ordinal += 1
        if self._large:
            self._large = False
            return self._framed(text)
        chunked = self._framing != "close"
        return BodyMessage(self._framed(text), data, self._ordinal, offset, body=text, chunked=chunked)

    def _framed(self, text: bytes) -> bytes:
        return text if self._framing == "close" else chunk(text)

    def _cut(self, end: int) -> bytes:
        taken = bytes(self._text[:end])
        del self._text[:end]
        self._offset += end
        return taken
