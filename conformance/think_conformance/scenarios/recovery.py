"""Crashes of the target: the process dies, the accepted turn must not."""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import RESPONSE, saw_delta, saw_frame, scenario, words

INVARIANT = "TURN-150 WIRE-206 WIRE-209 KIT-01 KIT-02 KIT-03 KIT-06 KIT-07 KIT-08 WIRE-119"


def crash_when(seen: dict[str, Any]) -> dict[str, Any]:
    """The process is killed at that moment and started again on the same data."""
    return {
        "id": "crash",
        "leg": "target",
        "when": {"seen": seen},
        "do": [{"process": "kill"}, {"process": "restart"}],
    }


@scenario(
    "recovery.kill-during-output",
    "the target is killed after two text deltas, one of them replayed to a second tab; both tabs come back",
    exercises=f"{INVARIANT} WIRE-85 WIRE-83 WIRE-93 WIRE-183 TURN-43 KIT-05",
)
def kill_during_output() -> dict[str, Any]:
    return {
        "model": {
            "t1": [
                [*words(1, 2), {"gate": "never"}, "done"],
                [*words(3, 3), {"gate": "rest"}, *words(4, 4), "done"],
            ]
        },
        "operations": [
            {"client": "a", "do": "connect"},
            {"client": "a", "do": "send", "turn": "t1", "text": "Count to four."},
            {"client": "b", "do": "connect", "after": {"seen": saw_delta("a", 2)}},
            {"client": "a", "do": "connect", "after": {"fault": "crash"}},
            {"client": "b", "do": "connect"},
            {
                "client": "a",
                "do": "ack",
                "turn": "t1",
                "after": {"seen": saw_frame("a", type=RESPONSE, replayComplete=True)},
            },
            {
                "do": "open-gate",
                "gate": "rest",
                "after": {"seen": saw_frame("b", nth=2, type=RESPONSE, replayComplete=True)},
            },
        ],
        "faults": [crash_when(saw_frame("b", type=RESPONSE, replayComplete=True))],
    }


@scenario(
    "recovery.kill-while-queued",
    "the target is killed while one turn streams and another waits; a second client saw it accepted",
    exercises=f"{INVARIANT} TURN-16 TURN-43",
)
def kill_while_queued() -> dict[str, Any]:
    return {
        "model": {
            "t1": [[*words(1, 2), {"gate": "never"}, "done"], [*words(3, 4), "done"]],
            "t2": [[*words(5, 6), "done"]],
        },
        "operations": [
            {"client": "a", "do": "connect"},
            {"client": "b", "do": "connect"},
            {"client": "a", "do": "send", "turn": "t1", "text": "Count to four."},
            {
                "client": "a",
                "do": "send",
                "turn": "t2",
                "text": "Go on to six.",
                "after": {"seen": saw_delta("b", 2)},
            },
            {"client": "a", "do": "connect", "after": {"fault": "crash"}},
        ],
        "faults": [crash_when(saw_frame("b", nth=3, type="cf_agent_chat_messages"))],
    }
