"""Drives one agent: hands it events with the time, and does its effects in order.

All of it runs in the event loop's thread without waiting, so events are never interleaved and a
transaction is committed before anything behind it is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from think_conformance.wire.codec import decode_client, encode
from think_conformance.wire.frames import Message
from think_reference.core.agent import Agent
from think_reference.core.effects import (
    AbortModel,
    Broadcast,
    CallModel,
    CancelTimer,
    Effect,
    Evict,
    Persist,
    Replay,
    Send,
    SetTimer,
)
from think_reference.core.events import (
    Connected,
    Disconnected,
    Event,
    ModelDelta,
    ModelFailed,
    ModelFinished,
    Received,
    TimerFired,
)
from think_reference.shell import clock
from think_reference.shell.journal import Journal
from think_reference.shell.model import Finished, Model, ModelError
from think_reference.shell.outbox import Outbox


class Driver:
    """One loaded agent, until it is stopped: no later instance shares its journal handle, so nothing
    of this one can write when another is loaded. `evicted` is told that the agent was dropped and in how
    many seconds it wants to wake; `fatal` of an error after which nothing may be sent any more."""

    def __init__(
        self,
        agent: Agent,
        journal: Journal,
        model: Model,
        evicted: Callable[[float | None], None],
        fatal: Callable[[BaseException], None],
    ) -> None:
        self._agent, self._journal, self._model = agent, journal, model
        self._evicted, self._fatal = evicted, fatal
        self._outboxes: dict[int, Outbox] = {}
        self._connections = 0
        self._calls: dict[str, asyncio.Task[None]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._stopped = False

    @property
    def messages(self) -> list[Message]:
        """The stored transcript."""
        return self._agent.messages

    @property
    def idle(self) -> bool:
        """Whether it may be unloaded: nobody is connected, no turn is open."""
        return not self._outboxes and self._agent.idle

    def load(self) -> None:
        """Take over the journal; raises JournalError."""
        self._perform(self._agent.load(self._journal.read(), clock.now()))

    def connect(self, outbox: Outbox) -> int:
        """Add a connection; its number."""
        self._connections += 1
        self._outboxes[self._connections] = outbox
        self._on(Connected(self._connections))
        return self._connections

    def receive(self, conn: int, text: str) -> None:
        """A text frame came."""
        self._on(Received(conn, decode_client(text)))

    def disconnect(self, conn: int) -> None:
        """The connection is gone."""
        self._outboxes.pop(conn, None)
        self._on(Disconnected(conn))

    def stop(self) -> None:
        """Do nothing any more: what runs stays `running` in the journal, to be put back."""
        self._stopped = True
        for call in self._calls.values():
            call.cancel()
        for timer in self._timers.values():
            timer.cancel()
        self._journal.close()

    def _on(self, event: Event) -> None:
        if self._stopped:
            return
        try:
            self._perform(self._agent.handle(event, clock.now()))
        except Exception as error:
            # what was not stored must not be shown, and what the agent holds is not what is stored
            self.stop()
            self._fatal(error)

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Persist(writes):
                    self._journal.write(writes)
                case Send() | Broadcast() | Replay():
                    self._tell(effect)
                case _:
                    self._arrange(effect)

    def _tell(self, effect: Send | Broadcast | Replay) -> None:
        match effect:
            case Send(conn, frame) if conn in self._outboxes:
                self._outboxes[conn].put(encode(frame))
            case Replay(conn) if conn in self._outboxes:
                self._outboxes[conn].replay(effect)
            case Broadcast(frame, excluding):
                text = encode(frame)
                for conn, outbox in self._outboxes.items():
                    if conn not in excluding:
                        outbox.put(text)

    def _arrange(self, effect: CallModel | AbortModel | SetTimer | CancelTimer | Evict) -> None:
        match effect:
            case CallModel(request_id):
                self._calls[request_id] = asyncio.ensure_future(self._call(effect))
            case AbortModel(request_id):
                self._calls.pop(request_id).cancel()
            case SetTimer(key, at):
                wait = max(0.0, at - clock.now())
                self._timers[key] = asyncio.get_running_loop().call_later(wait, self._fire, key)
            case CancelTimer(key):
                self._timers.pop(key).cancel()
            case Evict(wake_at):
                self._drop(wake_at)

    def _drop(self, wake_at: float | None) -> None:
        self.stop()
        outboxes, self._outboxes = self._outboxes, {}
        for outbox in outboxes.values():
            outbox.abort()
        self._evicted(None if wake_at is None else max(0.0, wake_at - clock.now()))

    def _fire(self, key: str) -> None:
        del self._timers[key]
        self._on(TimerFired(key))

    async def _call(self, asked: CallModel) -> None:
        request_id = asked.request_id
        try:
            async with aclosing(self._model.answer(asked.messages)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Finished):
                        end: Event = ModelFinished(request_id, piece.reason)
                        break
                    self._on(ModelDelta(request_id, piece.kind, piece.text))
        except ModelError as error:
            end = ModelFailed(request_id, str(error), error.in_band)
        except Exception as error:  # a turn whose call has died must not wait for ever
            end = ModelFailed(request_id, f"the model call failed: {error!r}")
        del self._calls[request_id]
        self._on(end)
