"""One firing on one connection: the fault's list runs while the direction it hit is held.

The list and its bounds are the same on every carrier; what an action does to a connection is not.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from think_proxy.carriers.events import BodyMessage
from think_proxy.carriers.http1 import answer
from think_proxy.carriers.messages import close_frame
from think_proxy.carriers.relay import Lane
from think_proxy.engine import Firing
from think_proxy.faults import ACTS
from think_proxy.journal import Done
from think_proxy.match import Message
from think_proxy.plan import Direction, ProcessAction, Status

Process = Callable[[ProcessAction, str], Awaitable[None]]
"""Does this to the target process for the firing with this token; returns when it is done."""


class Strike(ABC):
    """The `Link` of one firing, as far as all carriers share it."""

    def __init__(self, firing: Firing, process: Process | None) -> None:
        self.firing = firing
        self._process = process
        self._healed = asyncio.Event()

    async def run(self, done: Callable[[list[str], Done, str], None]) -> None:
        """Does the list, bounded as a whole; reports what was done and how it ended; then the
        connection flows again. Never raises but for cancellation."""
        did: list[str] = []
        outcome: Done = "done"
        reason = ""
        limit = asyncio.timeout(self.firing.fault.within_s)
        try:
            async with limit:
                for action in self.firing.fault.do:
                    if did and self._healed.is_set():
                        outcome, reason = "error", "healed before the list was done"
                        break
                    await ACTS[action.name](self, getattr(action, action.name))
                    did.append(action.name)
        except Exception as error:  # whatever the owner's process control may raise
            if limit.expired():
                outcome, reason = "timeout", f"not done within {self.firing.fault.within_s:g} s"
            else:
                outcome, reason = "error", f"{type(error).__name__}: {error}"
        done(did, outcome, reason)
        self.release()

    def heal(self) -> None:
        """Lifts what can be lifted: a stall ends now."""
        self._healed.set()

    async def wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._healed.wait()

    async def process(self, action: ProcessAction) -> None:
        assert self._process is not None, "a plan with process actions was armed without process control"
        await self._process(action, self.firing.token)

    @abstractmethod
    def release(self) -> None:
        """The list is over: what is still held passes, and the connection flows again."""

    @abstractmethod
    def discard(self) -> None: ...

    @abstractmethod
    def hold(self, direction: Direction | None) -> AbstractContextManager[None]: ...

    @abstractmethod
    def reset(self) -> None: ...

    @abstractmethod
    def finish(self) -> None: ...

    @abstractmethod
    async def close(self, code: int, reason: str) -> None: ...

    @abstractmethod
    async def answer(self, status: Status) -> None: ...

    @abstractmethod
    def shorten(self, keep: int | None, *, clean: bool) -> None: ...

    @abstractmethod
    def swallow(self) -> None: ...


class RelayStrike(Strike):
    """A firing on a relay. The lane is held from here on until `run` is over; healed, a black hole ends in
    a reset."""

    def __init__(self, lane: Lane, message: Message, firing: Firing, process: Process | None) -> None:
        super().__init__(firing, process)
        self.relay = lane.relay
        self.swallowing = False
        self._lane = lane
        self._held: Message | None = message
        lane.hold()
        if firing.fault.after:
            self._let_go()

    def release(self) -> None:
        self._let_go()
        self._lane.release()

    def heal(self) -> None:
        super().heal()
        if self.swallowing:
            self.relay.reset()

    def discard(self) -> None:
        self._held = None

    @contextmanager
    def hold(self, direction: Direction | None) -> Iterator[None]:
        lanes = [lane for lane in (self.relay.up, self.relay.down) if direction in (None, lane.direction)]
        for lane in lanes:
            lane.hold()
        try:
            yield
        finally:
            for lane in lanes:
                lane.release()

    def reset(self) -> None:
        self.relay.reset()

    def finish(self) -> None:
        self.relay.finish()

    async def close(self, code: int, reason: str) -> None:
        await self.relay.close(close_frame(code, reason))

    async def answer(self, status: Status) -> None:
        await self.relay.close(answer(status))

    def shorten(self, keep: int | None, *, clean: bool) -> None:
        held, self._held = self._held, None
        if held is not None:
            assert isinstance(held, BodyMessage), "only an answer to a request is armed to be shortened"
            self._lane.forward(held.first(keep, clean=clean))

    def swallow(self) -> None:
        self.swallowing = True
        self.relay.swallow(self.firing.fault.within_s)

    def _let_go(self) -> None:
        if self._held is not None:
            self._lane.forward(self._held.raw)
            self._held = None
