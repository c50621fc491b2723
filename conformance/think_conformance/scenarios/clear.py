"""Clear: the chat is emptied while a turn runs, while one waits, and when nothing does."""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import (
    CONNECT_TWO,
    HELD_FOR_EVER,
    SETTLED,
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

CLEARED = "TURN-150 TURN-151 WIRE-206 WIRE-209 KIT-02 KIT-03 KIT-12 WIRE-190 WIRE-77 WIRE-191 WIRE-192"


@scenario(
    "control.clear-during-output",
    "the chat is cleared while one turn streams and another waits; a second tab looks on",
    exercises=f"{CLEARED} WIRE-85",
)
def clear_during_output() -> dict[str, Any]:
    return {
        "model": {**HELD_FOR_EVER, "t2": [[*words(5, 6), "done"]]},
        "operations": [
            *CONNECT_TWO,
            send(),
            send(turn="t2", after=saw_delta("b", 2)),
            by("a", "clear", saw_frame("b", nth=3, type="cf_agent_chat_messages")),
            until(saw_frame("b", type="cf_agent_chat_clear")),
            until(saw_terminal("b", id="req-t2")),
            until(model_end()),
        ],
    }


@scenario(
    "control.clear-by-another-tab",
    "one tab streams, another one clears the chat; then a turn starts afresh",
    exercises=f"{SETTLED} WIRE-190 WIRE-77 WIRE-191 WIRE-62",
)
def clear_by_another_tab() -> dict[str, Any]:
    return {
        "model": {**HELD_FOR_EVER, "t2": [[*words(5, 6), "done"]]},
        "operations": [
            *CONNECT_TWO,
            send(),
            by("b", "clear", saw_delta("b", 2)),
            send(turn="t2", after=saw_frame("a", type="cf_agent_chat_clear")),
            until(saw_terminal("b", id="req-t2")),
            until(model_end(2)),
        ],
    }


@scenario(
    "control.clear-when-idle",
    "the chat is cleared after a turn has ended; a tab that is opened later sees nothing of it",
    exercises="TURN-150 WIRE-206 KIT-02 KIT-03 WIRE-77 WIRE-191 WIRE-192",
)
def clear_when_idle() -> dict[str, Any]:
    return {
        "model": {"t1": [[*words(1, 2), "done"]]},
        "operations": [
            *CONNECT_TWO,
            send(),
            by("a", "clear", saw_terminal("b")),
            by("c", "connect", saw_frame("b", type="cf_agent_chat_clear")),
            # a turn that is being prepared may notice the clear only when it is prepared
            until(saw_terminal("b")),
        ],
    }


@scenario(
    "control.clear-before-the-stream",
    "the chat is cleared while a turn is prepared and a tab was told to wait for it; the model is not asked",
    exercises="TURN-150 TURN-151 WIRE-85 WIRE-206 WIRE-209 KIT-03 KIT-12 WIRE-77 WIRE-191 WIRE-192 WIRE-103",
)
def clear_before_the_stream() -> dict[str, Any]:
    return {
        "configure": {"prepareDelayMs": 1500},
        "model": HELD_FOR_EVER,
        "operations": [
            *CONNECT_TWO,
            send(),
            by("c", "connect", saw_frame("b", nth=2, type="cf_agent_chat_messages")),
            by("a", "clear", saw_frame("c", type="cf_agent_stream_pending", probeId="probe-c.1")),
            # a turn that is being prepared may notice the clear only when it is prepared
            until(saw_terminal("b")),
        ],
    }
