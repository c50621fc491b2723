"""The bytes of one direction of a WebSocket, taken apart into what passes and what may be hit. Pure.

Nothing is ever rebuilt: what comes out is what went in, cut at other places. While nobody watches,
only the borders of frames are followed. While somebody does, a data message is kept until it is
whole (its fragments together; control frames between them go ahead of it), unless it is larger than
MESSAGE_CAP or had begun to pass before: such a message is counted but not shown.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from think_proxy.match import Message

MESSAGE_CAP = 8 * 1024 * 1024
"""Bytes of a message that are kept to look at it, as sent and as inflated."""

CONTINUATION, CLOSE = 0x0, 0x8


class Header(NamedTuple):
    """A frame's header. `size` is its own length, `length` that of the payload, in bytes."""

    fin: bool
    compressed: bool
    opcode: int
    mask: bytes
    size: int
    length: int

    @property
    def control(self) -> bool:
        return self.opcode >= CLOSE


def header(buffer: bytearray, at: int = 0) -> Header | None:
    """The header that starts at `at`, None while it is incomplete (RFC 6455 section 5.2)."""
    have = len(buffer) - at
    if have < 2:
        return None
    first, second = buffer[at], buffer[at + 1]
    length = second & 0x7F
    extended = 0 if length < 126 else 2 if length == 126 else 8
    masked = second & 0x80
    size = 2 + extended + (4 if masked else 0)
    if have < size:
        return None
    if extended:
        length = int.from_bytes(buffer[at + 2 : at + 2 + extended])
    mask = bytes(buffer[at + size - 4 : at + size]) if masked else b""
    return Header(bool(first & 0x80), bool(first & 0x40), first & 0x0F, mask, size, length)


def unmask(payload: bytes | bytearray, mask: bytes, at: int = 0) -> bytes:
    """A piece of a payload in clear; `at` is where in the payload it begins."""
    size = len(payload)
    if not mask or not size:
        return bytes(payload)
    turned = mask[at % 4 :] + mask[: at % 4]
    key = (turned * (size // 4 + 1))[:size]
    return (int.from_bytes(payload) ^ int.from_bytes(key)).to_bytes(size)


def close_frame(code: int, reason: str) -> bytes:
    """The close frame a server sends."""
    payload = code.to_bytes(2) + reason.encode()
    return bytes([0x80 | CLOSE, len(payload)]) + payload


class Content:
    """The content of the message under way. With permessage-deflate (RFC 7692) every compressed
    message of a direction must come by here, since later ones refer to earlier ones; when one
    cannot be inflated within MESSAGE_CAP, this and all later ones stay unknown."""

    def __init__(self, *, inflate: bool) -> None:
        self._inflater = zlib.decompressobj(-zlib.MAX_WBITS) if inflate else None
        self._clear = bytearray()
        self.compressed = False

    def begin(self, *, compressed: bool) -> None:
        self._clear.clear()
        self.compressed = compressed

    def add(self, piece: bytes) -> None:
        self._clear += self._inflate(piece) if self.compressed else piece

    def end(self) -> bytes | None:
        if self.compressed:
            self.add(b"\x00\x00\xff\xff")
            if self._inflater is None:
                return None
            if self._inflater.eof:  # the sender closed its deflate stream, the next begins a new one
                self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        content = bytes(self._clear)
        self._clear.clear()
        return content

    def _inflate(self, piece: bytes) -> bytes:
        if self._inflater is None:
            return b""
        room = MESSAGE_CAP - len(self._clear)
        try:
            clear = self._inflater.decompress(piece, room + 1)
        except zlib.error:
            self._inflater = None
            return b""
        if len(clear) > room:
            self._inflater = None
            return b""
        return clear


class MessageReader:
    """One direction, from the first byte after the handshake on."""

    def __init__(self, *, inflate: bool) -> None:
        self._inflate = inflate
        self._content = Content(inflate=inflate)
        self._ordinal = 0
        self._position = 0  # of the buffer's first byte in the stream
        self._offset = 0  # of the current message's first byte in the stream, if it is kept
        self._frame: Header | None = None  # the frame that passes piece by piece
        self._left = 0  # bytes of it that are still to come
        self._kept = bytearray()  # frames of the current message, as long as it may be hit

    @property
    def inside_frame(self) -> bool:
        """Whether the last thing handed out ended in the middle of a frame."""
        return self._left > 0

    def take(self, buffer: bytearray, watch: bool) -> bytes | Message | None:
        """The next that can pass, off the front of `buffer`: bytes that nobody asks about, or, while
        `watch`, a whole message. None when more must come first."""
        if self._left:
            return self._take_rest(buffer) if buffer else None
        if watch:
            return self._take_watched(buffer)
        if self._kept:
            return self._let_go()
        end = 0
        while not self._left and (head := header(buffer, end)) is not None:
            end = self._pass(buffer, end, head)
        return self._cut(buffer, end) if end else None

    def flush(self, buffer: bytearray) -> bytes:
        """All that is left, when nothing more will come."""
        return self._let_go() + self._cut(buffer, len(buffer))

    def _take_watched(self, buffer: bytearray) -> bytes | Message | None:
        while (head := header(buffer)) is not None:
            end = head.size + head.length
            if head.control:
                return self._cut(buffer, self._pass(buffer, 0, head))
            begins = head.opcode != CONTINUATION
            if self._kept and (begins or len(self._kept) + end > MESSAGE_CAP):
                return self._let_go()
            if end > MESSAGE_CAP or not (begins or self._kept):
                return self._cut(buffer, self._pass(buffer, 0, head))
            if len(buffer) < end:
                return None
            self._note(head)
            frame = self._cut(buffer, end)
            self._kept += frame
            self._content.add(unmask(frame[head.size :], head.mask))
            if head.fin:
                return Message(self._let_go(), self._content.end(), self._ordinal, self._offset)
        return None

    def _take_rest(self, buffer: bytearray) -> bytes:
        frame = self._frame
        assert frame is not None
        end = min(self._left, len(buffer))
        self._look(frame, buffer, 0, end, frame.length - self._left)
        self._left -= end
        self._end_frame(frame)
        return self._cut(buffer, end)

    def _pass(self, buffer: bytearray, at: int, head: Header) -> int:
        """Lets the frame at `at` go by, as far as it is there; returns where that ends."""
        whole = at + head.size + head.length
        end = min(whole, len(buffer))
        self._note(head)
        self._look(head, buffer, at + head.size, end, 0)
        self._frame = head
        self._left = whole - end
        self._end_frame(head)
        return end

    def _note(self, head: Header) -> None:
        """A data message begins with its first frame."""
        if not head.control and head.opcode != CONTINUATION:
            self._ordinal += 1
            self._offset = self._position
            self._content.begin(compressed=head.compressed)

    def _look(self, head: Header, buffer: bytearray, start: int, end: int, at: int) -> None:
        """A compressed message that passes unseen still teaches the inflater."""
        if self._inflate and self._content.compressed and not head.control:
            self._content.add(unmask(buffer[start:end], head.mask, at))

    def _end_frame(self, head: Header) -> None:
        if self._inflate and not self._left and head.fin and not head.control:
            self._content.end()

    def _let_go(self) -> bytes:
        kept = bytes(self._kept)
        self._kept.clear()
        return kept

    def _cut(self, buffer: bytearray, end: int) -> bytes:
        taken = bytes(buffer) if end == len(buffer) else bytes(memoryview(buffer)[:end])
        del buffer[:end]
        self._position += end
        return taken
