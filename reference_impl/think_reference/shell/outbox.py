"""What waits to be sent to one connection. Bounded; putting never waits.

A reader that is too slow is cut off (close 1013) and comes back to a replay; it never holds up the
agent or another reader.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator

from think_conformance.wire.codec import encode
from think_reference.core.effects import Replay
from think_reference.core.stream import replay_frame

LIMIT = 8 * 1024 * 1024
"""Bytes that may wait for one connection."""

MOST_COST = LIMIT // 4
"""What one entry counts at most: a transcript larger than the limit must get through, or its agent
could never be reached again."""

ENTRY_COST = 64
"""Bytes that any waiting entry counts besides its text."""

TOO_SLOW = "too slow"
"""Why a reader is cut off that lets too much wait."""

END_S = 2.0
"""How long what waits may take to leave once the connection is to end."""


class Outbox:
    """`send` writes one text to the socket and may wait. `close` is called once, with the reason, when more
    than LIMIT bytes wait, or by `end`; from then on nothing is taken. `abort` ends the connection without
    a word."""

    def __init__(
        self,
        send: Callable[[str], Awaitable[None]],
        close: Callable[[str], None],
        abort: Callable[[], None],
    ) -> None:
        self._send, self._close, self._abort = send, close, abort
        self._waiting: deque[tuple[str | Replay, int]] = deque()
        self._size = 0
        self._full = False
        self._last_words: str | None = None
        self._wake = asyncio.Event()

    def put(self, text: str) -> None:
        """Send this text, after all that waits."""
        self._add(text, len(text) + ENTRY_COST)

    def replay(self, replay: Replay) -> None:
        """Send these chunks; each frame is made when its turn comes, so a replay counts for little."""
        self._add(replay, 8 * len(replay.chunks) + ENTRY_COST)

    async def run(self) -> None:
        """Send what waits, until the end. Ends with the error of `send`."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                entry, cost = self._waiting.popleft()
                for text in _texts(entry):
                    await self._send(text)
                    await asyncio.sleep(0)  # a fast reader of a long replay must not hold up the others
                self._size -= cost
            if self._last_words is not None:
                self._close(self._last_words)
                return

    def end(self, why: str) -> None:
        """Send what waits and close the connection; who does not read is cut off."""
        if not self._full:
            self._full, self._last_words = True, why
            self._wake.set()
            asyncio.get_running_loop().call_later(END_S, self._abort)

    def abort(self) -> None:
        """Send nothing any more and cut the connection."""
        self._shut()
        self._abort()

    def _shut(self) -> None:
        self._full = True
        self._waiting.clear()

    def _add(self, entry: str | Replay, cost: int) -> None:
        if self._full:
            return
        cost = min(cost, MOST_COST)
        self._size += cost
        if self._size > LIMIT:
            self._shut()
            self._close(TOO_SLOW)
            return
        self._waiting.append((entry, cost))
        self._wake.set()


def _texts(entry: str | Replay) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
        return
    for seq in range(len(entry.chunks)):
        yield encode(replay_frame(entry, seq))
