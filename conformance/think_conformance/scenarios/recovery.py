"""Crashes of the target, at every moment of a turn: the process dies, the accepted turn must not."""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import (
    CONNECT_TWO,
    NEVER,
    at_gate,
    chunk,
    saw_delta,
    saw_frame,
    saw_terminal,
    scenario,
    words,
)
from think_conformance.scenarios.crashing import (
    ACCEPTED,
    BACK,
    BEFORE_FIRST_TOKEN,
    BEFORE_MODEL,
    DURING_OUTPUT,
    INVARIANT,
    PREPARES,
    SEND,
    TEXT,
    asked_again,
    crash_when,
    when_nobody_comes_back,
    when_somebody_comes_back,
)


@scenario(
    "recovery.kill-before-the-model-is-called",
    "the target is killed when the turn is accepted and the model was not asked yet",
    exercises=f"{INVARIANT} TURN-41",
)
def kill_before_the_model_is_called() -> dict[str, Any]:
    return when_somebody_comes_back(BEFORE_MODEL, ACCEPTED, configure=PREPARES)


@scenario(
    "recovery.kill-before-the-model-is-called-nobody-there",
    "the same, and no client connects: the agent wakes by itself",
    exercises=f"{INVARIANT} TURN-41 TURN-29",
)
def kill_before_the_model_is_called_nobody_there() -> dict[str, Any]:
    return when_nobody_comes_back(BEFORE_MODEL, ACCEPTED, configure=PREPARES, calls=1)


@scenario(
    "recovery.kill-before-the-first-token",
    "the target is killed when the model was asked and has said nothing",
    exercises=f"{INVARIANT} TURN-42",
)
def kill_before_the_first_token() -> dict[str, Any]:
    return when_somebody_comes_back(BEFORE_FIRST_TOKEN, at_gate())


@scenario(
    "recovery.kill-before-the-first-token-nobody-there",
    "the same, and no client connects: the agent wakes by itself",
    exercises=f"{INVARIANT} TURN-42 TURN-29",
)
def kill_before_the_first_token_nobody_there() -> dict[str, Any]:
    return when_nobody_comes_back(BEFORE_FIRST_TOKEN, at_gate())


@scenario(
    "recovery.kill-during-output-nobody-there",
    "the target is killed after two text deltas and no client connects: the agent wakes by itself",
    exercises=f"{INVARIANT} {TEXT} TURN-29",
)
def kill_during_output_nobody_there() -> dict[str, Any]:
    return when_nobody_comes_back(DURING_OUTPUT, saw_delta("b", 2))


@scenario(
    "recovery.kill-after-the-last-token",
    "the target is killed when all text was streamed and the model has not said that it is done",
    exercises=f"{INVARIANT} {TEXT}",
)
def kill_after_the_last_token() -> dict[str, Any]:
    model = {"t1": [[*words(1, 4), NEVER, "done"], ["done"]]}
    return when_somebody_comes_back(model, saw_delta("b", 4))


@scenario(
    "recovery.kill-after-the-last-token-nobody-there",
    "the same, and no client connects: the agent wakes by itself",
    exercises=f"{INVARIANT} {TEXT} TURN-29",
)
def kill_after_the_last_token_nobody_there() -> dict[str, Any]:
    model = {"t1": [[*words(1, 4), NEVER, "done"], ["done"]]}
    return when_nobody_comes_back(model, saw_delta("b", 4))


def queued(*last: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": {"t1": DURING_OUTPUT["t1"], "t2": [[*words(5, 6), "done"]]},
        "operations": [
            *CONNECT_TWO,
            SEND,
            {
                "client": "a",
                "do": "send",
                "turn": "t2",
                "text": "Go on to six.",
                "after": {"seen": saw_delta("b", 2)},
            },
            *last,
        ],
        "faults": [crash_when(saw_frame("b", nth=3, type="cf_agent_chat_messages"))],
    }


