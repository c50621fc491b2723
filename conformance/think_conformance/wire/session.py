"""Which frame may follow which on one connection. Every legal move is a cell of `NEXT`.

The table does not know which side we play: both sides of a connection obey it. It is kept per
request id; a cell that is not there breaks the statement in `BROKEN`. What a table cannot say
stands in counters: a replay needs an ack or a send of its id (WIRE-44, WIRE-58), terminals are
bounded by them (WIRE-209), chunks are numbered without gaps (WIRE-83). A client may send and ack in
every state; what it must not is ask what could not be run (WIRE-50) or twice before it has its answer.

What it cannot see: other connections. So "exactly one terminal per turn" is not decided here.
Frames that cross on the wire are legal in the order of either side.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from msgspec import Struct, field

from think_conformance.wire.codec import loads
from think_conformance.wire.frames import (
    ChatRequest,
    ChatResponse,
    Frame,
    Identity,
    Outcome,
    ResumeAck,
    ResumeNone,
    ResumeRequest,
    RpcRequest,
    RpcResponse,
    StreamPending,
    StreamResuming,
)

State = Literal[
    "unknown",  # nothing was said of this id
    "requested",  # the client asked for this turn
    "pending",  # accepted, its stream is not open
    "offered",  # live chunks are withheld until the ack
    "acked",  # the ack is on its way, the replay is owed
    "replaying",
    "streaming",  # attached: live chunks flow
    "failed",  # `error: true` was said, its `done` frame is still to come (shape A)
    "ended",
]

Event = Literal[
    "request",
    "ack",
    "offer",
    "pending",
    "chunk",
    "replay-chunk",
    "replay-complete",
    "error",  # shape A, first half
    "terminal",
    "error-terminal",  # shape B
    "replay-terminal",
]

Row = dict[Event, State]

_OVER: Row = {"terminal": "ended", "error-terminal": "ended", "replay-terminal": "ended"}
_REPLAY: Row = {"offer": "offered", "replay-chunk": "replaying", "replay-complete": "streaming"}
_WITHHELD: Row = {"request": "acked", "ack": "acked", **_REPLAY, "error": "failed", **_OVER}
_OPEN: Row = {**_REPLAY, "chunk": "streaming", "error": "failed", **_OVER}

NEXT: dict[State, Row] = {
    "unknown": {"request": "requested", "ack": "unknown", "pending": "pending", **_OPEN},
    "requested": {"request": "requested", "ack": "requested", "pending": "pending", **_OPEN},
    "pending": {"request": "pending", "ack": "pending", "pending": "pending", **_OPEN},
    "offered": _WITHHELD,
    "acked": _WITHHELD,
    "replaying": {
        "request": "replaying",
        "ack": "replaying",
        **_REPLAY,
        "error-terminal": "ended",  # a failed turn is replayed, then told (WIRE-110)
        "replay-terminal": "ended",
    },
    "streaming": {"request": "streaming", "ack": "streaming", **_OPEN},
    "failed": {
        "request": "failed",
        "ack": "failed",
        "offer": "offered",
        "replay-chunk": "failed",
        "replay-complete": "failed",
        **_OVER,
    },
    "ended": {
        "request": "ended",
        "ack": "ended",
        "offer": "offered",
        "replay-chunk": "replaying",  # its chunks are still stored (WIRE-110, WIRE-111)
        **_OVER,
    },
}
"""State -> event -> next state."""

BROKEN: dict[tuple[State, Event], tuple[str, str]] = {
    ("offered", "chunk"): ("WIRE-105", "a live chunk between an offer and its ack"),
    ("acked", "chunk"): ("WIRE-104", "a live chunk before the replay that was asked for"),
    ("replaying", "chunk"): ("WIRE-104", "a live chunk before the replay was complete"),
    ("replaying", "error"): ("WIRE-104", "a live error before the replay was complete"),
    ("replaying", "terminal"): ("WIRE-104", "a live terminal before the replay was complete"),
    ("failed", "chunk"): ("WIRE-91", "a chunk after the error of its request"),
    ("failed", "error"): ("WIRE-91", "a second error of one request"),
    ("ended", "chunk"): ("WIRE-85", "a chunk after the terminal of its request"),
    ("ended", "error"): ("WIRE-85", "an error after the terminal of its request"),
    ("ended", "replay-complete"): ("WIRE-85", "a running stream after the terminal of its request"),
    ("offered", "pending"): ("WIRE-74", "pending, although its stream had opened"),
    ("acked", "pending"): ("WIRE-74", "pending, although its stream had opened"),
    ("replaying", "pending"): ("WIRE-74", "pending, although its stream had opened"),
    ("streaming", "pending"): ("WIRE-74", "pending, although its stream had opened"),
    ("failed", "pending"): ("WIRE-74", "pending, although it had failed"),
    ("ended", "pending"): ("WIRE-74", "pending, although it had ended"),
}
"""Every cell that `NEXT` leaves out: the statement that forbids it, and what is wrong."""

REQUESTS_KEPT = 256
"""How many request ids a session remembers; the longest known is forgotten first."""

CHUNKS_KEPT = 4096
"""Up to which `seq` a session remembers what live and replay must agree on (WIRE-81)."""


Problem = tuple[str, str]
"""A statement, and how it is broken."""


class Violation(Struct, frozen=True):
    """A frame that was not allowed: the statement it breaks, how, and the request it names."""

    spec: str
    reason: str
    request: str | None = None


class _Request(Struct):
    """What a connection knows of one request id."""

    state: State = "unknown"
    sends: int = 0
    acks: int = 0
    replays: int = 0
    in_replay: bool = False
    terminals: int = 0
    outcome: Outcome | None = None
    last_seq: int | None = None
    bodies: list[int] = field(default_factory=list)  # hash of the body, by seq


class Session:
    """One connection. Show it every frame of both directions, in the order one side saw them.

    After a violation the session goes on: a frame the table forbids leaves its state, a wrong
    number or count is taken as the new truth, so that one mistake is told once.
    """

    def __init__(self) -> None:
        self._requests: dict[str, _Request] = {}
        self._asked: Counter[tuple[str, str]] = Counter()
        self._live: str | None = None
        self._identified = False

    def see(self, frame: Frame) -> Violation | None:
        """The next frame of this connection; what it violates, if anything."""
        named = event_of(frame)
        problem = self._step(*named, frame) if named else None
        problem = problem or _cannot_run(frame) or self._answers(frame) or self._identifies(frame)
        return Violation(*problem, named[1] if named else None) if problem else None

    def state(self, request: str) -> State:
        """Where this connection is with one request id."""
        known = self._requests.get(request)
        return known.state if known else "unknown"

    def _step(self, event: Event, request: str, frame: Frame) -> Problem | None:
        r = self._requests.get(request)
        if r is None:
            _make_room(self._requests)
            r = self._requests[request] = _Request()
        following = NEXT[r.state].get(event)
        if following is None:
            return BROKEN[r.state, event]
        problem = _offered_too_late(r, event) or _not_asked_for(r, event)
        if isinstance(frame, ChatResponse):
            problem = problem or self._interleaved(event, request)
            problem = problem or _misnumbered(r, event, frame) or _told_wrong(r, event, frame)
            _take_in(r, event, frame)
        r.state = following
        r.sends += event == "request"
        r.acks += event == "ack"
        return problem

    def _interleaved(self, event: Event, request: str) -> Problem | None:
        if event != "chunk":
            return None
        other, self._live = self._live, request
        if other is None or other == request or self.state(other) != "streaming":
            return None
        return "WIRE-96", f"a live chunk while `{other}` is streaming"

    def _answers(self, frame: Frame) -> Problem | None:
        """Questions that name themselves, probes and calls, are answered once each."""
        match frame:
            case ResumeRequest(probe_id=str(probe)):
                return self._asks("probe", probe, "WIRE-102")
            case RpcRequest(id=call):
                return self._asks("rpc", call, "WIRE-30")
            case StreamResuming(probe_id=str(probe)) | StreamPending(probe_id=str(probe)):
                return self._answered("probe", probe, "WIRE-102")
            case ResumeNone(probe_id=str(probe)):
                return self._answered("probe", probe, "WIRE-102")
            case RpcResponse(id=call):
                more_follows = frame.success and frame.done is False
                return self._answered("rpc", call, "WIRE-30", last=not more_follows)
        return None

    def _asks(self, kind: str, ident: str, spec: str) -> Problem | None:
        again = (kind, ident) in self._asked
        _make_room(self._asked)
        self._asked[kind, ident] += 1
        return (spec, f"{kind} `{ident}` is asked again before its answer") if again else None

    def _answered(self, kind: str, ident: str, spec: str, last: bool = True) -> Problem | None:
        if (kind, ident) not in self._asked:
            return spec, f"an answer to {kind} `{ident}`, which was not asked or has its answer"
        if last:
            self._asked[kind, ident] -= 1
            if not self._asked[kind, ident]:
                del self._asked[kind, ident]
        return None

    def _identifies(self, frame: Frame) -> Problem | None:
        if not isinstance(frame, Identity):
            return None
        again, self._identified = self._identified, True
        return ("WIRE-20", "a second identity on one connection") if again else None


def event_of(frame: Frame) -> tuple[Event, str] | None:
    """What a frame is to the table and which request id it is about; None if it is about none."""
    match frame:
        case ChatRequest(id=request):
            return "request", request
        case ResumeAck(id=request):
            return "ack", request
        case StreamResuming(id=request):
            return "offer", request
        case StreamPending(id=str(request)):
            return "pending", request
        case ChatResponse(id=request):
            return _response_event(frame), request
    return None


def outcome_of(frame: ChatResponse, errored: bool) -> Outcome | None:
    """The outcome that a terminal frame tells (WIRE-86, WIRE-87); `errored` if its request had an
    error frame before. None if it claims nothing."""
    if frame.outcome is not None:
        return frame.outcome
    if frame.error:
        return "error"
    if frame.replay and frame.message_ids is None:
        return None
    return "error" if errored else "completed"


def _response_event(frame: ChatResponse) -> Event:
    if frame.done:
        return "replay-terminal" if frame.replay else "error-terminal" if frame.error else "terminal"
    if frame.error:
        return "error"
    if frame.replay_complete:
        return "replay-complete"
    return "replay-chunk" if frame.replay else "chunk"


def _cannot_run(frame: Frame) -> Problem | None:
    if not isinstance(frame, ChatRequest):
        return None
    if frame.init.method != "POST":
        return "WIRE-50", f"a request by {frame.init.method}, which is not POST"
    try:
        body = loads(frame.init.body or "")
    except ValueError:
        return "WIRE-50", "a request whose body is not JSON"
    listed = isinstance(body, dict) and isinstance(body.get("messages"), list)
    return None if listed else ("WIRE-50", "a request without an array of messages")


def _starts_replay(r: _Request, event: Event) -> bool:
    return event.startswith("replay-") and not r.in_replay


def _offered_too_late(r: _Request, event: Event) -> Problem | None:
    if event != "offer" or r.outcome in (None, "error", "recovering"):
        return None
    return "WIRE-72", f"an offer of a stream that ended as {r.outcome}"


def _not_asked_for(r: _Request, event: Event) -> Problem | None:
    if _starts_replay(r, event) and r.replays >= r.acks + r.sends:
        return "WIRE-44", "a replay that no ack or send of this id asked for"
    return None


def _misnumbered(r: _Request, event: Event, frame: ChatResponse) -> Problem | None:
    seq = frame.seq
    if seq is None or event not in ("chunk", "replay-chunk"):
        return None
    if 0 <= seq < len(r.bodies) and r.bodies[seq] != hash(frame.body):
        return "WIRE-81", f"seq {seq} was another chunk before"
    if _starts_replay(r, event):
        return None if seq == 0 else ("WIRE-83", f"a replay that starts at seq {seq}")
    if r.last_seq is None or seq == r.last_seq + 1:
        return None
    spec = "WIRE-104" if r.replays and event == "chunk" else "WIRE-83"
    return spec, f"seq {seq} after seq {r.last_seq}"


def _told_wrong(r: _Request, event: Event, frame: ChatResponse) -> Problem | None:
    """One terminal, one more per ack and resend, all of one kind; a banner twice (WIRE-205)."""
    if not frame.done:
        return None
    told = outcome_of(frame, errored=r.outcome == "error")
    if r.outcome not in (None, "recovering") and told not in (None, r.outcome):
        return "WIRE-206", f"told as {told} after {r.outcome}"
    due = 1 + r.acks + max(0, r.sends - 1) + (event == "error-terminal")
    if r.terminals >= due:
        return "WIRE-209", f"terminal number {r.terminals + 1}, where {due} are due"
    return None


def _take_in(r: _Request, event: Event, frame: ChatResponse) -> None:
    r.replays += _starts_replay(r, event)
    r.in_replay = event == "replay-chunk"
    if event in ("chunk", "replay-chunk") and frame.seq is not None:
        r.last_seq = frame.seq
        if frame.seq == len(r.bodies) < CHUNKS_KEPT:
            r.bodies.append(hash(frame.body))
    if event == "error":
        r.outcome = "error"
    if frame.done:
        r.terminals += 1
        r.outcome = outcome_of(frame, errored=r.outcome == "error") or r.outcome


def _make_room(table: dict[Any, Any]) -> None:
    while len(table) >= REQUESTS_KEPT:
        del table[next(iter(table))]
