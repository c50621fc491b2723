"""What may be hit on a leg of WebSockets: the request that opens one, and its messages. Pure.

Other requests on such a leg pass unseen.
"""

from __future__ import annotations

from think_proxy.carriers.http1 import Conversation
from think_proxy.carriers.messages import MessageReader
from think_proxy.engine import Engine, Watch
from think_proxy.match import Connection, Message
from think_proxy.plan import Direction


class SocketReader:
    """Both directions of one TCP connection."""

    dies_with_caller = False

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._http = Conversation()
        self._watch: Watch | None = None
        self._messages: dict[Direction, MessageReader] = {}

    @property
    def watch(self) -> Watch:
        """The eye on the connection, from the request that opens it on."""
        assert self._watch is not None
        return self._watch

    @property
    def coupled(self) -> bool:
        return not self._messages

    def take(self, direction: Direction, buffer: bytearray, ended: bool) -> bytes | Message | None:
        if self._messages:
            return self._messages[direction].take(buffer, self.watch.active(direction))
        if self._http.mode == "websocket":
            self._messages["up"] = MessageReader(inflate=self._http.deflate)
            self._messages["down"] = MessageReader(inflate=self._http.deflate)
            return self.take(direction, buffer, ended)
        part = self._http.take(direction, buffer)
        request = self._http.request
        if part is None or part.head is None or direction == "down" or request is None or not request.upgrade:
            return part and part.raw
        self._watch = self._engine.watch(Connection(request.target))
        return Message(part.raw, None, 0, 0) if self._watch.active("opening") else part.raw

    def flush(self, direction: Direction, buffer: bytearray) -> bytes:
        if self._messages:
            return self._messages[direction].flush(buffer)
        rest = bytes(buffer)
        buffer.clear()
        return rest

    def waiting(self, direction: Direction) -> bool:
        return not self._messages and self._http.waiting(direction)

    def gathering(self, direction: Direction) -> bool:
        return bool(self._messages)

    def inside(self, direction: Direction) -> bool:
        return bool(self._messages) and self._messages[direction].inside_frame
