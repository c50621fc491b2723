"""What may be hit on a leg of plain HTTP: of every exchange the request, and the events of the answer
or else the answer as a whole. Pure.

An exchange that no armed fault concerns passes as it came, byte for byte. To know that, a request is
kept until it is whole, as long as any fault is armed; only a head that asks for permission to send its
body goes ahead. A caller that hangs up while a fault holds its request takes it back: otherwise a server
would be called by nobody. What is larger than MESSAGE_CAP passes and is not shown. An answer without
events that a fault might hit is kept until it is whole; one with events passes cut into chunks along
them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from think_proxy.carriers.events import BodyMessage, EventReader
from think_proxy.carriers.http1 import Conversation, Head, Part
from think_proxy.carriers.messages import MESSAGE_CAP
from think_proxy.engine import Engine, Watch
from think_proxy.match import Exchange, Message
from think_proxy.plan import Direction


class Whole:
    """A head and the body behind it, kept together."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self._head = b""
        self._raw = bytearray()  # of the body
        self._data = bytearray()

    @property
    def too_large(self) -> bool:
        return len(self._raw) > MESSAGE_CAP

    @property
    def body(self) -> bytes:
        return bytes(self._data)

    def add(self, part: Part) -> None:
        if part.head is not None:
            self._head = part.raw
        else:
            self._raw += part.raw
            self._data += part.data

    def let_go(self) -> bytes:
        """What is kept, as it came; it is kept no longer, but for the content."""
        kept = self._head + bytes(self._raw)
        self._head = b""
        self._raw.clear()
        return kept

    def message(self) -> BodyMessage:
        """All of it as one message."""
        body = self.body
        plain = self.head.headers.get("content-encoding", "identity") == "identity"
        chunked = self.head.framing == "chunked"
        head = self._head
        return BodyMessage(
            self.let_go(), body if plain else None, 1, 0, head=head, body=body, chunked=chunked
        )


class ExchangeReader:
    """Both directions of one TCP connection."""

    coupled = True
    dies_with_caller = True

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._http = Conversation()
        self._watch: Watch | None = None
        self._request: Whole | None = None
        self._answer: Whole | EventReader | None = None
        self._ready: dict[Direction, deque[bytes | Message]] = {"up": deque(), "down": deque()}

    @property
    def watch(self) -> Watch:
        """The eye on the exchange under way."""
        assert self._watch is not None
        return self._watch

    def take(self, direction: Direction, buffer: bytearray, ended: bool) -> bytes | Message | None:
        ready = self._ready[direction]
        while not ready:
            part = self._http.take(direction, buffer)
            if part is not None:
                ready.extend(self._read(direction, part))
            elif direction == "down" and ended and isinstance(self._answer, Whole):
                ready.extend(self._end_answer(self._answer))
            else:
                return None
        return ready.popleft()

    def flush(self, direction: Direction, buffer: bytearray) -> bytes:
        ready = self._ready[direction]
        ready.append(self._let_go(direction))
        rest = b"".join(unit if isinstance(unit, bytes) else unit.raw for unit in ready) + bytes(buffer)
        ready.clear()
        buffer.clear()
        return rest

    def waiting(self, direction: Direction) -> bool:
        return self._http.waiting(direction)

    def gathering(self, direction: Direction) -> bool:
        return False

    def inside(self, direction: Direction) -> bool:
        return False

    def _read(self, direction: Direction, part: Part) -> Iterator[bytes | Message]:
        if self._http.mode != "http":  # from here on it is something else
            units: Iterator[bytes | Message] = iter((self._let_go(direction), part.raw))
        else:
            units = self._read_up(part) if direction == "up" else self._read_down(part)
        return (unit for unit in units if unit)

    def _read_up(self, part: Part) -> Iterator[bytes | Message]:
        if part.head is not None:
            self._watch = None
            self._request = Whole(part.head) if self._engine.alert else None
        request = self._request
        if request is None:
            yield part.raw
            return
        request.add(part)
        if part.head is not None and part.head.lists("expect", "100-continue"):
            yield request.let_go()
        if part.over or request.too_large:
            self._request = None
            yield self._end_request(request)

    def _end_request(self, request: Whole) -> bytes | Message:
        target = request.head.first[1]
        if request.too_large:
            self._watch = self._engine.watch(Exchange(target))
            return request.let_go()
        self._watch = self._engine.watch(Exchange(target, request.body))
        return request.message() if self._watch.active("up") else request.let_go()

    def _read_down(self, part: Part) -> Iterator[bytes | Message]:
        if part.head is not None and self._watch is not None and self._watch.active("down"):
            yield from self._begin_answer(part.head, part)
        elif isinstance(self._answer, EventReader):
            yield from self._answer.read(part)
        elif self._answer is not None:
            self._answer.add(part)
            if self._answer.too_large:
                yield self._let_go("down")
        else:
            yield part.raw
        if part.over:
            if isinstance(self._answer, Whole):
                yield self._answer.message()
            self._answer = None

    def _begin_answer(self, head: Head, part: Part) -> Iterator[bytes | Message]:
        kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
        encoded = head.headers.get("content-encoding", "identity") != "identity"
        if kind == "text/event-stream" and not encoded and not part.over:
            self._answer = EventReader(head)
            yield self._answer.head(part.raw)
        else:
            self._answer = Whole(head)
            self._answer.add(part)

    def _end_answer(self, answer: Whole) -> Iterator[bytes | Message]:
        """The connection ends behind an answer: for one that announced no end this is the end of it."""
        self._answer = None
        yield answer.message() if answer.head.framing == "close" else answer.let_go()

    def _let_go(self, direction: Direction) -> bytes:
        """What is kept of a request or an answer that is shown to nobody."""
        kept: Whole | EventReader | None
        if direction == "up":
            kept, self._request = self._request, None
        else:
            kept, self._answer = self._answer, None
        if isinstance(kept, EventReader):
            return kept.rest()
        return kept.let_go() if kept else b""
