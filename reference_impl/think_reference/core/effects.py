"""Everything an agent can ask for. Effects are done in the order they are given.

`Persist` is one transaction of the journal, or part of one with others, and is done before anything
behind it: nothing is ever shown that a crash could take back.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from think_conformance.wire.frames import Message, ServerFrame
from think_reference.core.turn import Turn

# ---- journal writes -------------------------------------------------------------------------


class PutTurn(Struct, frozen=True):
    """Insert the row of this request id, or replace it."""

    turn: Turn


class AddChunk(Struct, frozen=True):
    """Append one stream chunk to the log of a request."""

    request_id: str
    seq: int
    body: str


class DropChunks(Struct, frozen=True):
    """Delete the chunk log of a request."""

    request_id: str


class InsertMessage(Struct, frozen=True):
    """Put a new message at `position` of the transcript; those from there on move up by one."""

    position: int
    message: Message


class UpdateMessage(Struct, frozen=True):
    """Replace the stored message that has the same id."""

    message: Message


class DeleteMessage(Struct, frozen=True):
    """Take the message at `position` out of the transcript; those behind it move down by one."""

    position: int


class PutMeta(Struct, frozen=True):
    """Set a named JSON value of the agent."""

    key: str
    value: Any


class DropMeta(Struct, frozen=True):
    """Remove a named value."""

    key: str


class ClearChat(Struct, frozen=True):
    """Delete all turns, chunks and messages."""


Write = (
    PutTurn
    | AddChunk
    | DropChunks
    | InsertMessage
    | UpdateMessage
    | DeleteMessage
    | PutMeta
    | DropMeta
    | ClearChat
)


class Rows(Struct, frozen=True):
    """What a journal holds: the only input of recovery. Turns in any order, messages in transcript order."""

    turns: list[Turn] = []
    chunks: dict[str, list[str]] = {}
    messages: list[Message] = []
    meta: dict[str, Any] = {}


# ---- effects --------------------------------------------------------------------------------


class Persist(Struct, frozen=True):
    """Write all of these or none."""

    writes: tuple[Write, ...]


class Send(Struct, frozen=True):
    """One frame to one connection; nothing if it is gone (WIRE-112)."""

    conn: int
    frame: ServerFrame


class Broadcast(Struct, frozen=True):
    """One frame to every connection but `excluding`."""

    frame: ServerFrame
    excluding: frozenset[int] = frozenset()


class Replay(Struct, frozen=True):
    """Stored chunks to one connection as replay frames, `seq` from 0 (WIRE-104). The frames are
    made while the socket drains, so that a long log is not copied for each reader."""

    conn: int
    request_id: str
    chunks: tuple[str, ...]
    continuation: bool = False


class CallModel(Struct, frozen=True):
    """Ask the model; its answer comes back as model events that name `request_id`. messages and tools
    as in a chat-completion request."""

    request_id: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = []


class RunTool(Struct, frozen=True):
    """Run a tool; its result comes back as a tool event that names `request_id`. A request has one
    piece of work at a time: a model call or a tool."""

    request_id: str
    call_id: str
    tool: str
    input: dict[str, Any]


class AbortWork(Struct, frozen=True):
    """Hang up on the model, or on the tool, of this request; no event of it may follow."""

    request_id: str


class SetTimer(Struct, frozen=True):
    """Fire `TimerFired(key)` at the time `at` (same clock as `now`)."""

    key: str
    at: float


class CancelTimer(Struct, frozen=True):
    """The timer must not fire any more."""

    key: str


class Evict(Struct, frozen=True):
    """Drop this agent as a kill would: its work aborted, its sockets cut without a close frame, no
    event to it any more. It is loaded again at `wake_at` (same clock as `now`) or, sooner, by the next
    connection; `None`: only by that."""

    wake_at: float | None


Work = CallModel | RunTool | AbortWork | SetTimer | CancelTimer | Evict
Effect = Persist | Send | Broadcast | Replay | Work
