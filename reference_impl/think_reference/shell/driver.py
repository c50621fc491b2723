"""Drives one agent: hands it events with the time, and does its effects in order.

All of it runs in the event loop's thread without waiting, so events are never interleaved and a
transaction is committed before anything behind it is sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing

from think_conformance.wire.codec import decode_client, dumps, encode
from think_conformance.wire.frames import Message
from think_reference.core.agent import Agent
from think_reference.core.bounds import too_deep
from think_reference.core.effects import (
    AbortWork,
    Broadcast,
    CallModel,
    CancelTimer,
    Effect,
    Evict,
    Persist,
    Replay,
    RunTool,
    Send,
    SetTimer,
    Work,
)
from think_reference.core.events import (
    Connected,
    Disconnected,
    Event,
    ModelFailed,
    ModelFinished,
    Received,
    TimerFired,
    ToolRaised,
    ToolReturned,
)
from think_reference.shell import clock
from think_reference.shell.journal import Journal, JournalError, LoadError
from think_reference.shell.model import Model, ModelError
from think_reference.shell.outbox import Outbox

_log = logging.getLogger(__name__)

MAX_OUTPUT = 1_048_576
"""Characters of JSON that a tool's result may have. A chunk with it is small enough to store (WIRE-82)."""


class Driver:
    """One loaded agent, until it is stopped: no later instance shares its journal handle, so nothing
    of this one can write when another is loaded. `evicted` is told that the agent was dropped and in how
    many seconds it wants to wake; `fatal` of a journal that cannot be written: the process must end."""

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
        self._work: dict[str, asyncio.Task[None]] = {}
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
        """Take over the journal; raises JournalError and LoadError."""
        try:
            self._perform(self._agent.load(self._journal.read(), clock.now()))
        except (JournalError, LoadError):
            raise
        except Exception as error:
            raise LoadError(f"{self._agent.label} cannot be loaded: {error!r}") from error

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
        for task in self._work.values():
            task.cancel()
        for timer in self._timers.values():
            timer.cancel()
        self._journal.close()

    def _on(self, event: Event) -> None:
        if self._stopped:
            return
        try:
            self._perform(self._agent.handle(event, clock.now()))
        except JournalError as error:
            # what was not stored must not be shown, and what the agent holds is not what is stored
            self.stop()
            self._fatal(error)
        except Exception:  # its next connection finds it as it is stored
            _log.exception("%s is dropped", self._agent.label)
            self._drop(None)

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

    def _arrange(self, effect: Work) -> None:
        match effect:
            case CallModel(request_id):
                self._work[request_id] = asyncio.ensure_future(self._call_model(effect))
            case RunTool(request_id):
                self._work[request_id] = asyncio.ensure_future(self._run_tool(effect))
            case AbortWork(request_id):
                self._work.pop(request_id).cancel()
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

    async def _call_model(self, asked: CallModel) -> None:
        request_id = asked.request_id
        try:
            async with aclosing(self._model.answer(asked)) as events:
                async for end in events:
                    if isinstance(end, ModelFinished):
                        break
                    self._on(end)
        except ModelError as error:
            end = ModelFailed(request_id, str(error), error.in_band)
        except Exception as error:  # a turn whose call has died must not wait for ever
            end = ModelFailed(request_id, f"the model call failed: {error!r}")
        del self._work[request_id]
        self._on(end)

    async def _run_tool(self, asked: RunTool) -> None:
        end: Event
        try:
            output = await self._agent.tools[asked.tool].run(asked.call_id, asked.input)
            if too_deep(output) or len(dumps(output)) > MAX_OUTPUT:
                raise ValueError(f"the result is nested too deep or has more than {MAX_OUTPUT} characters")
            end = ToolReturned(asked.request_id, asked.call_id, output)
        except Exception as error:  # whatever a tool raises is an answer to the model
            end = ToolRaised(asked.request_id, asked.call_id, str(error) or repr(error))
        del self._work[asked.request_id]
        self._on(end)
