"""What an application writes against: the class `Think`; and `ConformanceAgent`, the one the kit tests."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec

from think_reference.core.application import Aborted, NotCallable, Storage, Tool

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "_think_callable"


def callable_by_clients(method: F) -> F:
    """Mark a method that clients may call over the chat socket (WIRE-30)."""
    setattr(method, _MARK, True)
    return method


class Think:
    """A durable chat agent. Options are class attributes, or set in `__init__`; a later change has
    no effect (TURN-60)."""

    max_attempts: int = 10
    """Recovery attempts without progress before a turn is given up (TURN-63)."""

    terminal_message: str = "The assistant was interrupted and could not recover. Please try again."
    """What a client reads when a turn is given up (TURN-69)."""

    max_steps: int = 10
    """Model calls of one turn at most (TURN-18)."""

    tools: Mapping[str, Tool] = {}
    """What the server offers the model, by name. The calls of one step run one at a time, in order."""

    prepare_delay_ms: int = 0
    """How long a turn is held between its start and the opening of its stream."""

    keep_alive_interval_ms: int = 1000
    """How soon a dropped agent with unended turns wakes by itself (TURN-29)."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def abort(self) -> NoReturn:
        """Drop this agent at once, as if its host had died; what runs is put back when it is loaded again."""
        raise Aborted

    def method(self, name: str) -> Callable[..., Any]:
        """The method a client may call by this name; raises NotCallable with the answer (WIRE-31)."""
        found: Callable[..., Any] | None = getattr(self, name, None)
        if not callable(found):
            raise NotCallable(f"Method {name} does not exist")
        if not getattr(found, _MARK, False):
            raise NotCallable(f"Method {name} is not callable")
        return found


class Configuration(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """What `configure` takes. Numbers are floored; `maxAttempts` is at least 1 (TURN-63)."""

    prepare_delay_ms: float = Think.prepare_delay_ms
    max_attempts: float = Think.max_attempts
    terminal_message: str = Think.terminal_message
    keep_alive_interval_ms: float = Think.keep_alive_interval_ms


class Effect(msgspec.Struct):
    """Input of `record_effect` and `fail_effect`."""

    key: str


class SlowEffect(Effect):
    """Input of `slow_effect`."""

    ms: Annotated[float, msgspec.Meta(ge=0, le=600_000)]


Outside = Callable[[dict[str, Any]], Awaitable[None]]
"""Tells the world of an effect, {key, tool, toolCallId}; raises if that is not possible."""


async def nowhere(effect: dict[str, Any]) -> None:
    """Where an agent is that was given no outside: no effect can happen."""
    raise OSError("there is no place for effects: THINK_EFFECTS_URL is not set")


class ConformanceAgent(Think):
    """The agent that the conformance kit talks to. Its tools have effects `outside` and nothing else."""

    def __init__(self, storage: Storage, outside: Outside = nowhere) -> None:
        super().__init__(storage)
        self._outside = outside
        key, ms = {"key": "string"}, {"ms": "number"}
        self.tools = {
            "record_effect": Tool("Record an effect.", _taking(key), self._record),
            "slow_effect": Tool("Record an effect, then wait.", _taking(key | ms), self._slow),
            "fail_effect": Tool("Record an effect, then fail.", _taking(key), self._fail),
        }
        chosen = msgspec.convert(storage.get("configuration", {}), Configuration)
        self.prepare_delay_ms = max(0, math.floor(chosen.prepare_delay_ms))
        self.max_attempts = max(1, math.floor(chosen.max_attempts))
        self.keep_alive_interval_ms = max(0, math.floor(chosen.keep_alive_interval_ms))
        self.terminal_message = chosen.terminal_message

    @callable_by_clients
    def configure(self, options: dict[str, Any]) -> None:
        """Store options; they are in force when the agent is loaded the next time."""
        msgspec.convert(options, Configuration)
        self.storage.put("configuration", options)

    @callable_by_clients
    def evict(self) -> NoReturn:
        """A kill for this agent alone; there is no answer but the end of the connection."""
        self.abort()

    async def _record(self, call_id: str, given: dict[str, Any]) -> dict[str, Any]:
        return await self._effect("record_effect", call_id, msgspec.convert(given, Effect))

    async def _slow(self, call_id: str, given: dict[str, Any]) -> dict[str, Any]:
        slow = msgspec.convert(given, SlowEffect)
        done = await self._effect("slow_effect", call_id, slow)
        await asyncio.sleep(slow.ms / 1000)
        return done

    async def _fail(self, call_id: str, given: dict[str, Any]) -> NoReturn:
        effect = msgspec.convert(given, Effect)
        await self._effect("fail_effect", call_id, effect)
        raise RuntimeError(f"`{effect.key}` was recorded, and then the tool failed")

    async def _effect(self, tool: str, call_id: str, effect: Effect) -> dict[str, Any]:
        await self._outside({"key": effect.key, "tool": tool, "toolCallId": call_id})
        return {"recorded": effect.key}


def _taking(fields: dict[str, str]) -> dict[str, Any]:
    """The JSON schema of a tool's input."""
    properties = {name: {"type": kind} for name, kind in fields.items()}
    return {"type": "object", "properties": properties, "required": list(fields)}
