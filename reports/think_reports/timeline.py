"""A history as rows between lanes: who told what to whom, in order. Pure; `drawing.py` draws it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from think_conformance.history.content import OwnWords
from think_conformance.history.op import History, Record, frame_of
from think_conformance.history.plain import plain

ROWS = 90
"""Rows of one picture; what is far from the evidence and the faults gives way."""

LABEL = 58
"""Characters of one label."""

_NEAR, _HEAD, _TAIL = 5, 14, 8
_PROXY, _TARGET, _MODEL, _WORLD = "proxy", "target", "model", "world"
_QUIET_TYPES = ("cf_agent_identity", "cf_agent_mcp_servers", "cf_agent_state")
_HIDDEN = "client control"
_UPS = ("start", "ready", "continue")

Look = Literal["up", "down", "open", "close", "fault", "process", "crash", "gate", "note", "gap"]


class Row(Struct, frozen=True, kw_only=True):
    """One happening: an arrow from lane to lane, or a mark on one (`end` None). `where` is the leg of a
    fault, `stream` the request whose chunk it is. `last` is the index of its last record where it stands
    for several."""

    index: int
    last: int
    at: float
    look: Look
    start: str
    end: str | None = None
    label: str
    decisive: bool = False
    where: str = ""
    stream: str | None = None


class Span(Struct, frozen=True, kw_only=True):
    """A time in rows during which a lane is alive: a client connected, a target process up."""

    lane: str
    first: int
    last: int


class Timeline(Struct, frozen=True, kw_only=True):
    """Lanes from left to right, rows from top to bottom, spans over row numbers."""

    lanes: list[str]
    rows: list[Row]
    spans: list[Span]


def timeline(history: History, evidence: Collection[int]) -> Timeline:
    """The picture of a case. `evidence` are the indexes of the records that decide; their rows stay."""
    told = _Teller(history, evidence)
    rows = _bounded(_merged([row for record in history for row in told.rows(record)]))
    return Timeline(lanes=_lanes(history), rows=rows, spans=list(_spans(history, rows)))


_Said = tuple[Look, str, str | None, str]
"""Look, lane it starts on, lane it ends on, label."""


class _Teller:
    """Turns records into rows."""

    def __init__(self, history: History, evidence: Collection[int]) -> None:
        self._began = history[0].at if history else 0.0
        self._evidence = evidence
        self._own = OwnWords(history)

    def rows(self, record: Record) -> Iterator[Row]:
        """One row, or none for what needs no telling."""
        decisive = record.index in self._evidence
        if not decisive and self._is_quiet(record):
            return
        match record.source:
            case "client":
                said = self._of_client(record)
            case "model" | "effects":
                said = self._of_outside(record)
            case _:
                said = self._of_run(record)
        if said is not None:
            look, start, end, label = said
            yield Row(
                index=record.index,
                last=record.index,
                at=record.at - self._began,
                look=look,
                start=start,
                end=end,
                label=plain(label, LABEL),
                decisive=decisive,
                where=_field(record, "leg"),
                stream=_stream(record),
            )

    def _is_quiet(self, record: Record) -> bool:
        return _client(record) == _HIDDEN or (frame_of(record) or {}).get("type") in _QUIET_TYPES

    def _of_client(self, record: Record) -> _Said | None:
        client = _client(record)
        match record.kind:
            case "open":
                return "open", client, _TARGET, f"connects as {_named(record)}"
            case "close":
                return "close", client, None, f"{_named(record)} closed, {_field(record, 'code')}"
            case "frame-out":
                return "up", client, _TARGET, self._frame(record)
            case "frame-in":
                return "down", _TARGET, client, self._frame(record)
        return None

    def _of_outside(self, record: Record) -> _Said | None:
        match record.kind:
            case "model-call":
                return "up", _TARGET, _MODEL, f"asks, {_call(record)}"
            case "model-gate":
                return "gate", _MODEL, None, f"holds at gate {record.ids.get('gate')}"
            case "model-end":
                return "down", _MODEL, _TARGET, f"{_field(record, 'how')}, {_call(record)}"
            case "effect":
                return "up", _TARGET, _WORLD, f"effect {record.ids.get('key', '')}"
        return None

    def _of_run(self, record: Record) -> _Said | None:
        messages = record.payload.get("messages") if isinstance(record.payload, dict) else None
        match record.kind:
            case "process":
                action = _field(record, "action")
                return "process" if action in _UPS else "crash", _TARGET, None, action
            case "fault-fired":
                return "fault", _PROXY, None, f"fault {record.ids.get('fault')} fires"
            case "ok" if isinstance(messages, list):
                return "down", _TARGET, _client(record), f"reads {self._messages(messages)}"
            case "info":
                return "note", _TARGET, None, self._own.only_quoted(_field(record, "reason"))
            case "epilogue":
                return "note", _TARGET, None, f"epilogue: {_field(record, 'phase')}"
        return None

    def _frame(self, record: Record) -> str:
        frame = frame_of(record) or {}
        if not frame:
            return "not a frame"
        words = [_short(self._word(frame.get("type")))]
        match frame:
            case {"type": "cf_agent_use_chat_response", "done": True}:
                outcome = frame.get("outcome", "error" if frame.get("error") else "")
                words = ["end", self._word(outcome), *_replayed(frame)]
            case {"type": "cf_agent_use_chat_response"}:
                words = [*self._chunk(frame), *_replayed(frame)]
            case {"messages": [*messages]}:
                words = [self._messages(messages)]
            case _:
                words += [self._word(frame[name]) for name in ("reason", "recovering") if name in frame]
        named = frame.get("id") or frame.get("probeId")
        return " ".join(word for word in [*words, f"· {self._word(named)}" if named else ""] if word)

    def _word(self, value: Any) -> str:
        """A name of the protocol as it stands; a text where a name is due is content."""
        text = str(value)
        return self._own.only(text[:LABEL]) if any(c.isspace() for c in text) else text

    def _chunk(self, frame: dict[str, Any]) -> list[str]:
        if frame.get("replayComplete"):
            return ["replay complete"]
        try:
            chunk = msgspec.json.decode(frame["body"])
            kind, delta = str(chunk["type"]), str(chunk.get("delta", ""))
        except (msgspec.MsgspecError, UnicodeError, RecursionError, KeyError, TypeError, AttributeError):
            return ["error text" if frame.get("error") else "unreadable chunk"]
        seq = f"seq {frame['seq']}" if "seq" in frame else ""
        return [self._word(kind), repr(self._own.only(delta[:LABEL])) if delta else "", seq]

    def _messages(self, messages: list[Any]) -> str:
        roles = [self._word(m.get("role", "?")) for m in messages if isinstance(m, dict)]
        return f"transcript: {', '.join(roles) or 'empty'}"


# ---- which rows -----------------------------------------------------------------------------


def _merged(rows: list[Row]) -> list[Row]:
    """Chunks of one stream that follow each other to one client, and decide nothing, are one row. Chunks
    for others in between do not part them."""
    kept: list[Row] = []
    for row in rows:
        same = _same_stream(kept, row) if _is_chunk(row) else None
        if same is None:
            kept.append(row)
        else:
            first = kept[same].label.partition(" ⋯ ")[0].partition(" · ")[0]
            kept[same] = replace(kept[same], last=row.index, label=plain(f"{first} ⋯ {row.label}", LABEL))
    return kept


def _same_stream(kept: list[Row], row: Row) -> int | None:
    for number in range(len(kept) - 1, -1, -1):
        before = kept[number]
        if not _is_chunk(before):
            return None
        if (before.end, before.stream) == (row.end, row.stream):
            return number
    return None


def _is_chunk(row: Row) -> bool:
    return row.stream is not None and not row.decisive


def _bounded(rows: list[Row]) -> list[Row]:
    if len(rows) <= ROWS:
        return rows
    important = [n for n, row in enumerate(rows) if row.decisive or row.look in ("fault", "process", "crash")]
    keep = {m for n in important for m in range(n - _NEAR, n + _NEAR + 1)}
    keep |= set(range(_HEAD)) | set(range(len(rows) - _TAIL, len(rows)))
    kept: list[Row] = []
    for number, row in enumerate(rows):
        if number in keep and len(kept) < 2 * ROWS:
            kept.append(row)
        elif kept and kept[-1].look == "gap":
            kept[-1] = replace(kept[-1], last=row.index)
        else:
            kept.append(replace(row, look="gap", end=None, label="left out", where=""))
    return kept


# ---- lanes and spans ------------------------------------------------------------------------


def _lanes(history: History) -> list[str]:
    clients = dict.fromkeys(_client(r) for r in history if r.source == "client" and _client(r))
    kinds = {record.kind for record in history}
    sources = {record.source for record in history}
    return [
        *(client for client in clients if client != _HIDDEN),
        *([_PROXY] if kinds & {"fault-planned", "fault-fired"} else []),
        _TARGET,
        *([_MODEL] if "model" in sources else []),
        *([_WORLD] if "effects" in sources else []),
    ]


def _spans(history: History, rows: list[Row]) -> Iterator[Span]:
    """Found in the history, told in rows: the first row at or behind a record stands for it."""

    def row_of(index: int) -> int:
        return next((n for n, row in enumerate(rows) if row.last >= index), len(rows))

    up: dict[str, tuple[str, int]] = {}
    for record in history:
        lane, name = (_TARGET, _TARGET) if record.kind == "process" else (_client(record), _named(record))
        if record.kind == "open" or _field(record, "action") == "ready":
            up.setdefault(name, (lane, record.index))
        elif (record.kind == "close" or _field(record, "action") in ("kill", "exit")) and name in up:
            yield Span(lane=lane, first=row_of(up.pop(name)[1]), last=row_of(record.index))
    for lane, index in up.values():
        yield Span(lane=lane, first=row_of(index), last=len(rows))


# ---- parts of records -----------------------------------------------------------------------


def _client(record: Record) -> str:
    """The lane of a client; no client's name can make it that of another lane."""
    name = record.ids.get("client")
    return "" if name is None else plain(f"client {name}", 20)


def _named(record: Record) -> str:
    return str(record.ids.get("connection", ""))


def _call(record: Record) -> str:
    turn = str(record.ids.get("marker", "")).rpartition("/")[2]
    return f"{turn} call {record.ids.get('call', '')}"


def _field(record: Record, name: str) -> str:
    value = record.payload.get(name) if isinstance(record.payload, dict) else None
    return "" if value is None else str(value)


def _stream(record: Record) -> str | None:
    """The request of a stored chunk, live or replayed."""
    frame = frame_of(record) or {}
    return str(frame.get("id")) if record.kind == "frame-in" and "seq" in frame else None


def _replayed(frame: dict[str, Any]) -> list[str]:
    return ["replayed"] if frame.get("replay") else []


def _short(kind: str) -> str:
    return re.sub("^cf_agent_(use_)?(chat_)?", "", kind).replace("_", " ")
