"""Everything that can happen to an agent."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from think_conformance.wire.codec import Unreadable
from think_conformance.wire.frames import ClientFrame

PartKind = Literal["text", "reasoning"]


class Connected(Struct, frozen=True):
    """A client opened a chat socket. `conn` is unique among the connections of this agent."""

    conn: int


class Disconnected(Struct, frozen=True):
    """A socket is gone, however it went. Never a cancel (WIRE-153)."""

    conn: int


class Received(Struct, frozen=True):
    """A client sent a text frame."""

    conn: int
    frame: ClientFrame | Unreadable


class ModelDelta(Struct, frozen=True):
    """The model said a piece of text or reasoning."""

    request_id: str
    kind: PartKind
    text: str


class ModelToolInput(Struct, frozen=True):
    """The model said a piece of the input of a tool call. `call_id` is the model's name for it."""

    request_id: str
    call_id: str
    tool: str
    text: str


class ModelToolCall(Struct, frozen=True):
    """The input of a tool call is whole: `text`, which should be JSON."""

    request_id: str
    call_id: str
    tool: str
    text: str


class ModelFinished(Struct, frozen=True):
    """The model's answer is whole. `reason` in the words of the `finish` chunk (WIRE-226)."""

    request_id: str
    reason: str


class ModelFailed(Struct, frozen=True):
    """The call ended without a whole answer. `in_band`: the model's answer says so by itself, by a status, an
    error or its early end (WIRE-89); else the call itself broke (WIRE-90)."""

    request_id: str
    error: str
    in_band: bool = False


class ToolReturned(Struct, frozen=True):
    """The tool that was asked for is done; `output` is a JSON value."""

    request_id: str
    call_id: str
    output: Any


class ToolRaised(Struct, frozen=True):
    """The tool that was asked for has failed."""

    request_id: str
    call_id: str
    error: str


class TimerFired(Struct, frozen=True):
    """A timer set by `SetTimer` is due."""

    key: str


ModelEvent = ModelDelta | ModelToolInput | ModelToolCall | ModelFinished | ModelFailed
ToolEvent = ToolReturned | ToolRaised
Event = Connected | Disconnected | Received | ModelEvent | ToolEvent | TimerFired
