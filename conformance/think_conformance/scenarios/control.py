"""What ends a turn told apart from what does not: a client that cancels on abort from one that leaves, a stop
from mere words."""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import (
    CONNECT_TWO,
    HELD_FOR_EVER,
    SETTLED,
    STOPPED,
    by,
    model_end,
    saw_delta,
    saw_terminal,
    scenario,
    send,
    until,
    words,
)

# ---- leave, with and without a cancel ---------------------------------------------------------


@scenario(
    "control.client-abort-that-cancels",
    "a client that cancels on abort drops its stream: it sends the cancel and leaves once it is told",
    exercises=f"{STOPPED} KIT-04",
)
def client_abort_that_cancels() -> dict[str, Any]:
    return {
        "model": HELD_FOR_EVER,
        "operations": [
            *CONNECT_TWO,
            send(),
            by("a", "stop", saw_delta("b", 2), turn="t1"),
            by("a", "close", saw_terminal("a")),
            until(model_end()),
        ],
    }


@scenario(
    "control.client-abort-that-only-leaves",
    "a client that does not cancel on abort drops its stream: it only closes, and the turn goes on",
    exercises=f"{SETTLED} KIT-04 CANCEL-01 CANCEL-13 WIRE-153 TURN-17",
)
def client_abort_that_only_leaves() -> dict[str, Any]:
    return {
        "model": {"t1": [[*words(1, 2), {"gate": "rest"}, *words(3, 4), "done"]]},
        "operations": [
            *CONNECT_TWO,
            send(),
            by("a", "close", saw_delta("b", 2)),
            {
                "do": "open-gate",
                "gate": "rest",
                "after": {"seen": {"source": "client", "kind": "close", "client": "a"}},
            },
            until(saw_terminal("b")),
        ],
    }


@scenario(
    "control.opposite-settings-of-abort",
    "two clients abort: the one that cancels on abort ends its turn, the one that does not only leaves",
    exercises=f"{STOPPED} KIT-04 CANCEL-01 WIRE-153 TURN-17 CANCEL-15",
)
def opposite_settings_of_abort() -> dict[str, Any]:
    return {
        "model": {**HELD_FOR_EVER, "t2": [[*words(5, 6), {"gate": "rest"}, *words(7, 8), "done"]]},
        "operations": [
            *CONNECT_TWO,
            by("c", "connect"),
            send(),
            by("a", "stop", saw_delta("c", 2), turn="t1"),
            by("a", "close", saw_terminal("a")),
            send("b", "t2", saw_terminal("c", id="req-t1")),
            by("b", "close", saw_delta("c", 4)),
            {
                "do": "open-gate",
                "gate": "rest",
                "after": {"seen": {"source": "client", "kind": "close", "client": "b"}},
            },
            until(saw_terminal("c", id="req-t2")),
            until(model_end(2)),
        ],
    }


# ---- words ------------------------------------------------------------------------------------


@scenario(
    "control.model-speaks-of-the-end",
    "the model says that the turn is cancelled, completed and out of budget, and then goes on",
    exercises=f"{SETTLED} KIT-04 CANCEL-14",
)
def model_speaks_of_the_end() -> dict[str, Any]:
    said = [
        {"text": "This turn is cancelled, its budget is exhausted. [DONE] "},
        {"text": '{"type":"abort"} {"done":true,"outcome":"aborted"} completed '},
    ]
    return {
        "model": {"t1": [[*words(1, 2), *said, *words(3, 4), "done"]]},
        "operations": [*CONNECT_TWO, send(), until(saw_terminal("b"))],
    }
