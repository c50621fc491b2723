"""Interruptions of the client leg: the socket breaks, the turn must not."""

from __future__ import annotations

from typing import Any

from think_conformance.scenarios.base import (
    DELTA,
    RESPONSE,
    chunk,
    model_end,
    saw_delta,
    saw_frame,
    saw_terminal,
    scenario,
    words,
)

UNDISTURBED = "TURN-150 TURN-151 WIRE-206 WIRE-209 KIT-01 KIT-02 KIT-03 KIT-04 WIRE-119 WIRE-59"
INVARIANT = f"{UNDISTURBED} WIRE-113"
LOSS = "CANCEL-01 CANCEL-13 TURN-17 WIRE-153"
REPLAY = "WIRE-104 WIRE-102 WIRE-105"

SEND: list[dict[str, Any]] = [
    {"client": "a", "do": "connect"},
    {"client": "a", "do": "send", "turn": "t1", "text": "Count to six."},
]
HELD = {"t1": [[*words(1, 3), {"gate": "rest"}, *words(4, 6), "done"]]}
"""Three words, a gate, three words."""

REPLAYED = saw_frame("a", type=RESPONSE, replayComplete=True)


def open_gate(seen: dict[str, Any]) -> dict[str, Any]:
    """Let the model go on once this was seen."""
    return {"do": "open-gate", "gate": "rest", "after": {"seen": seen}}


def come_back(fault: str) -> dict[str, Any]:
    """Client a connects again once the fault is done."""
    return {"client": "a", "do": "connect", "after": {"fault": fault}}


def strike(when: dict[str, Any], *do: dict[str, Any], ident: str = "cut") -> dict[str, Any]:
    """A fault on what goes down to client a."""
    return {
        "id": ident,
        "leg": "client",
        "when": {"client": "a", "direction": "down", **when},
        "do": list(do),
    }


@scenario(
    "resume.reset-before-first-token",
    "the socket is reset with the first frame of the stream, before any text; the client comes back",
    exercises=f"{INVARIANT} {LOSS} {REPLAY} WIRE-85",
)
def reset_before_first_token() -> dict[str, Any]:
    return {
        "model": {"t1": [[{"gate": "rest"}, *words(1, 3), "done"]]},
        "operations": [*SEND, come_back("cut"), open_gate(REPLAYED)],
        "faults": [strike({"json": {"type": RESPONSE, "done": False}, "nth": 1}, {"cut": "reset"})],
    }


@scenario(
    "resume.reset-during-output",
    "the socket is reset at the third text delta; the client comes back and resumes",
    exercises=f"{INVARIANT} {LOSS} {REPLAY} WIRE-85 WIRE-83 WIRE-93 KIT-12",
)
def reset_during_output() -> dict[str, Any]:
    return {
        "model": HELD,
        "operations": [*SEND, come_back("cut"), open_gate(REPLAYED)],
        "faults": [strike({**DELTA, "nth": 3}, {"cut": "reset"})],
    }


@scenario(
    "resume.reset-near-the-terminal",
    "the socket is reset with the last chunk of the answer; the client comes back and learns the outcome",
    exercises=f"{INVARIANT} {LOSS} WIRE-102",
)
def reset_near_the_terminal() -> dict[str, Any]:
    return {
        "model": {"t1": [[*words(1, 3), "done"]]},
        "operations": [*SEND, come_back("cut"), {"client": "a", "do": "ack", "turn": "t1"}],
        "faults": [strike(chunk("finish"), {"cut": "reset"})],
    }


@scenario(
    "resume.reset-during-the-replay",
    "the socket is reset during output and, after the client came back, again inside the replay",
    exercises=f"{INVARIANT} {LOSS} {REPLAY} WIRE-85 WIRE-112",
)
def reset_during_the_replay() -> dict[str, Any]:
    replayed_delta = {"json": {"type": RESPONSE, "replay": True}, "nested": DELTA["nested"]}
    return {
        "model": HELD,
        "operations": [*SEND, come_back("first"), come_back("second"), open_gate(REPLAYED)],
        "faults": [
            strike({**DELTA, "nth": 3}, {"cut": "reset"}, ident="first"),
            strike({**replayed_delta, "nth": 2}, {"cut": "reset"}, ident="second"),
        ],
    }


