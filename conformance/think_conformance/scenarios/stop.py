"""Stop, at every moment of a turn and of its recovery."""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import (
    CONNECT_TWO,
    DELTA,
    HELD_FOR_EVER,
    NEVER,
    RESPONSE,
    SETTLED,
    STOPPED,
    at_gate,
    by,
    model_end,
    saw_delta,
    saw_frame,
    saw_terminal,
    scenario,
    send,
    until,
    words,
)

RECOVERED = "TURN-150 TURN-151 WIRE-206 WIRE-209 KIT-01 KIT-02 KIT-03 WIRE-156"


# ---- stop, at every moment --------------------------------------------------------------------


@scenario(
    "control.stop-during-output",
    "one of two tabs presses stop after two text deltas",
    exercises=f"{STOPPED} WIRE-83 KIT-04",
)
def stop_during_output() -> dict[str, Any]:
    return {
        "model": HELD_FOR_EVER,
        "operations": [
            *CONNECT_TWO,
            send(),
            by("a", "stop", saw_delta("b", 2), turn="t1"),
            until(saw_terminal("b")),
            until(model_end()),
        ],
    }


@scenario(
    "control.stop-before-the-first-token",
    "stop is pressed when the model was asked and has said nothing",
    exercises=STOPPED,
)
def stop_before_the_first_token() -> dict[str, Any]:
    return {
        "model": {"t1": [[NEVER, *words(1, 2), "done"]]},
        "operations": [
            *CONNECT_TWO,
            send(),
            by("a", "stop", at_gate(), turn="t1"),
            until(saw_terminal("b")),
            until(model_end()),
        ],
    }


@scenario(
    "control.stop-before-the-model-is-called",
    "stop is pressed when the turn is accepted and still prepared; the model may never be asked",
    exercises="TURN-150 TURN-151 WIRE-85 WIRE-206 WIRE-209 KIT-01 KIT-03 KIT-12 CANCEL-05",
)
def stop_before_the_model_is_called() -> dict[str, Any]:
    return {
        "configure": {"prepareDelayMs": 700},
        "model": {"t1": [[NEVER, *words(1, 2), "done"]]},
        "operations": [
            *CONNECT_TWO,
            send(),
            by("a", "stop", saw_frame("b", nth=2, type="cf_agent_chat_messages"), turn="t1"),
            until(saw_terminal("b")),
        ],
    }


@scenario(
    "control.stop-while-queued",
    "a turn that waits behind a running one is stopped; the running one ends undisturbed",
    exercises=f"{SETTLED} WIRE-150 KIT-04 WIRE-62",
)
def stop_while_queued() -> dict[str, Any]:
    return {
        "model": {
            "t1": [[*words(1, 2), {"gate": "rest"}, *words(3, 4), "done"]],
            "t2": [[*words(5, 6), "done"]],
        },
        "operations": [
            *CONNECT_TWO,
            send(),
            send(turn="t2", after=saw_delta("b", 2)),
            by("a", "stop", saw_frame("b", nth=3, type="cf_agent_chat_messages"), turn="t2"),
            # frames of one connection are met in order: who answers the probe has met the stop
            by("a", "probe"),
            {
                "do": "open-gate",
                "gate": "rest",
                "after": {"seen": saw_frame("a", type="cf_agent_stream_resuming")},
            },
            until(saw_terminal("b", id="req-t1")),
            until(saw_terminal("b", id="req-t2")),
        ],
    }


@scenario(
    "control.stop-during-a-tool",
    "stop is pressed while a tool runs whose effect has reached the outside world",
    exercises=f"{SETTLED} CANCEL-05",
)
def stop_during_a_tool() -> dict[str, Any]:
    return {
        "model": {
            "t1": [
                [{"tool": "slow_effect", "args": {"key": "{case}/paid", "ms": 1000}}, "done"],
                [*words(1, 2), NEVER, "done"],
            ]
        },
        "operations": [
            *CONNECT_TWO,
            send(),
            by("a", "stop", {"source": "effects", "kind": "effect"}, turn="t1"),
            until(saw_terminal("b")),
        ],
    }


@scenario(
    "control.stop-by-another-tab",
    "a second tab comes back to the running turn, follows it and presses stop",
    exercises=f"{STOPPED} WIRE-104 KIT-04",
)
def stop_by_another_tab() -> dict[str, Any]:
    return {
        "model": HELD_FOR_EVER,
        "operations": [
            by("a", "connect"),
            send(),
            by("b", "connect", saw_delta("a", 2)),
            by("b", "stop", saw_frame("b", type=RESPONSE, replayComplete=True), newest=True, turn="t1"),
            until(saw_terminal("a")),
            until(model_end()),
        ],
    }


