"""What can be asked of a service behind a URL, whatever its model answers: whole turns, a broken socket, a
refresh, and questions that need no turn.

No plan here relies on how many words an answer has, only on there being one.
"""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import DELTA, saw_delta, saw_terminal, scenario, words

OUTCOME = "TURN-150 TURN-151 WIRE-206 WIRE-209 KIT-01 KIT-03 KIT-04"
PATIENCE_S = 60.0
"""How long a model may take."""

ANSWER = [*words(1, 3), "done"]


def after(seen: dict[str, Any], **operation: Any) -> dict[str, Any]:
    """An operation that may have to wait for a model that takes its time."""
    return {**operation, "after": {"seen": seen}, "within_s": PATIENCE_S}


@scenario(
    "bare.two-turns-two-tabs",
    "two short turns, one after the other, seen by two tabs; any model will do",
    exercises=f"{OUTCOME} WIRE-85 WIRE-83 WIRE-93 KIT-12",
)
def two_turns_two_tabs() -> dict[str, Any]:
    return {
        "any_model": True,
        "model": {"t1": [ANSWER], "t2": [ANSWER]},
        "operations": [
            {"client": "a", "do": "connect"},
            {"client": "b", "do": "connect"},
            {"client": "a", "do": "send", "turn": "t1", "text": "Say hello in three words."},
            after(saw_terminal("a"), client="a", do="send", turn="t2", text="Say goodbye in three words."),
            after(saw_terminal("b", nth=2), do="wait"),
        ],
    }


@scenario(
    "bare.reset-at-the-first-word",
    "the socket is reset with the first word of an answer; the client comes back; any model will do",
    exercises=f"{OUTCOME} WIRE-102",
)
def reset_at_the_first_word() -> dict[str, Any]:
    first = {"client": "a", "direction": "down", **DELTA, "nth": 1}
    return {
        "any_model": True,
        "model": {"t1": [ANSWER]},
        "operations": [
            {"client": "a", "do": "connect"},
            {"client": "a", "do": "send", "turn": "t1", "text": "Count to thirty."},
            {"client": "a", "do": "connect", "after": {"fault": "cut"}, "within_s": PATIENCE_S},
        ],
        "faults": [{"id": "cut", "leg": "client", "when": first, "do": [{"cut": "reset"}]}],
    }


@scenario(
    "bare.refresh-at-the-first-word",
    "the page is refreshed with the first word of an answer: close, transcript, resume; any model will do",
    exercises=f"{OUTCOME} WIRE-102",
)
def refresh_at_the_first_word() -> dict[str, Any]:
    return {
        "any_model": True,
        "model": {"t1": [ANSWER]},
        "operations": [
            {"client": "a", "do": "connect"},
            {"client": "a", "do": "send", "turn": "t1", "text": "Count to thirty."},
            after(saw_delta("a", 1), client="a", do="close", code=1001),
            {"client": "a", "do": "get-messages"},
            {"client": "a", "do": "connect"},
        ],
    }


@scenario(
    "bare.questions-without-a-turn",
    "a client that never sent anything asks for a stream, sends what is no frame, and asks again",
    exercises="WIRE-102",
)
def questions_without_a_turn() -> dict[str, Any]:
    return {
        "operations": [
            {"client": "a", "do": "connect"},
            {"client": "a", "do": "get-messages"},
            {"client": "a", "do": "raw", "text": "this is no JSON"},
            {"client": "a", "do": "raw", "text": '{"type":"no_such_frame"}'},
            {"client": "a", "do": "probe"},
        ],
    }
