"""A history as rows between lanes: who told what to whom, in order. Pure; `drawing.py` draws it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from think_conformance.history.content import OwnWords
from think_conformance.history.op import History, Record
from think_conformance.history.plain import plain

ROWS = 90
"""Rows of one picture; what is far from the evidence and the faults gives way."""

LABEL = 64
"""Characters of one label."""

_NEAR, _HEAD, _TAIL = 5, 14, 8
_PROXY, _TARGET, _MODEL, _WORLD = "proxy", "target", "model", "world"
_QUIET_TYPES = ("cf_agent_identity", "cf_agent_mcp_servers", "cf_agent_state")
_HIDDEN = "client control"

Look = Literal["up", "down", "open", "close", "fault", "process", "gate", "note", "gap"]


class Row(Struct, frozen=True, kw_only=True):
    """One happening: an arrow from lane to lane, or a mark on one (`end` None). `where` is the leg of a
    fault. `last` is the index of its last record where it stands for several."""

    index: int
    last: int
    at: float
    look: Look
    start: str
    end: str | None = None
    label: str
    decisive: bool = False
    where: str = ""


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


class _Teller:
    """Turns records into rows."""

    def __init__(self, history: History, evidence: Collection[int]) -> None:
        self._began = history[0].at if history else 0.0
        self._evidence = evidence
        self._own = OwnWords(history)
        self._kinds: dict[str, Callable[[Record], dict[str, Any] | None]] = {
            "open": lambda r: {"look": "open", "start": _client(r), "end": _TARGET, "label": f"connects as {_named(r)}"},
            "close": lambda r: {"look": "close", "start": _client(r), "label": f"{_named(r)} closed, {_field(r, 'code')}"},
            "frame-out": lambda r: {"look": "up", "start": _client(r), "end": _TARGET, "label": self._frame(r)},
            "frame-in": lambda r: {"look": "down", "start": _TARGET, "end": _client(r), "label": self._frame(r)},
            "model-call": lambda r: {"look": "up", "start": _TARGET, "end": _MODEL, "label": f"call {r.ids.get('call')}"},
            "model-gate": lambda r: {"look": "gate", "start": _MODEL, "label": f"holds at gate {r.ids.get('gate')}"},
            "model-end": lambda r: {"look": "down", "start": _MODEL, "end": _TARGET, "label": _field(r, "how")},
            "effect": lambda r: {"look": "up", "start": _TARGET, "end": _WORLD, "label": f"effect {r.ids.get('key', '')}"},
            "process": lambda r: {"look": "process", "start": _TARGET, "label": _field(r, "action")},
            "fault-fired": self._fault,
            "info": lambda r: {"look": "note", "start": _TARGET, "label": self._own.only_quoted(_field(r, "reason"))},
            "ok": self._read,
            "epilogue": lambda r: {"look": "note", "start": _TARGET, "label": f"epilogue: {_field(r, 'phase')}"},
        }

    def rows(self, record: Record) -> Iterator[Row]:
        """One row, or none for what needs no telling."""
        tell = self._kinds.get(record.kind)
        said = tell(record) if tell else None
        decisive = record.index in self._evidence
        if said is None or (not decisive and self._is_quiet(record)):
            return
        said["label"] = plain(said["label"], LABEL)
        index, at = record.index, record.at - self._began
        yield Row(index=index, last=index, at=at, decisive=decisive, **said)

    def _is_quiet(self, record: Record) -> bool:
        return _client(record) == _HIDDEN or _frame(record).get("type") in _QUIET_TYPES

    def _fault(self, record: Record) -> dict[str, Any]:
        leg = _field(record, "leg") or "client"
        return {"look": "fault", "start": _PROXY, "where": leg, "label": f"fault {record.ids.get('fault')} fires"}

    def _read(self, record: Record) -> dict[str, Any] | None:
        messages = record.payload.get("messages") if isinstance(record.payload, dict) else None
        if not isinstance(messages, list):
            return None
        return {"look": "down", "start": _TARGET, "end": _client(record), "label": f"reads {self._messages(messages)}"}

    def _frame(self, record: Record) -> str:
        frame = _frame(record)
        if not frame:
            return "not a frame"
        words = [_short(frame.get("type"))]
        match frame:
            case {"type": "cf_agent_use_chat_response", "done": True}:
                words = ["end", str(frame.get("outcome", "error" if frame.get("error") else "")), "replayed" * bool(frame.get("replay"))]
            case {"type": "cf_agent_use_chat_response"}:
                words = [*self._chunk(frame), "replayed" * bool(frame.get("replay"))]
            case {"messages": [*messages]}:
                words = [self._messages(messages)]
            case _:
                words += [str(frame[name]) for name in ("reason", "recovering") if name in frame]
        named = frame.get("id") or frame.get("probeId")
        return " ".join(word for word in [*words, f"· {named}" if named else ""] if word)

    def _chunk(self, frame: dict[str, Any]) -> list[str]:
        if frame.get("replayComplete"):
            return ["replay complete"]
        try:
            chunk = msgspec.json.decode(frame["body"])
            kind, delta = str(chunk["type"]), str(chunk.get("delta", ""))
        except (msgspec.MsgspecError, UnicodeError, RecursionError, KeyError, TypeError, AttributeError):
            return ["error text" if frame.get("error") else "unreadable chunk"]
        seq = f"seq {frame['seq']}" if "seq" in frame else ""
        return [kind, repr(self._own.only(delta[:LABEL])) if delta else "", seq]

    def _messages(self, messages: list[Any]) -> str:
        roles = [str(m.get("role", "?")) for m in messages if isinstance(m, dict)]
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
        if before.end == row.end and before.label.rpartition(" · ")[2] == row.label.rpartition(" · ")[2]:
            return number
    return None


def _is_chunk(row: Row) -> bool:
    return row.look == "down" and not row.decisive and " seq " in row.label


def _bounded(rows: list[Row]) -> list[Row]:
    if len(rows) <= ROWS:
        return rows
    important = [n for n, row in enumerate(rows) if row.decisive or row.look in ("fault", "process")]
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


def _field(record: Record, name: str) -> str:
    value = record.payload.get(name) if isinstance(record.payload, dict) else None
    return "" if value is None else str(value)


def _frame(record: Record) -> dict[str, Any]:
    frame = record.payload.get("frame") if isinstance(record.payload, dict) else None
    return frame if isinstance(frame, dict) else {}


def _short(kind: Any) -> str:
    return str(kind).removeprefix("cf_agent_").removeprefix("chat_").removeprefix("use_chat_").replace("_", " ")
