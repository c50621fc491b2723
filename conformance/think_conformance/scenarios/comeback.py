"""Coming back after a crash: to a turn that goes on, late, on another tab, or when it is over."""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import (
    CONNECT_TWO,
    DELTA,
    NEVER,
    RESPONSE,
    at_gate,
    saw_delta,
    saw_frame,
    saw_terminal,
    scenario,
    words,
)
from think_conformance.scenarios.crashing import (
    ANSWERED,
    BACK,
    HELD_WHEN_RECOVERED,
    INVARIANT,
    SEND,
    TEXT,
    crash_when,
)


def shown(client: str, delta: str) -> dict[str, Any]:
    """This client received that text, live or replayed."""
    chunked = {"json": {"type": RESPONSE}, "nested": {"field": "body", "json": {"delta": delta}}}
    return {"source": "client", "kind": "frame-in", "client": client, **chunked}


@scenario(
    "recovery.kill-during-output",
    "the target is killed after two text deltas that a second tab had replayed; both tabs come back",
    exercises=f"{INVARIANT} {TEXT} KIT-05 KIT-12",
)
def kill_during_output() -> dict[str, Any]:
    return {
        "model": HELD_WHEN_RECOVERED,
        "operations": [
            {"client": "a", "do": "connect"},
            SEND,
            {"client": "b", "do": "connect", "after": {"seen": saw_delta("a", 2)}},
            BACK,
            {"client": "b", "do": "connect"},
            {"do": "wait", "after": {"seen": saw_frame("b", nth=2, type=RESPONSE, replayComplete=True)}},
        ],
        "faults": [crash_when(saw_frame("b", type=RESPONSE, replayComplete=True))],
    }


@scenario(
    "recovery.late-ack",
    "a client acks the request that a crash interrupted when its recovery already runs",
    exercises=f"{INVARIANT} WIRE-183",
)
def late_ack() -> dict[str, Any]:
    return {
        "model": HELD_WHEN_RECOVERED,
        "operations": [
            {"client": "a", "do": "connect"},
            SEND,
            {**BACK, "quiet": True},
            {"client": "a", "do": "ack", "turn": "t1", "after": {"seen": at_gate("rest")}},
            {"do": "wait", "within_s": 1, "after": {"seen": saw_frame("a", id="req-t1", done=True)}},
        ],
        "faults": [crash_when(saw_delta("a", 2))],
    }


@scenario(
    "recovery.kill-during-a-replay",
    "the socket is reset during output; the target is killed inside the replay to the client that came back",
    exercises=f"{INVARIANT} {TEXT} KIT-05",
)
def kill_during_a_replay() -> dict[str, Any]:
    cut = {"client": "a", "direction": "down", **DELTA, "nth": 3}
    return {
        "model": {"t1": [[*words(1, 3), NEVER, "done"], ANSWERED]},
        "operations": [
            {"client": "a", "do": "connect"},
            SEND,
            {"client": "a", "do": "connect", "after": {"fault": "cut"}},
            BACK,
        ],
        "faults": [
            {"id": "cut", "leg": "client", "when": cut, "do": [{"cut": "reset"}]},
            crash_when(saw_frame("a", type=RESPONSE, replay=True, seq=3)),
        ],
    }


@scenario(
    "recovery.continuation-seen-by-another-tab",
    "the tab that asked is closed, then the target is killed; only another tab sees the answer continued",
    exercises=f"{INVARIANT} {TEXT} WIRE-83 WIRE-85 WIRE-93",
)
def continuation_seen_by_another_tab() -> dict[str, Any]:
    return {
        "model": HELD_WHEN_RECOVERED,
        "operations": [
            {"client": "a", "do": "connect"},
            SEND,
            {"client": "a", "do": "close", "code": 1001, "after": {"seen": saw_delta("a", 2)}},
            {"client": "b", "do": "connect", "after": {"fault": "crash"}},
            {"do": "wait", "after": {"seen": shown("b", "w3 ")}},
        ],
        "faults": [crash_when({"source": "client", "kind": "close", "client": "a"})],
    }


@scenario(
    "recovery.tab-opened-after-the-recovery",
    "a recovered turn ends before the eyes of its client; a tab that is opened then sees nothing run",
    exercises=f"{INVARIANT} {TEXT} WIRE-181",
)
def tab_opened_after_the_recovery() -> dict[str, Any]:
    there = {"source": "client", "kind": "open", "client": "a", "nth": 2}
    return {
        "model": HELD_WHEN_RECOVERED,
        "operations": [
            *CONNECT_TWO,
            SEND,
            BACK,
            {"do": "open-gate", "gate": "rest", "after": {"seen": there}},
            {"client": "c", "do": "connect", "after": {"seen": saw_terminal("a")}},
        ],
        "faults": [crash_when(saw_delta("b", 2))],
    }
