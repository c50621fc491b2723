"""What an application writes against: the class `Think`; and `ConformanceAgent`, the one the kit tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import msgspec

from think_reference.core.application import Aborted, NotCallable, Storage

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


class ConformanceAgent(Think):
    """The agent that the conformance kit talks to."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
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
