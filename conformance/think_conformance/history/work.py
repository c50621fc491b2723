"""What happened around the target: model calls, effects, deaths of its process, faults, and what could
not be had of it.

A call belongs to the turn whose marker its prompt carries; a death is any moment after which the
target cannot have gone on as the same process (or the same agent instance, for `evict`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from think_conformance.history.op import History, Record

DEADLY = frozenset({"kill", "term", "exit"})
DEADLY_FAULTS = frozenset({"kill", "term", "restart", "evict"})
CARRIED_OUT = frozenset({"done", "overtaken"})
"""What became of a fault that did what it should: `overtaken` is a restart that the next kill met."""

CONTROL = ("configure", "evict")
"""The RPC methods with which a plan prepares and shuts down one agent."""

_NOT_READY = re.compile(r"(TargetNotReady: )?the target (exited|was ended|did not get ready)")
_STRANGER = re.compile(r"(TargetNotReady: )?port \d+ is (taken|answered) by a process")
"""How a reason begins when a start failed: by the target itself; by somebody else's server."""


@dataclass(slots=True)
class Call:
    """One model call. Indexes of records: `index` its arrival, `end` its end (None: still open),
    `gates` the gates it held at, by name. `how` is how it ended: done, aborted or error."""

    marker: str
    number: int
    index: int
    prompt: list[dict[str, Any]]
    end: int | None = None
    how: str = ""
    gates: dict[str, int] = field(default_factory=dict)

    @property
    def tool_results(self) -> dict[str, Any]:
        """What the prompt tells of tool calls that have ended, by their id."""
        told = (m for m in self.prompt if m.get("role") == "tool")
        return {str(m.get("tool_call_id", number)): m.get("content") for number, m in enumerate(told)}

    @property
    def unanswered(self) -> set[str]:
        """The ids of tool calls in the prompt that no result follows."""
        asked = (c for m in self.prompt for c in _list(m.get("tool_calls")) if isinstance(c, dict))
        return {str(call.get("id")) for call in asked} - set(self.tool_results)

    def open_at(self, index: int) -> bool:
        """Whether the model was still answering when that record was made."""
        return self.index < index and (self.end is None or self.end > index)


@dataclass(frozen=True, slots=True)
class Effect:
    """The outside world was told to do something, in record `index`; `key` names what."""

    index: int
    key: str


@dataclass(frozen=True, slots=True)
class Crash:
    """One death of the target. `death` is its first record, `back` the first from which on it can
    have worked again (None: never), `ready` the one in which it was seen to (an evicted agent at once)."""

    death: int
    back: int | None
    ready: int | None


@dataclass(frozen=True, slots=True)
class Missing:
    """A method that the plan needs and the target refused: in record `index`, with these words."""

    index: int
    method: str
    reason: str


@dataclass(slots=True)
class Fault:
    """One planned fault. `actions` are names; `fired` holds (record, connection or None) each time;
    `undone` is why its actions could not be carried out, if so; `breaks` tells that a message it hits,
    and all that would follow, is certainly lost or an error."""

    id: str
    leg: str = ""
    actions: frozenset[str] = frozenset()
    fired: list[tuple[int, str | None]] = field(default_factory=list)
    undone: str = ""
    breaks: bool = False


def calls_of(history: History) -> list[Call]:
    """Every model call in order of arrival."""
    found: dict[tuple[str, Any], Call] = {}
    for record in history:
        if record.source != "model":
            continue
        marker, number = str(record.ids.get("marker", "")), record.ids.get("call")
        if record.kind == "model-call" and isinstance(number, int):
            told = _list(_payload(record).get("messages"))
            prompt = [message for message in told if isinstance(message, dict)]
            found[marker, number] = Call(marker, number, record.index, prompt)
            continue
        call = found.get((marker, number))
        if call is None:
            continue
        if record.kind == "model-gate":
            call.gates.setdefault(str(record.ids.get("gate")), record.index)
        elif record.kind == "model-end":
            call.end, call.how = record.index, str(_payload(record).get("how", ""))
    return list(found.values())


def strays_of(history: History) -> list[str]:
    """What was wrong with each model call that belongs to no turn of the plan."""
    return [str(_payload(r).get("reason", "")) for r in history if r.source == "model" and r.kind == "fail"]


def overflow_of(history: History) -> str:
    """Why the history lacks something that a peer did send: it was more than is kept. Empty if nothing is
    lacking; of an effect, which is told by its key, nothing is."""
    for record in history:
        payload = _payload(record)
        if payload.get("truncated") is True and record.kind != "effect":
            return f"a record `{record.kind}` of {payload.get('size')} bytes is more than a history keeps"
        if record.kind == "close" and (payload.get("by"), payload.get("code")) == ("self", 1009):
            return f"a connection was closed for what came on it: {payload.get('reason')}"
    return ""