@scenario(
    "recovery.kill-while-queued",
    "the target is killed while one turn streams and another waits; a second tab saw it accepted",
    exercises=f"{INVARIANT} {TEXT} TURN-16 WIRE-62",
)
def kill_while_queued() -> dict[str, Any]:
    return queued(BACK)


@scenario(
    "recovery.kill-while-queued-nobody-there",
    "the same, and no client connects: the agent wakes by itself and runs both",
    exercises=f"{INVARIANT} {TEXT} TURN-16 TURN-29 WIRE-62",
)
def kill_while_queued_nobody_there() -> dict[str, Any]:
    return queued(
        {"do": "wait", "after": {"fault": "crash"}}, {"do": "wait", "after": {"seen": asked_again(3)}}
    )


@scenario(
    "recovery.kill-twice-in-a-row",
    "the recovered turn is killed again during its own output",
    exercises=f"{INVARIANT} {TEXT}",
)
def kill_twice_in_a_row() -> dict[str, Any]:
    return {
        "model": {
            "t1": [
                [*words(1, 2), NEVER, "done"],
                [*words(3, 3), {"gate": "again"}, "done"],
                [*words(4, 4), "done"],
            ]
        },
        "operations": [
            *CONNECT_TWO,
            SEND,
            {"client": "a", "do": "connect", "within_s": 20, "after": {"fault": "again"}},
        ],
        "faults": [crash_when(saw_delta("b", 2)), crash_when(at_gate("again"), ident="again")],
    }


@scenario(
    "recovery.kill-at-the-finish",
    "the target is killed when the last chunk of the answer has come, be it stored or not",
    exercises="TURN-150 WIRE-206 WIRE-209 KIT-01 KIT-02 KIT-03 WIRE-119",
)
def kill_at_the_finish() -> dict[str, Any]:
    last = {"source": "client", "kind": "frame-in", "client": "b", **chunk("finish")}
    return when_somebody_comes_back({"t1": [[*words(1, 4), "done"], ["done"]]}, last)


@scenario(
    "recovery.kill-after-the-finish",
    "the target is killed when the turn has ended and everybody was told; it stays as it was",
    exercises=f"{INVARIANT} KIT-04 KIT-05",
)
def kill_after_the_finish() -> dict[str, Any]:
    return when_somebody_comes_back({"t1": [[*words(1, 4), "done"]]}, saw_terminal("b"))


@scenario(
    "recovery.kill-during-recovery",
    "the target is killed again when it has come back and prepares the recovered turn",
    exercises=f"{INVARIANT} {TEXT}",
)
def kill_during_recovery() -> dict[str, Any]:
    back = {"source": "client", "kind": "open", "client": "a", "nth": 2}
    return {
        "configure": {"prepareDelayMs": 700},
        "model": DURING_OUTPUT,
        "operations": [
            *CONNECT_TWO,
            SEND,
            BACK,
            {"client": "a", "do": "connect", "within_s": 20, "after": {"fault": "again"}},
        ],
        "faults": [crash_when(saw_delta("b", 2)), crash_when(back, ident="again")],
    }


@scenario(
    "recovery.evict-during-output",
    "the agent alone is evicted after two text deltas; its process lives on; the client comes back",
    exercises=f"{INVARIANT} {TEXT}",
)
def evict_during_output() -> dict[str, Any]:
    return {
        "model": DURING_OUTPUT,
        "operations": [*CONNECT_TWO, SEND, BACK],
        "faults": [crash_when(saw_delta("b", 2), "evict")],
    }


@scenario(
    "recovery.evict-during-output-nobody-there",
    "the same, and no client connects: the agent wakes by itself within its heartbeat",
    exercises=f"{INVARIANT} {TEXT} TURN-29",
)
def evict_during_output_nobody_there() -> dict[str, Any]:
    plan = when_nobody_comes_back(DURING_OUTPUT, saw_delta("b", 2))
    return {**plan, "faults": [crash_when(saw_delta("b", 2), "evict")]}
