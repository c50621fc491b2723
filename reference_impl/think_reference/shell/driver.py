"""Drives one agent: hands it events with the time, and does its effects in order.

All of it runs in the event loop's thread without waiting, so events are never interleaved. What is to be
written for events that came together is one transaction, committed before anything of them is sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple

from think_conformance.wire.codec import decode_client, dumps, encode
from think_conformance.wire.frames import ChatRequest, Message
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
    ModelEvent,
    ModelFailed,
    ModelFinished,
    Received,
    TimerFired,
    ToolRaised,
    ToolReturned,
)
from think_reference.core.request import refusal
from think_reference.shell import clock
from think_reference.shell.journal import Journal, JournalError, LoadError
from think_reference.shell.model import Model, ModelError
from think_reference.shell.outbox import Outbox

_log = logging.getLogger(__name__)

MAX_OUTPUT = 1_048_576
"""Characters of JSON that a tool's result may have. A chunk with it is small enough to store (WIRE-82)."""


RETRY_S = 1.0
"""How soon an agent is loaded again whose journal could not be written."""

CANNOT_STORE = "the journal cannot be written; try again later"
"""What clients are told then."""


class _Loaded(NamedTuple):
    agent: Agent
    journal: Journal


class Driver:
    """One agent of this process, until it is stopped: no later instance shares its journal handle, so nothing
    of this one can write when another is loaded. While nothing happens it may be out of memory, whoever is
    connected. `make` and `open_journal` make what is loaded; `dropped` is told that the agent was dropped
    and in how many seconds it wants to wake."""

    def __init__(
        self,
        label: str,
        make: Callable[[], Agent],
        open_journal: Callable[[], Journal],
        model: Model,
        dropped: Callable[[float | None], None],
    ) -> None:
        self._label, self._make, self._open_journal = label, make, open_journal
        self._model, self._dropped = model, dropped
        self._loaded: _Loaded | None = None
        self._outboxes: dict[int, Outbox] = {}
        self._connections = 0
        self._work: dict[str, asyncio.Task[None]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._stirred = False
        self._stopped = False

    @property
    def messages(self) -> list[Message]:
        """The stored transcript. Raises JournalError and LoadError."""
        return self._load().agent.messages

    @property
    def loaded(self) -> bool:
        """Whether it is in memory."""
        return self._loaded is not None

    @property
    def connected(self) -> bool:
        """Whether anybody is."""
        return bool(self._outboxes)

    def load(self) -> None:
        """Be in memory: take over the journal, unless that is done. Raises JournalError and LoadError."""
        self._load()

    def doze(self) -> None:
        """Leave memory, if no turn is open and nothing happened since this was last asked."""
        if self._loaded is not None and self._loaded.agent.idle and not self._stirred:
            self._unload()
        self._stirred = False

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
        if self._loaded is not None:
            self._on(Disconnected(conn))

    def stop(self) -> None:
        """Do nothing any more: what runs stays `running` in the journal, to be put back."""
        self._stopped = True
        self._unload()

    def _load(self) -> _Loaded:
        self._stirred = True
        if self._loaded is None:
            try:
                self._loaded = _Loaded(self._make(), self._open_journal())
                agent, journal = self._loaded
                self._perform(journal, agent.load(journal.read(), clock.now(), self._outboxes))
            except (JournalError, LoadError):
                self._unload()
                raise
            except Exception as error:
                self._unload()
                raise LoadError(f"{self._label} cannot be loaded: {error!r}") from error
        return self._loaded

    def _unload(self) -> None:
        for task in self._work.values():
            task.cancel()
        for timer in self._timers.values():
            timer.cancel()
        if self._loaded is not None:
            self._loaded.journal.close()
        self._loaded = None

    def _on(self, *events: Event) -> None:
        if self._stopped:
            return
        try:
            agent, journal = self._load()
            now = clock.now()
            self._perform(journal, [effect for event in events for effect in agent.handle(event, now)])
        except JournalError as error:
            _log.error("%s", error)
            self._give_up(events)
        except LoadError as error:
            _log.error("%s", error)
            self._drop(None)
        except Exception:  # its next connection finds it as it is stored
            _log.exception("%s is dropped", self._label)
            self._drop(None)

    def _perform(self, journal: Journal, effects: list[Effect]) -> None:
        if writes := [write for effect in effects if isinstance(effect, Persist) for write in effect.writes]:
            journal.write(writes)
        for effect in effects:
            match effect:
                case Persist():
                    pass  # done
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
                if task := self._work.pop(request_id, None):  # none: its end came with what stopped it
                    task.cancel()
            case SetTimer(key, at):
                wait = max(0.0, at - clock.now())
                self._timers[key] = asyncio.get_running_loop().call_later(wait, self._fire, key)
            case CancelTimer(key):
                self._timers.pop(key).cancel()
            case Evict(wake_at):
                self._drop(None if wake_at is None else max(0.0, wake_at - clock.now()))

    def _drop(self, wake_s: float | None) -> None:
        self.stop()
        outboxes, self._outboxes = self._outboxes, {}
        for outbox in outboxes.values():
            outbox.abort()
        self._dropped(wake_s)

    def _give_up(self, events: Sequence[Event]) -> None:
        """What could not be stored is neither shown nor kept: say so, and begin again from what is stored."""
        self.stop()
        outboxes, self._outboxes = self._outboxes, {}
        for event in events:
            match event:
                case Received(conn, ChatRequest(id=request_id)) if conn in outboxes:
                    outboxes[conn].put(encode(refusal(request_id, CANNOT_STORE)))
        for outbox in outboxes.values():
            outbox.end(CANNOT_STORE)
        self._dropped(RETRY_S)

    def _fire(self, key: str) -> None:
        del self._timers[key]
        self._on(TimerFired(key))

    async def _call_model(self, asked: CallModel) -> None:
        request_id = asked.request_id
        last: list[ModelEvent] = []
        try:
            async with aclosing(self._model.answer(asked)) as answer:
                async for last in answer:
                    if isinstance(last[-1], ModelFinished):
                        break
                    self._on(*last)
        except ModelError as error:
            last = [ModelFailed(request_id, str(error), error.in_band)]
        except Exception as error:  # a turn whose call has died must not wait for ever
            last = [ModelFailed(request_id, f"the model call failed: {error!r}")]
        del self._work[request_id]
        self._on(*last)

    async def _run_tool(self, asked: RunTool) -> None:
        end: Event
        try:
            output = await self._load().agent.tools[asked.tool].run(asked.call_id, asked.input)
            if too_deep(output) or len(dumps(output)) > MAX_OUTPUT:
                raise ValueError(f"the result is nested too deep or has more than {MAX_OUTPUT} characters")
            end = ToolReturned(asked.request_id, asked.call_id, output)
        except Exception as error:  # whatever a tool raises is an answer to the model
            end = ToolRaised(asked.request_id, asked.call_id, str(error) or repr(error))
        del self._work[asked.request_id]
        self._on(end)
