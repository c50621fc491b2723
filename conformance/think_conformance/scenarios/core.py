"""Turns without an accident on the client leg: plain, overlapping, sent twice, failed by the model."""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import (
    CONNECT_TWO,
    model_end,
    saw_delta,
    saw_frame,
    saw_terminal,
    scenario,
    words,
)

INVARIANT = "TURN-150 TURN-151 WIRE-206 WIRE-209 KIT-01 KIT-02 KIT-03 KIT-12 WIRE-119"


def send(turn: str, text: str, after: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Client a sends a turn, once `after` was seen."""
    gate = {"after": {"seen": after}} if after else {}
    return {"client": "a", "do": "send", "turn": turn, "text": text, **gate, **more}


@scenario(
    "core.two-turns-two-tabs",
    "two turns, one after the other, seen by two tabs",
    exercises=f"{INVARIANT} KIT-04 WIRE-85 WIRE-83 WIRE-93 WIRE-62 KIT-09",
)
def two_turns_two_tabs() -> dict[str, Any]:
    return {
        "model": {"t1": [[*words(1, 3), "done"]], "t2": [[*words(4, 6), "done"]]},
        "operations": [
            *CONNECT_TWO,
            send("t1", "Count to three."),
            send("t2", "Go on to six.", saw_terminal("a")),
            {"do": "wait", "after": {"seen": saw_terminal("b", nth=2)}},
        ],
    }


def overlapping(**echo: Any) -> dict[str, Any]:
    """The second turn is sent while the first one streams."""
    return {
        "model": {
            "t1": [[*words(1, 3), {"gate": "rest"}, *words(4, 4), "done"]],
            "t2": [[*words(5, 6), "done"]],
        },
        "operations": [
            *CONNECT_TWO,
            send("t1", "Count to four."),
            send("t2", "Go on to six.", saw_delta("a", 3), **echo),
            {
                "do": "open-gate",
                "gate": "rest",
                "after": {"seen": saw_frame("b", nth=3, type="cf_agent_chat_messages")},
            },
            {"do": "wait", "after": {"seen": saw_terminal("b", nth=2)}},
        ],
    }


OVERLAP = f"{INVARIANT} KIT-04 WIRE-85 WIRE-96 WIRE-62 KIT-09"


@scenario(
    "core.overlapping-sends",
    "a second message is sent while the first answer streams; its list holds only the new message",
    exercises=OVERLAP,
)
def overlapping_sends() -> dict[str, Any]:
    return overlapping()


@scenario(
    "core.overlapping-sends-with-echo",
    "a second message is sent while the first answer streams; its list repeats the answer as streamed so far",
    exercises=OVERLAP,
)
def overlapping_sends_with_echo() -> dict[str, Any]:
    return overlapping(echo="server-ids")


@scenario(
    "core.overlapping-sends-with-echo-under-own-ids",
    "as before, and the client has made up the id of the answer it repeats",
    exercises=OVERLAP,
)
def overlapping_sends_with_echo_under_own_ids() -> dict[str, Any]:
    return overlapping(echo="own-ids")


@scenario(
    "core.resent-request",
    "a request is sent again while it runs, while it waits and after it ended; nothing runs twice",
    exercises=f"{INVARIANT} WIRE-58",
)
def resent_request() -> dict[str, Any]:
    return {
        "model": {
            "t1": [[*words(1, 3), {"gate": "rest"}, *words(4, 4), "done"]],
            "t2": [[*words(5, 6), "done"]],
        },
        "operations": [
            *CONNECT_TWO,
            send("t1", "Count to four."),
            send("t2", "Go on to six.", saw_delta("a", 3)),
            send("t1", "Count to four."),
            send("t2", "Go on to six."),
            # frames of one connection are met in order: who answers the probe has met the resends
            {"client": "a", "do": "probe"},
            {
                "do": "open-gate",
                "gate": "rest",
                "after": {"seen": saw_frame("a", probeId="probe-6")},
            },
            send("t1", "Count to four.", saw_terminal("b", nth=2)),
            {"do": "wait", "after": {"seen": saw_terminal("a", id="req-t1", nth=2)}},
        ],
    }


@scenario(
    "core.failure-while-nobody-listens",
    "the model's stream reports an error after three words, when no client is connected; two come back",
    exercises="TURN-150 WIRE-206 WIRE-209 KIT-01 KIT-02 KIT-03 KIT-10 WIRE-110 WIRE-102",
)
def failure_while_nobody_listens() -> dict[str, Any]:
    return {
        "model": {"t1": [[*words(1, 3), {"gate": "rest"}, {"error": "the model is overloaded"}]]},
        "operations": [
            {"client": "a", "do": "connect"},
            send("t1", "Count to four."),
            {"client": "a", "do": "close", "after": {"seen": saw_delta("a", 3)}},
            {
                "do": "open-gate",
                "gate": "rest",
                "after": {"seen": {"source": "client", "kind": "close", "client": "a"}},
            },
            {"client": "a", "do": "connect", "after": {"seen": model_end()}},
            {"client": "b", "do": "connect", "after": {"seen": saw_terminal("a")}},
            {"do": "wait", "after": {"seen": saw_terminal("b")}},
        ],
    }


def on_the_model_leg(*do: dict[str, Any], **when: Any) -> dict[str, Any]:
    """One turn, watched by two tabs; the fault hits the model's answer."""
    return {
        "model": {"t1": [[*words(1, 4), "done"]]},
        "operations": [
            *CONNECT_TWO,
            send("t1", "Count to four."),
            {"do": "wait", "after": {"seen": saw_terminal("b")}},
        ],
        "faults": [{"id": "model", "leg": "model", "when": when, "do": list(do)}],
    }


DOWN_3 = {"direction": "down", "nth": 3}
FAILS = "TURN-150 WIRE-206 WIRE-209 WIRE-85 KIT-01 KIT-03 KIT-10"
"""What a failed turn shows. While its failure is kept for latecomers, nobody is told `idle`."""


@scenario(
    "core.model-answers-an-error-status",
    "the model provider answers 500 instead of a stream",
    exercises=FAILS,
)
def model_answers_an_error_status() -> dict[str, Any]:
    return on_the_model_leg({"status": {"code": 500, "body": "out of order"}}, direction="up")


@scenario(
    "core.model-cut-before-the-first-byte",
    "the connection to the model is reset before it answers",
    exercises=FAILS,
)
def model_cut_before_the_first_byte() -> dict[str, Any]:
    return on_the_model_leg({"cut": "reset"}, direction="up")


@scenario(
    "core.model-cut-in-mid-event",
    "the model's stream breaks in the middle of its third event",
    exercises=f"{FAILS} KIT-02",
)
def model_cut_in_mid_event() -> dict[str, Any]:
    return on_the_model_leg({"truncate": {"end": "reset"}}, **DOWN_3)


@scenario(
    "core.model-cut-at-the-end",
    "the model's stream breaks after the last word, before it says that it is done",
    exercises="TURN-150 WIRE-206 WIRE-209 WIRE-85 KIT-01 KIT-02 KIT-03",
)
def model_cut_at_the_end() -> dict[str, Any]:
    return on_the_model_leg({"cut": "fin"}, direction="down", json={"choices": [{"finish_reason": "stop"}]})


@scenario(
    "core.model-short-but-clean",
    "the model's stream ends properly after two words, without saying that it is done",
    exercises="TURN-150 WIRE-206 WIRE-209 WIRE-85 KIT-01 KIT-02 KIT-03",
)
def model_short_but_clean() -> dict[str, Any]:
    return on_the_model_leg({"truncate": {"keep": 0, "end": "clean"}}, **DOWN_3)


@scenario(
    "core.model-stalls-and-heals",
    "the model's stream pauses after two words and then goes on",
    exercises=f"{INVARIANT} KIT-04 WIRE-85 WIRE-83",
)
def model_stalls_and_heals() -> dict[str, Any]:
    return on_the_model_leg({"stall": {"for": 0.3}}, **DOWN_3)


@scenario(
    "core.model-slow-first-byte",
    "the model takes its time before the first byte",
    exercises=f"{INVARIANT} KIT-04 WIRE-85 WIRE-83",
)
def model_slow_first_byte() -> dict[str, Any]:
    return on_the_model_leg({"delay": {"for": 0.3}}, direction="up")
