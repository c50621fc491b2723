"""What the core asks of the application that it runs: options, tools, methods, and durable storage for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from think_reference.core.effects import PutMeta

_PREFIX = "app."


class Storage:
    """Named JSON values of the application. What a method puts is durable before its answer is sent."""

    def __init__(self, meta: dict[str, Any]) -> None:
        self._values = {k.removeprefix(_PREFIX): v for k, v in meta.items() if k.startswith(_PREFIX)}
        self._written: list[PutMeta] = []

    def get(self, key: str, default: Any = None) -> Any:
        """The value last put under `key`."""
        return self._values.get(key, default)

    def put(self, key: str, value: Any) -> None:
        """Store a JSON value."""
        self._values[key] = value
        self._written.append(PutMeta(_PREFIX + key, value))

    def drain(self) -> tuple[PutMeta, ...]:
        """The writes since the last call."""
        written = tuple(self._written)
        self._written.clear()
        return written


class Tool(Struct, frozen=True):
    """A tool that the server runs. parameters: JSON schema of its input. run: tool call id and input ->
    output, a JSON value; what it raises is the result that the model reads."""

    description: str
    parameters: dict[str, Any]
    run: Callable[[str, dict[str, Any]], Awaitable[Any]]


class NotCallable(Exception):
    """A client may not call this; the text is the answer (WIRE-31)."""


class Aborted(Exception):
    """The application wants its agent dropped at once, as if its host had died."""


class Application(Protocol):
    """Read once, when the agent is loaded."""

    @property
    def max_attempts(self) -> int:
        """Recovery attempts without progress before a turn is given up (TURN-63)."""

    @property
    def terminal_message(self) -> str:
        """What a client reads when a turn is given up (TURN-69)."""

    @property
    def prepare_delay_ms(self) -> int:
        """How long a turn is held between its start and the opening of its stream."""

    @property
    def keep_alive_interval_ms(self) -> int:
        """How soon a dropped agent with unended turns wakes by itself (TURN-29)."""

    @property
    def max_steps(self) -> int:
        """Model calls of one run at most (TURN-18)."""

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools offered to the model, by name."""

    def method(self, name: str) -> Callable[..., Any]:
        """The method a client may call by this name; raises NotCallable."""
