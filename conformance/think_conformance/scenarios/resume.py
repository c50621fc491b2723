"""Interruptions of the client leg: the socket breaks, the turn must not."""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import DELTA, RESPONSE, saw_frame, scenario, words


@scenario(
    "resume.socket-reset-during-output",
    "the socket is reset at the third text delta; the client comes back and resumes",
    exercises="TURN-150 WIRE-85 WIRE-206 WIRE-209 KIT-01 KIT-02 KIT-03 WIRE-83 WIRE-93 KIT-04 WIRE-59 WIRE-113 WIRE-104 WIRE-102 WIRE-105 WIRE-153 CANCEL-01 TURN-17 WIRE-119 CANCEL-13",
)
def socket_reset_during_output() -> dict[str, Any]:
    return {
        "model": {"t1": [[*words(1, 3), {"gate": "rest"}, *words(4, 6), "done"]]},
        "operations": [
            {"client": "a", "do": "connect"},
            {"client": "a", "do": "send", "turn": "t1", "text": "Count to six."},
            {"client": "a", "do": "connect", "after": {"fault": "reset"}},
            {
                "do": "open-gate",
                "gate": "rest",
                "after": {"seen": saw_frame("a", type=RESPONSE, replayComplete=True)},
            },
        ],
        "faults": [
            {
                "id": "reset",
                "leg": "client",
                "when": {"client": "a", "direction": "down", **DELTA, "nth": 3},
                "do": [{"cut": "reset"}],
            }
        ],
    }
