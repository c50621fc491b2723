"""What passed on each connection, decoded once: the traffic half of a view.

Frames that cannot be read are left out: they claim nothing. A connection knows from which record on
a fault bent it, so that no check blames the target for what the kit did to the wire.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from think_conformance.history.op import History, Record
from think_conformance.history.work import Fault
from think_conformance.wire.codec import Unreadable, decode_client, decode_server, dumps
from think_conformance.wire.frames import (
    CancelRequest,
    ChatRequest,
    ChatResponse,
    Frame,
    ResumeAck,
    StreamPending,
    StreamResuming,
)

TAMPERING = frozenset({"drop", "duplicate", "reorder", "corrupt", "truncate"})
"""Actions after which the order and number of frames on a connection say nothing of the target."""

LOSSLESS = frozenset({"stall", "delay", "slice", "process", "kill", "term", "restart", "pause", "continue"})
"""Actions that only hold a connection up: what it is owed still comes, unless it ends."""

OF_A_REQUEST = (ChatRequest, CancelRequest, ResumeAck, ChatResponse, StreamResuming, StreamPending)
"""Frames whose `id` is a request id."""


@dataclass(frozen=True, slots=True)
class Passed:
    """One readable frame. `index` is its record, `sent` tells the direction: from the kit's client."""

    index: int
    connection: str
    sent: bool
    frame: Frame


@dataclass(slots=True)
class Connection:
    """One socket of a client. Indexes of records: `dialled`, after which the target may have met it;
    `opened`; `closed` None while open to the end of the history; `disturbed` the first fault that may
    have cost it frames, `tampered` the first that changed them."""

    name: str
    client: str
    epoch: int
    dialled: int
    opened: int
    closed: int | None = None
    disturbed: int | None = None
    tampered: int | None = None
    frames: list[Passed] = field(default_factory=list)

    def lives_at(self, index: int) -> bool:
        """Whether it was open when that record was made."""
        return self.opened <= index and (self.closed is None or self.closed > index)

    def honest(self) -> Iterator[Passed]:
        """Its frames, up to the first tampering."""
        for passed in self.frames:
            if self.tampered is not None and passed.index > self.tampered:
                return
            yield passed


@dataclass(slots=True)
class Exchange:
    """What passed about one request id on one connection, up to the first tampering. `sender`: this
    connection sent the request before any other; `raced`: another one sent it too before the target
    had named it, so that either may have arrived first."""

    connection: Connection
    request: str
    sender: bool = False
    raced: bool = False
    frames: list[Passed] = field(default_factory=list)

    @property
    def replies(self) -> Iterator[tuple[int, ChatResponse]]:
        """The responses, with their records."""
        return ((p.index, p.frame) for p in self.frames if isinstance(p.frame, ChatResponse))

    @property
    def continuation(self) -> bool:
        """Whether its stream extends the message of an earlier one (WIRE-84)."""
        return any(reply.continuation for _, reply in self.replies)

    @property
    def asked(self) -> int:
        """How often the client asked for the id again: acks, and sends after the very first (WIRE-209).
        A send that may have arrived behind another's counts as asking again."""
        asks = sum(p.sent and isinstance(p.frame, (ResumeAck, ChatRequest)) for p in self.frames)
        return asks - (self.sender and not self.raced)


def exchanges_of(connections: dict[str, Connection]) -> dict[tuple[str, str], Exchange]:
    """Every exchange by connection and request id."""
    found: dict[tuple[str, str], Exchange] = {}
    sends: dict[str, dict[int, str]] = {}  # request -> record -> connection
    named: dict[str, int] = {}
    for connection in connections.values():
        for passed in connection.honest():
            ident = getattr(passed.frame, "id", None)
            if not isinstance(ident, str) or not isinstance(passed.frame, OF_A_REQUEST):
                continue
            exchange = found.setdefault((connection.name, ident), Exchange(connection, ident))
            exchange.frames.append(passed)
            if isinstance(passed.frame, ChatRequest):
                sends.setdefault(ident, {})[passed.index] = connection.name
            elif not passed.sent and not _claims_nothing(passed.frame):
                named[ident] = _first(named.get(ident), passed.index)
    for ident, by in sends.items():
        sender = by[min(by)]
        found[sender, ident].sender = True
        found[sender, ident].raced = any(
            name != sender and index < named.get(ident, index + 1) for index, name in by.items()
        )
    return found


def _claims_nothing(frame: Frame) -> bool:
    """What is answered for an id the target may never have heard of (WIRE-111)."""
    return isinstance(frame, ChatResponse) and frame.done and frame.replay


def is_chunk(frame: Frame) -> bool:
    """A stream chunk, live or replayed; not the end of a replay, an error text or a terminal."""
    return (
        isinstance(frame, ChatResponse)
        and not (frame.done or frame.error or frame.replay_complete)
        and frame.body != ""
    )


def connections_of(history: History, faults: list[Fault]) -> dict[str, Connection]:
    """Every connection by name, in order of opening, with its frames and what faults did to it."""
    found: dict[str, Connection] = {}
    dials: dict[str, int] = {}
    for record in history:
        if record.source != "client" or not isinstance(record.ids.get("connection"), str):
            continue
        name = record.ids["connection"]
        if record.kind == "dial":
            dials.setdefault(name, record.index)
            continue
        if name not in found:
            found[name] = Connection(
                name,
                client=str(record.ids.get("client", "")),
                epoch=_number(record.ids.get("epoch")),
                dialled=dials.get(name, record.index),
                opened=record.index,
            )
        connection = found[name]
        if record.kind == "close":
            connection.closed = record.index
        elif record.kind in ("frame-in", "frame-out"):
            frame = _frame(record)
            if frame is not None:
                connection.frames.append(Passed(record.index, name, record.kind == "frame-out", frame))
    for fault in faults:
        _mark(found, fault)
    return found


def _mark(connections: dict[str, Connection], fault: Fault) -> None:
    if fault.leg != "client":
        return
    for index, name in fault.fired:
        hit = [connections[name]] if name in connections else list(connections.values())
        for connection in hit:
            if not fault.actions <= LOSSLESS:
                connection.disturbed = _first(connection.disturbed, index)
            if TAMPERING.intersection(fault.actions):
                connection.tampered = _first(connection.tampered, index)


def _frame(record: Record) -> Frame | None:
    payload: Any = record.payload
    if not isinstance(payload, dict) or not isinstance(payload.get("frame"), dict):
        return None
    try:
        text = dumps(payload["frame"])
    except (RecursionError, ValueError, TypeError):
        return None
    frame = decode_client(text) if record.kind == "frame-out" else decode_server(text)
    return None if isinstance(frame, Unreadable) else frame


def _first(known: int | None, index: int) -> int:
    return index if known is None else min(known, index)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