@scenario(
    "control.stop-twice",
    "two tabs press stop, one of them twice and once more when it is over",
    exercises=f"{STOPPED} WIRE-41 KIT-04",
)
def stop_twice() -> dict[str, Any]:
    return {
        "model": HELD_FOR_EVER,
        "operations": [
            *CONNECT_TWO,
            send(),
            by("a", "stop", saw_delta("b", 2), turn="t1"),
            by("a", "stop", turn="t1"),
            by("b", "stop", turn="t1"),
            by("a", "stop", saw_terminal("a"), turn="t1"),
            by("a", "probe"),
            until(saw_frame("a", type="cf_agent_stream_resume_none")),
            until(model_end()),
        ],
    }


@scenario(
    "control.stop-of-an-unknown-id",
    "a request id that was never used is stopped while a turn runs, which goes on",
    exercises=f"{SETTLED} WIRE-41 KIT-04",
)
def stop_of_an_unknown_id() -> dict[str, Any]:
    return {
        "model": {"t1": [[*words(1, 2), {"gate": "rest"}, *words(3, 4), "done"]]},
        "operations": [
            *CONNECT_TWO,
            send(),
            by("a", "stop", saw_delta("b", 2), request="no-such-request"),
            by("a", "probe"),
            {
                "do": "open-gate",
                "gate": "rest",
                "after": {"seen": saw_frame("a", type="cf_agent_stream_resuming")},
            },
            until(saw_terminal("b")),
        ],
    }


@scenario(
    "control.stop-races-the-finish",
    "two tabs press stop at the last word and at the end of the model; it may be too late, one end is told",
    exercises=f"{SETTLED} KIT-04",
)
def stop_races_the_finish() -> dict[str, Any]:
    return {
        "model": {"t1": [[*words(1, 4), "done"]]},
        "operations": [
            *CONNECT_TWO,
            send(),
            by("a", "stop", saw_delta("a", 4), turn="t1"),
            by("b", "stop", model_end(), turn="t1"),
            until(saw_terminal("b")),
        ],
    }


@scenario(
    "control.stop-pressed-while-offline",
    "the socket is reset, stop is pressed in vain, and is pressed again on the next connection",
    exercises=STOPPED,
)
def stop_pressed_while_offline() -> dict[str, Any]:
    return {
        "model": {"t1": [[*words(1, 3), NEVER, "done"]]},
        "operations": [
            *CONNECT_TWO,
            send(),
            {"client": "a", "do": "stop", "turn": "t1", "after": {"fault": "cut"}},
            by("a", "connect", {"source": "client", "kind": "close", "client": "a"}),
            by("a", "stop", saw_frame("a", type=RESPONSE, replayComplete=True), turn="t1"),
            until(saw_terminal("b")),
            until(model_end()),
        ],
        "faults": [
            {
                "id": "cut",
                "leg": "client",
                "when": {"client": "a", "direction": "down", **DELTA, "nth": 3},
                "do": [{"cut": "reset"}],
            }
        ],
    }


# ---- stop, around a recovery ------------------------------------------------------------------

CRASHED = {"t1": [[*words(1, 2), NEVER, "done"], [*words(3, 3), {"gate": "again"}, *words(4, 4), "done"]]}
"""Two words before the crash; the next call says one more and holds."""


def after_a_crash(*operations: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The target is killed and started again after two words; client a comes back and acks nothing, so that
    no answer to an ack is taken for one to a stop."""
    return {
        "model": CRASHED,
        "operations": [
            by("a", "connect"),
            send(),
            {"client": "a", "do": "connect", "quiet": True, "after": {"fault": "crash"}},
            *operations,
            until(saw_frame("a", type=RESPONSE, done=True, outcome="aborted")),
        ],
        "faults": [
            {
                "id": "crash",
                "leg": "target",
                "when": {"seen": saw_delta("a", 2)},
                "do": [{"process": "kill"}, {"process": "restart"}],
            }
        ],
        **more,
    }


AGAIN = [{"do": "wait", "after": {"seen": at_gate("again")}}, by("a", "probe")]
"""The recovered turn streams, and the client asks for it: it learns the present id, if there is one."""

ANSWERED = saw_frame("a", probeId="probe-4")


@scenario(
    "control.stop-of-the-original-id-after-recovery",
    "a recovered turn streams again, and is stopped under the id the client sent it with",
    exercises=f"{RECOVERED} CANCEL-09 WIRE-155",
)
def stop_of_the_original_id() -> dict[str, Any]:
    return after_a_crash(*AGAIN, by("a", "stop", ANSWERED, turn="t1"))


@scenario(
    "control.stop-of-the-successor-id-after-recovery",
    "a recovered turn streams again, and is stopped under the id it streams with",
    exercises=f"{RECOVERED} WIRE-155",
)
def stop_of_the_successor_id() -> dict[str, Any]:
    return after_a_crash(*AGAIN, by("a", "stop", ANSWERED, turn="t1", newest=True))


@scenario(
    "control.stop-during-recovery",
    "the target comes back and prepares the recovered turn; stop is pressed before it streams",
    exercises=f"{RECOVERED} CANCEL-09",
)
def stop_during_recovery() -> dict[str, Any]:
    ready = {"source": "client", "kind": "open", "client": "a", "nth": 2}
    return after_a_crash(by("a", "stop", ready, turn="t1"), configure={"prepareDelayMs": 700})
