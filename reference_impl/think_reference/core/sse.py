"""Server-sent events from bytes, however they are cut. Bounded, since the other end is a stranger."""

from __future__ import annotations

MAX_EVENT = 1_048_576
"""Bytes that one event may have. A chunk made of it is then small enough to store (WIRE-82)."""


class EventTooLarge(Exception):
    """The stream holds an event of more than MAX_EVENT bytes."""


class SseParser:
    """Feed it what came; it gives the `data` of each event that is whole."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._after_cr = False
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[str]:
        """The data texts of the events that these bytes complete. Raises EventTooLarge."""
        if not data:
            return []
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._after_cr = False
        if data:
            self._after_cr = data.endswith(b"\r")
        *ends, rest = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events = []
        for end in ends:
            self._take(end)
            event = self._end_line()
            if event is not None:
                events.append(event)
        self._take(rest)
        return events

    def _take(self, piece: bytes) -> None:
        self._line += piece
        self._size += len(piece)
        if self._size > MAX_EVENT:
            raise EventTooLarge(f"an event of more than {MAX_EVENT} bytes")

    def _end_line(self) -> str | None:
        """Take the line as it stands; the event's data, if it was the blank line behind one."""
        line = bytes(self._line)
        self._line.clear()
        self._size += 1
        if not line:
            data, self._data, self._size = self._data, [], 0
            return b"\n".join(data).decode("utf-8", "replace") if data else None
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        return None
