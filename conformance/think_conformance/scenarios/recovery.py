"""Crashes of the target: the process dies, the accepted turn must not."""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import (
    CONNECT_TWO,
    DELTA,
    NEVER,
    RESPONSE,
    at_gate,
    chunk,
    saw_delta,
    saw_frame,
    saw_terminal,
    scenario,
    words,
)

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


def shown(client: str, delta: str) -> dict[str, Any]:
    """This client received that text, live or replayed."""
    chunked = {"json": {"type": RESPONSE}, "nested": {"field": "body", "json": {"delta": delta}}}
    return {"source": "client", "kind": "frame-in", "client": client, **chunked}


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
    "recovery.kill-during-output-nobody-there",
    "the target is killed after two text deltas and no client connects: the agent wakes by itself",
    exercises=f"{INVARIANT} {TEXT} TURN-29",
)
def kill_during_output_nobody_there() -> dict[str, Any]:
    return when_nobody_comes_back(DURING_OUTPUT, saw_delta("b", 2))


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
    "recovery.continuation-seen-by-another-tab",
    "the tab that asked is closed, then the target is killed; only another tab sees the answer continued",
    exercises=f"{INVARIANT} {TEXT}",
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
