"""One observation. A history is a list of these, ordered by `index`; it is the only input of
checkers and reports.

Order by `index`, never by `at`. A record is appended *before* what it tells of is done (send,
fire, kill, open a gate) and *after* what it tells of was observed.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Source = Literal["run", "client", "proxy", "process", "model", "effects", "events"]

Kind = Literal[
    # run: first record; payload {scenario, title, exercises, target, claims, agent, name, seed, plan}
    "case",
    "invoke",  # run: an operation of the plan starts
    "ok",  # run: it happened; payload carries the answer where there is one
    "fail",  # run: it certainly did not happen
    "info",  # run: unknown whether it happened (a deadline passed, the socket broke)
    "dial",  # client: a connection is about to be opened
    "open",  # client: it is open
    "close",  # client: it is closed; payload {code: 1006 when there was no close frame, reason, by}
    "frame-out",  # client: about to be sent
    "frame-in",  # client: received
    "model-call",  # model: payload {call, messages, ...}: the full prompt
    "model-gate",  # model: the script holds at a gate
    "model-end",  # model: payload {call, how: "done" | "aborted" | "error"}
    "effect",  # effects: a call of the outside world
    "event",  # events: a diagnostics event of the target
    "process",  # process: payload {action: start | ready | kill | term | exit | ..., pid}
    "fault-planned",  # proxy or run: a fault is armed
    "fault-fired",  # the moment was seen; payload is the proof
    "fault-done",  # its list of actions is done
    "heal",  # all faults are lifted
    "epilogue",  # run: payload {phase: begin | idle | deadline | end}
]


class Record(Struct, frozen=True, omit_defaults=True):
    """index: from 0, without gaps. at: seconds of one monotonic clock. ids: names that join records:
    client, connection (`a.1`), epoch (process generation at the opening of the connection),
    operation, fault, token, marker, call, gate, request."""

    index: int
    at: float
    source: Source
    kind: Kind
    ids: dict[str, Any] = {}
    payload: Any = None


History = list[Record]

OBSERVER = "observer"
"""The client of the epilogue; no plan has one of that name."""


def frame_of(record: Record) -> dict[str, Any] | None:
    """The JSON object of a frame that passed; None where there was none."""
    frame = record.payload.get("frame") if isinstance(record.payload, dict) else None
    return frame if isinstance(frame, dict) else None
