"""What happened around the target: model calls, deaths of its process, faults.

A call belongs to the turn whose marker its prompt carries; a death is any moment after which the
target cannot have gone on as the same process (or the same agent instance, for `evict`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from think_conformance.history.op import History, Record

DEADLY = frozenset({"kill", "term", "exit"})
DEADLY_FAULTS = frozenset({"kill", "term", "restart", "evict"})


@dataclass(slots=True)
class Call:
    """One model call. Indexes of records: `index` its arrival, `end` its end (None: still open),
    `gates` the gates it held at, by name. `how` is how it ended: done, aborted or error."""

    marker: str
    number: int
    index: int
    tool_results: int
    end: int | None = None
    how: str = ""
    gates: dict[str, int] = field(default_factory=dict)

    def open_at(self, index: int) -> bool:
        """Whether the model was still answering when that record was made."""
        return self.index < index and (self.end is None or self.end > index)


@dataclass(slots=True)
class Fault:
    """One planned fault. `actions` are names; `fired` holds (record, connection or None) each time;
    `undone` is why its actions could not be carried out, if so."""

    id: str
    leg: str = ""
    actions: frozenset[str] = frozenset()
    fired: list[tuple[int, str | None]] = field(default_factory=list)
    undone: str = ""


def calls_of(history: History) -> list[Call]:
    """Every model call in order of arrival."""
    found: dict[tuple[str, Any], Call] = {}
    for record in history:
        if record.source != "model":
            continue
        marker, number = str(record.ids.get("marker", "")), record.ids.get("call")
        if record.kind == "model-call" and isinstance(number, int):
            found[marker, number] = Call(marker, number, record.index, _tool_results(record))
            continue
        call = found.get((marker, number))
        if call is None:
            continue
        if record.kind == "model-gate":
            call.gates.setdefault(str(record.ids.get("gate")), record.index)
        elif record.kind == "model-end":
            call.end, call.how = record.index, str(_payload(record).get("how", ""))
    return list(found.values())


def faults_of(history: History, plan: dict[str, Any]) -> list[Fault]:
    """Every fault of the plan or of the records, with what became of it."""
    found: dict[str, Fault] = {}
    for planned in _list(plan.get("faults")):
        if isinstance(planned, dict):
            _learn(found, str(planned.get("id")), planned)
    for record in history:
        name, payload = str(record.ids.get("fault")), _payload(record)
        if record.kind == "fault-planned":
            _learn(found, name, payload)
        elif record.kind == "fault-fired":
            found.setdefault(name, Fault(name)).fired.append((record.index, record.ids.get("connection")))
        elif record.kind == "fault-done" and payload.get("outcome", "done") != "done":
            reason = payload.get("reason") or payload["outcome"]
            found.setdefault(name, Fault(name)).undone = str(reason)
    return list(found.values())


def deaths_of(history: History, faults: list[Fault]) -> list[int]:
    """The records at which the target died, ascending. One death may show in several of them."""
    found = {index for fault in faults if DEADLY_FAULTS & fault.actions for index, _ in fault.fired}
    for record in history:
        payload = _payload(record)
        died = record.kind == "process" and payload.get("action") in DEADLY
        evicted = record.kind == "invoke" and payload.get("method") == "evict"
        if died or evicted:
            found.add(record.index)
    return sorted(found)


def _learn(found: dict[str, Fault], name: str, told: dict[str, Any]) -> None:
    fault = found.setdefault(name, Fault(name))
    fault.leg = fault.leg or str(told.get("leg", ""))
    fault.actions |= {word for action in _list(told.get("do")) for word in _words(action)}


def _words(action: Any) -> list[str]:
    """The name of an action, and for a process action what it does to the process."""
    if isinstance(action, dict):
        return [*action, *(v for k, v in action.items() if k == "process" and isinstance(v, str))]
    return [action] if isinstance(action, str) else []


def _tool_results(record: Record) -> int:
    messages = _list(_payload(record).get("messages"))
    return sum(isinstance(m, dict) and m.get("role") == "tool" for m in messages)


def _payload(record: Record) -> dict[str, Any]:
    return record.payload if isinstance(record.payload, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