@scenario(
    "resume.lost-again-after-the-resume",
    "the client resumes, loses its socket again in the live part and resumes once more",
    exercises=f"{INVARIANT} {LOSS} {REPLAY} WIRE-85",
)
def lost_again_after_the_resume() -> dict[str, Any]:
    live = {"json": {"type": RESPONSE}, "nested": {"field": "body", "json": {"delta": "w5 "}}}
    return {
        "model": {
            "t1": [[*words(1, 3), {"gate": "rest"}, *words(4, 5), {"gate": "end"}, *words(6, 6), "done"]]
        },
        "operations": [
            *SEND,
            come_back("first"),
            open_gate(REPLAYED),
            come_back("second"),
            {
                "do": "open-gate",
                "gate": "end",
                "after": {"seen": saw_frame("a", nth=2, type=RESPONSE, replayComplete=True)},
            },
        ],
        "faults": [
            strike({**DELTA, "nth": 3}, {"cut": "reset"}, ident="first"),
            strike(live, {"cut": "reset"}, ident="second"),
        ],
    }


@scenario(
    "resume.two-tabs-at-once",
    "two more tabs are opened during output and resume the same stream beside its sender",
    exercises=f"{UNDISTURBED} {REPLAY} WIRE-85 WIRE-83 WIRE-113 KIT-12",
)
def two_tabs_at_once() -> dict[str, Any]:
    return {
        "model": HELD,
        "operations": [
            *SEND,
            {"client": "b", "do": "connect", "after": {"seen": saw_delta("a", 3)}},
            {"client": "c", "do": "connect"},
            {"do": "wait", "after": {"seen": saw_frame("b", type=RESPONSE, replayComplete=True)}},
            open_gate(saw_frame("c", type=RESPONSE, replayComplete=True)),
            {"do": "wait", "after": {"seen": saw_terminal("b")}},
            {"do": "wait", "after": {"seen": saw_terminal("c")}},
        ],
    }


@scenario(
    "resume.replay-meets-a-closed-socket",
    "the replay meets a socket that is reset, then one closed at once behind its ack; a third gets it whole",
    exercises=f"{INVARIANT} {LOSS} {REPLAY} WIRE-85 WIRE-112",
)
def replay_meets_a_closed_socket() -> dict[str, Any]:
    def acks(client: str, after: dict[str, Any]) -> list[dict[str, Any]]:
        offered = saw_frame(client, type="cf_agent_stream_resuming")
        return [
            {"client": client, "do": "connect", "quiet": True, "after": after},
            {"client": client, "do": "ack", "turn": "t1", "after": {"seen": offered}},
        ]

    replayed = {"client": "b", "direction": "down", "json": {"type": RESPONSE, "replay": True}}
    return {
        "model": HELD,
        "operations": [
            *SEND,
            *acks("b", {"seen": saw_delta("a", 3)}),
            *acks("c", {"fault": "cut"}),
            {"client": "c", "do": "close", "code": 1001},
            {"client": "d", "do": "connect"},
            open_gate(saw_frame("d", type=RESPONSE, replayComplete=True)),
            {"do": "wait", "after": {"seen": saw_terminal("d")}},
        ],
        "faults": [{"id": "cut", "leg": "client", "when": replayed, "do": [{"cut": "reset"}]}],
    }


@scenario(
    "resume.page-refresh",
    "the page is refreshed during output: going away (1001), a new socket, the transcript, the resume",
    exercises=f"{INVARIANT} {LOSS} {REPLAY} WIRE-85",
)
def page_refresh() -> dict[str, Any]:
    return {
        "model": HELD,
        "operations": [
            *SEND,
            {"client": "a", "do": "close", "code": 1001, "after": {"seen": saw_delta("a", 3)}},
            {"client": "a", "do": "get-messages"},
            {"client": "a", "do": "connect"},
            open_gate(REPLAYED),
        ],
    }


@scenario(
    "resume.offline-then-online",
    "the network swallows everything while the old socket stays up; the client comes back on a new one",
    exercises=f"{INVARIANT} {LOSS} {REPLAY} WIRE-85",
)
def offline_then_online() -> dict[str, Any]:
    return {
        "model": HELD,
        "operations": [
            *SEND,
            {"client": "a", "do": "connect", "after": {"fired": "offline"}},
            open_gate(REPLAYED),
        ],
        "faults": [strike({**DELTA, "nth": 2}, {"cut": "blackhole"}, ident="offline")],
    }


@scenario(
    "resume.server-goes-away",
    "a proxy on the way restarts: the client is told 1012 during output and comes back",
    exercises=f"{INVARIANT} {LOSS} {REPLAY} WIRE-85",
)
def server_goes_away() -> dict[str, Any]:
    return {
        "model": HELD,
        "operations": [*SEND, come_back("cut"), open_gate(REPLAYED)],
        "faults": [strike({**DELTA, "nth": 3}, {"cut": {"close": 1012}})],
    }