def effects_of(history: History) -> list[Effect]:
    """Every effect, in order."""
    return [Effect(r.index, str(r.ids.get("key"))) for r in history if r.kind == "effect"]


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
        elif record.kind == "fault-done" and payload.get("outcome", "done") not in CARRIED_OUT:
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


def crashes_of(history: History, deaths: list[int]) -> list[Crash]:
    """The deaths, each with the coming back that followed; several records of one death are one."""
    steps = [(r.index, str(_payload(r).get("action"))) for r in history if r.kind == "process"]
    found: dict[int | None, Crash] = {}
    for death in deaths:
        later = [(index, action) for index, action in steps if index >= death]
        back = next((index for index, action in later if action in ("start", "ready")), None)
        ready = next((index for index, action in later if action == "ready"), None)
        if _payload(history[death]).get("method") == "evict":
            back = ready = death
        elif later and later[0][1] == "evict":
            back = ready = later[0][0]
        found.setdefault(back, Crash(death, back, ready))
    return list(found.values())


def lost_of(history: History) -> int | None:
    """The record that told that the target was gone for good: launched again, it did not get ready, or it
    ended by itself and was dead at the end. None where nobody tried to start it, and where a stranger on
    its port may have kept it from it."""
    phases = {_payload(r).get("phase"): r.index for r in history if r.kind == "epilogue"}
    begin, end = phases.get("begin", len(history)), phases.get("end", len(history))
    steps = [(r.index, _payload(r).get("action")) for r in history[:end] if r.kind == "process"]
    ready = max((index for index, action in steps if action == "ready"), default=-1)
    after = [(index, action) for index, action in steps if index > ready]
    told = {
        r.index: str(_payload(r).get("reason", ""))
        for r in history[ready + 1 : end]
        if _tells_of_a_failed_start(r, begin)
    }
    if not told and [action for _, action in after] == ["exit"]:
        return after[0][0]
    if any(_STRANGER.match(reason) for reason in told.values()):
        return None
    launched = next((index for index, action in after if action == "start"), end)
    return next((i for i, reason in told.items() if i > launched and _NOT_READY.match(reason)), None)


def missing_of(history: History, faults: list[Fault]) -> Missing | None:
    """The first method of `CONTROL` that the plan needed and did not get."""
    evicting = {f.id for f in faults if "evict" in f.actions and "restart" not in f.actions}
    called: dict[int | None, str] = {None: "configure"}  # by operation; None: before the first
    for record in history:
        payload, number, method = _payload(record), record.ids.get("operation"), ""
        operation = number if isinstance(number, int) else None
        if record.kind == "process" and payload.get("action") == "evict":
            called[None] = "evict"
        elif record.kind == "invoke":
            called[operation] = str(payload.get("method"))
        elif record.kind == "fail" and record.source == "run":
            method = called.get(operation, "")
        elif record.kind == "fault-done" and payload.get("outcome") == "error":
            method = "evict" if record.ids.get("fault") in evicting else ""
        if method in CONTROL:
            return Missing(record.index, method, str(payload.get("reason", "")))
    return None


def _tells_of_a_failed_start(record: Record, begin: int) -> bool:
    """Whether its reason may be that of a start: of a fault, or of the epilogue, which begins there."""
    if record.kind == "fault-done":
        return _payload(record).get("outcome") == "error"
    return record.source == "run" and record.kind == "info" and record.index > begin and not record.ids


def _learn(found: dict[str, Fault], name: str, told: dict[str, Any]) -> None:
    fault = found.setdefault(name, Fault(name))
    fault.leg = fault.leg or str(told.get("leg", ""))
    fault.actions |= {word for action in _list(told.get("do")) for word in _words(action)}
    fault.breaks |= any(_breaks(action) for action in _list(told.get("do")))


def _breaks(action: Any) -> bool:
    if not isinstance(action, dict):
        return False
    shortened = action.get("truncate")
    return (
        "status" in action
        or action.get("cut") == "reset"
        or (isinstance(shortened, dict) and shortened.get("end") == "reset")
    )


def _words(action: Any) -> list[str]:
    """The name of an action, and for a process action what it does to the process."""
    if isinstance(action, dict):
        return [*action, *(v for k, v in action.items() if k == "process" and isinstance(v, str))]
    return [action] if isinstance(action, str) else []


def _payload(record: Record) -> dict[str, Any]:
    return record.payload if isinstance(record.payload, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
