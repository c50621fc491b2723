"""Crashes around a tool: what was done stays done, what was interrupted is told to be so."""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import NEVER, saw_delta, scenario, words
from think_conformance.scenarios.crashing import INVARIANT, when_somebody_comes_back

WITH_EFFECT = {
    "t1": [
        [{"tool": "record_effect", "args": {"key": "{case}/paid"}}, "done"],
        [*words(1, 2), NEVER, "done"],
        [*words(3, 4), "done"],
    ]
}


@scenario(
    "recovery.kill-after-an-effect",
    "a tool's effect is done and its result stored; the target is killed in the next step",
    exercises=f"{INVARIANT} TURN-48",
)
def kill_after_an_effect() -> dict[str, Any]:
    return when_somebody_comes_back(WITH_EFFECT, saw_delta("b", 2))


@scenario(
    "recovery.kill-during-an-effect",
    "the target is killed while a tool runs whose effect has reached the outside world",
    exercises=f"{INVARIANT} TURN-46",
)
def kill_during_an_effect() -> dict[str, Any]:
    model = {
        "t1": [
            [{"tool": "slow_effect", "args": {"key": "{case}/paid", "ms": 5000}}, "done"],
            [*words(3, 4), "done"],
        ]
    }
    return when_somebody_comes_back(model, {"source": "effects", "kind": "effect"})