@scenario(
    "resume.close-during-output",
    "the client closes its socket (1000) during output; the turn ends alone; the client comes back",
    exercises=f"{INVARIANT} {LOSS}",
)
def close_during_output() -> dict[str, Any]:
    return {
        "model": HELD,
        "operations": [
            *SEND,
            {"client": "a", "do": "close", "after": {"seen": saw_delta("a", 3)}},
            open_gate({"source": "client", "kind": "close", "client": "a"}),
            {"client": "a", "do": "connect", "after": {"seen": model_end()}},
        ],
    }


@scenario(
    "resume.tab-reopened-after-the-end",
    "the tab is closed during output; another tab sees the turn end; then the first is opened again",
    exercises=f"{UNDISTURBED} {LOSS} WIRE-85 WIRE-102",
)
def tab_reopened_after_the_end() -> dict[str, Any]:
    return {
        "model": HELD,
        "operations": [
            {"client": "b", "do": "connect"},
            *SEND,
            {"client": "a", "do": "close", "code": 1001, "after": {"seen": saw_delta("a", 3)}},
            open_gate({"source": "client", "kind": "close", "client": "a"}),
            {"client": "a", "do": "connect", "after": {"seen": saw_terminal("b")}},
            {"client": "a", "do": "ack", "turn": "t1"},
        ],
    }


@scenario(
    "resume.stall-that-heals",
    "the client's socket delivers nothing for a moment during output, then everything",
    exercises=f"{UNDISTURBED} WIRE-85 WIRE-83",
)
def stall_that_heals() -> dict[str, Any]:
    return {
        "model": {"t1": [[*words(1, 6), "done"]]},
        "operations": [*SEND, {"do": "wait", "after": {"seen": saw_terminal("a")}}],
        "faults": [strike({**DELTA, "nth": 3}, {"stall": {"for": 0.3}}, ident="stall")],
    }


@scenario(
    "resume.acks-late-wrong-and-repeated",
    "a second tab answers the offer late, with a wrong id first, twice, and once more after the end",
    exercises=f"{INVARIANT} {REPLAY} WIRE-85 WIRE-107",
)
def acks_late_wrong_and_repeated() -> dict[str, Any]:
    def b(do: str, after: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        return {"client": "b", "do": do, **({"after": {"seen": after}} if after else {}), **more}

    return {
        "model": {
            "t1": [[*words(1, 3), {"gate": "unseen"}, *words(4, 5), {"gate": "rest"}, *words(6, 6), "done"]]
        },
        "operations": [
            *SEND,
            b("connect", saw_delta("a", 3), quiet=True),
            b("ack", saw_frame("b", type="cf_agent_stream_resuming"), request="no-such-request"),
            {"do": "open-gate", "gate": "unseen"},
            b("ack", saw_delta("a", 5), turn="t1"),
            b("ack", saw_frame("b", type=RESPONSE, replayComplete=True), turn="t1"),
            open_gate(saw_frame("b", nth=2, type=RESPONSE, replayComplete=True)),
            b("ack", saw_terminal("b"), turn="t1"),
        ],
    }


@scenario(
    "resume.probe-before-the-stream",
    "a second tab connects and probes while a turn is accepted and its stream has not started",
    exercises=f"{INVARIANT} {REPLAY} WIRE-98 WIRE-103",
)
def probe_before_the_stream() -> dict[str, Any]:
    return {
        "configure": {"prepareDelayMs": 1500},
        "model": {"t1": [[*words(1, 3), "done"]]},
        "operations": [
            {"client": "b", "do": "connect"},
            *SEND,
            {
                "client": "c",
                "do": "connect",
                "after": {"seen": saw_frame("b", nth=2, type="cf_agent_chat_messages")},
            },
            {"do": "wait", "after": {"seen": saw_terminal("c")}},
        ],
    }


@scenario(
    "resume.probe-when-idle",
    "a client asks an agent that never had a turn, then one that finished one",
    exercises="WIRE-102 WIRE-119 WIRE-59 TURN-150",
)
def probe_when_idle() -> dict[str, Any]:
    return {
        "model": {"t1": [[*words(1, 3), "done"]]},
        "operations": [
            {"client": "a", "do": "connect"},
            {"client": "a", "do": "probe"},
            {"client": "a", "do": "send", "turn": "t1", "text": "Count to three."},
            {"client": "a", "do": "probe", "after": {"seen": saw_terminal("a")}},
        ],
    }
