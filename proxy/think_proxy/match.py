"""What a message is to a plan, and whether it is the one a plan waits for. Pure.

A pattern is partial: an object asks for the fields it names, recursively; a list must have the
same length and matches element by element; anything else must be equal, and `true` is not 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs

import msgspec

from think_proxy.plan import Nested, When

NOTHING = object()
"""The JSON value of what is no JSON: contains nothing and equals nothing."""


def decode(text: str | bytes | None) -> Any:
    """The JSON value of `text`, or NOTHING."""
    if text is None:
        return NOTHING
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return NOTHING


@dataclass(slots=True)
class Message:
    """One whole message of one direction of a connection.

    raw: its bytes as they came, all frames of it. content: what the receiving application sees,
    None where that cannot be told. ordinal: from 1, among the data messages of the direction; the
    request that opens a connection comes before them and is 0. offset: of its first byte in the
    direction's stream of frames, or in the body of its exchange, in bytes; None from a carrier that sees
    no frames."""

    raw: bytes
    content: bytes | None
    ordinal: int
    offset: int | None
    _json: Any = field(default=None, init=False, repr=False)

    @property
    def json(self) -> Any:
        """The content as JSON, or NOTHING; decoded once, and only when asked for."""
        if self._json is None:
            self._json = (decode(self.content),)
        return self._json[0]

    def proof(self) -> dict[str, Any]:
        """What tells this message from every other: `size` in bytes and `sha256` are of the content,
        or of the raw bytes where the content cannot be told."""
        body = self.raw if self.content is None else self.content
        where = {"ordinal": self.ordinal} | ({} if self.offset is None else {"offset": self.offset})
        return {**where, "size": len(body), "sha256": sha256(body).hexdigest()}


def contains(value: Any, pattern: Any) -> bool:
    """Whether `value` has all that `pattern` asks for. Recurses as deep as the pattern, no deeper."""
    if isinstance(pattern, dict):
        return isinstance(value, dict) and all(
            key in value and contains(value[key], part) for key, part in pattern.items()
        )
    if isinstance(pattern, list):
        return isinstance(value, list) and len(value) == len(pattern) and all(map(contains, value, pattern))
    if isinstance(pattern, bool) or isinstance(value, bool):
        return pattern is value
    return bool(pattern == value)


def contains_nested(value: Any, nested: Nested) -> bool:
    """Whether a field of `value` holds JSON as text that has what `nested` asks for."""
    text = value.get(nested.field) if isinstance(value, dict) else None
    return isinstance(text, str) and contains(decode(text), nested.json)


def content_matches(when: When, message: Message) -> bool:
    """Whether the content is what `when` asks for; true when it asks for none."""
    if when.text is not None and when.text.encode(errors="surrogatepass") != message.content:
        return False
    if when.json is not None and not contains(message.json, when.json):
        return False
    return when.nested is None or contains_nested(message.json, when.nested)


@dataclass(frozen=True, slots=True)
class Connection:
    """A WebSocket connection, opened with this request target; it lies in the scopes that are its
    path or above it."""

    target: str

    @property
    def name(self) -> str | None:
        """What its client calls it, None without a name."""
        return connection_of(self.target)

    @property
    def client(self) -> str | None:
        """Whose it is, None without a name."""
        return None if self.name is None else client_of(self.name)

    def within(self, scope: str) -> bool:
        return within(path_of(self.target), scope)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request with its answer. It has no name, and lies in the scopes whose text its target or the
    body of its request contains; a body that is too large to be kept contains nothing."""

    target: str
    body: bytes = b""

    @property
    def name(self) -> None:
        return None

    @property
    def client(self) -> None:
        return None

    def within(self, scope: str) -> bool:
        body = self.body.replace(rb"\/", b"/")  # as some write a slash in JSON
        return scope in self.target or scope.encode() in body


Place = Connection | Exchange
"""What a plan can ask of a connection, or of an exchange that stands for one."""


def path_of(target: str) -> str:
    """The path of a request target, as it stands (percent-encoding untouched)."""
    return target.partition("?")[0]


def connection_of(target: str) -> str | None:
    """The name a client gave its connection, `?_pk=<client>.<n>` (WIRE-16); None without one."""
    try:
        return parse_qs(target.partition("?")[2], max_num_fields=100).get("_pk", [None])[0]
    except ValueError:
        return None


def client_of(connection: str) -> str:
    """The client of a connection name: what precedes the last dot, all of it without a dot."""
    return connection.rpartition(".")[0] or connection


def within(path: str, scope: str) -> bool:
    """Whether a path lies in a scope: equal to it or below it. The empty scope holds every path."""
    scope = scope.rstrip("/")
    return path == scope or path.startswith(scope + "/") or not scope
