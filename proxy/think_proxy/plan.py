"""The fault half of a plan, as data: which moment, on which leg, and what then happens.

Owns the names of the plan format, `version: 1`. All of them are reserved here; a carrier declares
which it does exactly, and a plan that needs more is refused when it is armed.
The other half of a plan file (about, target, configure, model, operations) belongs to the kit; the
stand-alone proxy accepts and ignores it.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Any, Literal

from msgspec import Struct

Leg = Literal["client", "routing", "model", "effects", "target"]
"""The hop a fault hits. `target` is no hop: such a fault has only process actions and fires when
`when.seen` is observed in the history; only the kit can do that."""

Direction = Literal["up", "down"]
"""`up` is towards the target (or its upstream), `down` towards the client."""

ProcessAction = Literal["kill", "term", "pause", "continue", "restart", "evict"]


class _Part(Struct, forbid_unknown_fields=True, omit_defaults=True, rename={"for_": "for"}):
    pass


class Nested(_Part):
    """A field that holds JSON as text, and what that JSON must contain."""

    field: str
    json: dict[str, Any]


class Seen(_Part):
    """A record of the history; `nth` counts matching records from 1."""

    source: str | None = None
    kind: str | None = None
    client: str | None = None
    gate: str | None = None
    json: dict[str, Any] | None = None
    nested: Nested | None = None
    nth: int = 1

    def __post_init__(self) -> None:
        if self.nth < 1:
            raise ValueError("`nth` counts from 1")


class When(_Part):
    """The moment. All given fields must hold.

    A message is one of a WebSocket on the client leg. Behind the target an exchange, a request with
    its answer, takes the place of the connection; its messages are the request, and each server-sent
    event or else the whole body of the answer.

    json, nested: what the content has as JSON. text: the content, exactly. nth: counts, per
    connection, the messages that match everything else, from 1. connection: counts, from 1, the
    connections (exchanges) of `client`, if one is given, in the scope since the fault was armed."""

    client: str | None = None
    direction: Direction | None = None
    json: dict[str, Any] | None = None
    nested: Nested | None = None
    text: str | None = None
    nth: int | None = None
    connection: int | None = None
    offset: int | None = None
    elapsed_s: float | None = None
    probability: float | None = None
    fired: str | None = None
    call: str | None = None
    seen: Seen | None = None

    def __post_init__(self) -> None:
        for name in ("nth", "connection"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise ValueError(f"`{name}` counts from 1")


class CloseCode(_Part):
    """A WebSocket close with this code, as if the other side had sent it."""

    close: int
    reason: str = ""

    def __post_init__(self) -> None:
        if not 1000 <= self.close <= 4999 or self.close in (1004, 1005, 1006, 1015):
            raise ValueError(f"{self.close} is no code a close frame can carry")
        if len(self.reason.encode()) > 123:
            raise ValueError("the reason of a close has at most 123 bytes")


class For(_Part):
    """A bounded time in seconds; `direction` None means both."""

    for_: float
    direction: Direction | None = None

    def __post_init__(self) -> None:
        if not isfinite(self.for_) or self.for_ < 0:
            raise ValueError("`for` is a number of seconds")


class Truncate(_Part):
    """Of an event or a body only the first `keep` bytes pass (None: half of them), then comes the end:
    `clean` is a proper end of the body, so that what is short looks whole."""

    keep: int | None = None
    end: Literal["fin", "reset", "clean"] = "fin"

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep < 0:
            raise ValueError("`keep` is a number of bytes")


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIELD = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class Status(_Part):
    """An HTTP answer instead of the real one. It says how long it is, and that the connection ends."""

    code: int
    headers: dict[str, str] = {}
    body: str = ""

    def __post_init__(self) -> None:
        if not 200 <= self.code <= 599:
            raise ValueError(f"{self.code} is no status of an answer: give 200 to 599")
        for name, value in self.headers.items():
            if not _TOKEN.fullmatch(name) or not _FIELD.fullmatch(value):
                raise ValueError(f"`{name}: {value}` is no header".encode("unicode_escape").decode())


class Action(_Part):
    """One thing to do; exactly one field is set."""

    cut: Literal["reset", "fin", "blackhole"] | CloseCode | None = None
    process: ProcessAction | None = None
    stall: For | None = None
    delay: For | None = None
    half_open: For | None = None
    drop: bool | None = None
    duplicate: int | None = None
    reorder: int | None = None
    corrupt: dict[str, Any] | None = None
    truncate: Truncate | None = None
    slice: dict[str, Any] | None = None
    throttle: dict[str, Any] | None = None
    refuse: bool | None = None
    status: Status | None = None
    slow_handshake: For | None = None

    @property
    def name(self) -> str:
        """The one field that is set."""
        return next(f for f in self.__struct_fields__ if getattr(self, f) is not None)

    @property
    def form(self) -> str:
        """The name, and which way of it where there are several: `cut.reset`, `truncate.clean`,
        `stall.up`."""
        match getattr(self, self.name):
            case CloseCode():
                return f"{self.name}.close"
            case Truncate(end=end):
                return f"{self.name}.{end}"
            case For(direction=str(way)):
                return f"{self.name}.{way}"
            case str(way) if self.name == "cut":
                return f"{self.name}.{way}"
        return self.name

    def __post_init__(self) -> None:
        given = [f for f in self.__struct_fields__ if getattr(self, f) is not None]
        if len(given) != 1:
            raise ValueError(f"an action names exactly one thing to do, this one names {given or 'none'}")
        if self.delay is not None and self.delay.direction is not None:
            raise ValueError("`delay` has no direction: it holds that of its message")


class Fault(_Part):
    """What happens at a moment. `do` runs in order and is bounded as a whole by `within_s`.

    The matched message and everything behind it waits while `do` runs; a cut drops it, else it is
    forwarded when the list is done. `after: true` forwards it first. `times` is how often the fault
    may fire."""

    id: str
    leg: Leg
    when: When
    do: list[Action]
    times: int = 1
    after: bool = False
    within_s: float = 30.0

    def __post_init__(self) -> None:
        if not self.do:
            raise ValueError(f"fault `{self.id}` does nothing: give `do` at least one action")
        if self.times < 1:
            raise ValueError(f"fault `{self.id}`: `times` counts from 1")
        if not isfinite(self.within_s) or self.within_s <= 0:
            raise ValueError(f"fault `{self.id}`: `within_s` is a number of seconds above 0")


class FaultPlan(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A plan file, as the stand-alone proxy reads it."""

    version: Literal[1]
    seed: int = 0
    faults: list[Fault] = []
    about: Any = None
    target: Any = None
    configure: Any = None
    model: Any = None
    operations: Any = None

    def __post_init__(self) -> None:
        ids = [fault.id for fault in self.faults]
        if twice := {i for i in ids if ids.count(i) > 1}:
            raise ValueError(f"fault ids must differ: `{sorted(twice)[0]}` is used twice")
