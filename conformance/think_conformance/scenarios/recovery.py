"""Crashes of the target: the process dies, the accepted turn must not."""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import saw_delta, scenario, words


@scenario(
    "recovery.kill-during-output",
    "the target is killed after two text deltas and started again; the client comes back",
    exercises="",
)
def kill_during_output() -> dict[str, Any]:
    return {
        "model": {"t1": [[*words(1, 2), {"gate": "never"}, "done"], [*words(3, 4), "done"]]},
        "operations": [
            {"client": "a", "do": "connect"},
            {"client": "a", "do": "send", "turn": "t1", "text": "Count to four."},
            {"client": "a", "do": "connect", "after": {"fault": "crash"}},
        ],
        "faults": [
            {
                "id": "crash",
                "leg": "target",
                "when": {"seen": saw_delta("a", 2)},
                "do": [{"process": "kill"}, {"process": "restart"}],
            }
        ],
    }
