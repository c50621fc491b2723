"""What a person does on purpose: stop, told apart from every accident."""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import saw_delta, saw_terminal, scenario, words


@scenario(
    "control.stop-during-output",
    "one of two tabs presses stop after two text deltas",
    exercises="TURN-150 TURN-151 WIRE-85 WIRE-206 WIRE-209 WIRE-83 KIT-01 KIT-02 KIT-03 KIT-04 KIT-12"
    " CANCEL-05 CANCEL-13",
)
def stop_during_output() -> dict[str, Any]:
    return {
        "model": {"t1": [[*words(1, 2), {"gate": "never"}, *words(3, 4), "done"]]},
        "operations": [
            {"client": "a", "do": "connect"},
            {"client": "b", "do": "connect"},
            {"client": "a", "do": "send", "turn": "t1", "text": "Count to four."},
            {"client": "a", "do": "stop", "turn": "t1", "after": {"seen": saw_delta("b", 2)}},
            {"do": "wait", "after": {"seen": saw_terminal("b")}},
        ],
    }
