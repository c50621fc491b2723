"""What plans with a crash share: the moments, the scripts, and who comes back."""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import CONNECT_TWO, NEVER, saw_frame, words

INVARIANT = "TURN-150 TURN-151 WIRE-206 WIRE-209 KIT-01 KIT-02 KIT-03 WIRE-119"
TEXT = "KIT-06 KIT-07 KIT-08 TURN-43"

SEND = {"client": "a", "do": "send", "turn": "t1", "text": "Count to four."}
BACK = {"client": "a", "do": "connect", "after": {"fault": "crash"}}

ACCEPTED = saw_frame("b", nth=2, type="cf_agent_chat_messages")
"""The second tab has the user message: the turn is accepted."""


def crash_when(seen: dict[str, Any], *do: str, ident: str = "crash") -> dict[str, Any]:
    """The process is killed at that moment and started again on the same data (or `do` is done)."""
    actions = [{"process": action} for action in do or ("kill", "restart")]
    return {"id": ident, "leg": "target", "when": {"seen": seen}, "do": actions}


def asked_again(nth: int = 2) -> dict[str, Any]:
    """The model is called for the nth time."""
    return {"source": "model", "kind": "model-call", "nth": nth}


def when_somebody_comes_back(model: dict[str, Any], moment: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One turn, one crash at that moment, and the client connects again at once."""
    return {
        "model": model,
        "operations": [*CONNECT_TWO, SEND, BACK],
        "faults": [crash_when(moment)],
        **more,
    }


def when_nobody_comes_back(model: dict[str, Any], moment: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The same, and nobody connects until the recovered turn has asked the model."""
    return {
        "model": model,
        "operations": [
            *CONNECT_TWO,
            SEND,
            {"do": "wait", "after": {"fault": "crash"}},
            {"do": "wait", "after": {"seen": asked_again(more.pop("calls", 2))}},
        ],
        "faults": [crash_when(moment)],
        **more,
    }


ANSWERED = [*words(3, 4), "done"]
BEFORE_FIRST_TOKEN = {"t1": [[NEVER, "done"], ANSWERED]}
DURING_OUTPUT = {"t1": [[*words(1, 2), NEVER, "done"], ANSWERED]}
HELD_WHEN_RECOVERED = {
    "t1": [[*words(1, 2), NEVER, "done"], [*words(3, 3), {"gate": "rest"}, *words(4, 4), "done"]]
}
"""The same, and the second answer holds in its middle: until the plan lets it go on, or else the end of the
case does, so that whoever comes back meets it."""
BEFORE_MODEL = {"t1": [ANSWERED]}
PREPARES = {"prepareDelayMs": 1500}
