"""The order of frames on one connection: the sequences of section 8, the duplicates of section 9,
and one broken sequence for every cell the table leaves out."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from think_conformance.wire import frames as f
from think_conformance.wire.session import (
    BROKEN,
    CHUNKS_KEPT,
    NEXT,
    REQUESTS_KEPT,
    Event,
    Session,
    State,
    event_of,
    outcome_of,
)


def ask(request: str = "r1") -> f.Frame:
    return asked("POST", '{"messages":[]}', request)


def asked(method: str, body: str | None, request: str = "r1") -> f.Frame:
    return f.ChatRequest(id=request, init=f.RequestInit(method, body))


def ack(request: str = "r1") -> f.Frame:
    return f.ResumeAck(id=request)


def offer(request: str = "r1", probe: str | None = None) -> f.Frame:
    return f.StreamResuming(id=request, probe_id=probe)


def pending(request: str = "r1", probe: str | None = None) -> f.Frame:
    return f.StreamPending(id=request, probe_id=probe)


def probe(ident: str = "p") -> f.Frame:
    return f.ResumeRequest(probe_id=ident)


def none(ident: str | None = "p", reason: f.IdleReason | None = "idle") -> f.Frame:
    return f.ResumeNone(reason=reason, probe_id=ident)


def live(*seqs: int | None, request: str = "r1", **more: Any) -> list[f.Frame]:
    return [f.ChatResponse(id=request, body=f'{{"n":{s}}}', done=False, seq=s, **more) for s in seqs]


def replay(*seqs: int | None, request: str = "r1") -> list[f.Frame]:
    return live(*seqs, request=request, replay=True)


def complete(request: str = "r1") -> f.Frame:
    return f.ChatResponse(id=request, body="", done=False, replay=True, replay_complete=True)


def error(request: str = "r1") -> f.Frame:
    return f.ChatResponse(id=request, body="model said no", done=False, error=True)


def done(outcome: f.Outcome | None = "completed", request: str = "r1", **more: Any) -> f.Frame:
    return f.ChatResponse(id=request, body="", done=True, outcome=outcome, **more)


def banner(request: str = "r1") -> f.Frame:
    return f.ChatResponse(id=request, body="gave up", done=True, error=True)


def transcript(connect: bool = False) -> f.Frame:
    return f.ChatMessages(messages=[], connect=connect)


NOTHING_KNOWN = f.ChatResponse(id="r1", body="", done=True, replay=True)

LEGAL: dict[str, list[f.Frame]] = {
    "8.1 requester": [transcript(), ask(), *live(0, 1, 2), transcript(), done()],
    "8.1 onlooker": [transcript(), *live(0, 1, 2), transcript(), done()],
    "8.2": [
        offer(),
        probe(),
        offer(probe="p"),
        ack(),
        *replay(0, 1, 2),
        complete(),
        *live(3),
        transcript(),
        done(),
    ],
    "8.3": [probe(), none()],
    "8.3 again under the same name": [probe(), none(), probe(), none()],
    "8.4": [
        pending(),
        transcript(True),
        probe(),
        pending(probe="p"),
        offer(),
        ack(),
        *replay(0),
        complete(),
        done(),
    ],
    "8.4 settled without a stream": [
        pending(),
        probe(),
        pending(probe="p"),
        none(None, None),
        done("skipped"),
    ],
    "8.5": [transcript(True), probe(), offer(probe="p"), ack(), *replay(0, 1), banner()],
    "8.6": [ask(), *live(0), f.CancelRequest(id="r1"), transcript(), done("aborted")],
    "8.6 queued": [ask(), pending(), f.CancelRequest(id="r1"), done("aborted")],
    "8.7 owner": [
        *live(0),
        done(),
        offer("r2"),
        ack("r2"),
        *replay(0, request="r2"),
        complete("r2"),
        done(request="r2"),
    ],
    "8.7 other": [*live(0), done(), *live(0, 1, request="r2", continuation=True), done(request="r2")],
    "8.9": [
        ask(),
        *live(0),
        f.ChatRecovering(recovering=True, id="r1"),
        done("recovering"),
        *live(0, request="r2"),
        done(request="r2"),
        f.ChatRecovering(recovering=False, id="r1"),
    ],
    "8.9 given up": [ask(), *live(0), done("recovering"), *live(0, request="r2"), banner("r2")],
    "8.10": [ask(), ask("r2"), *live(0), f.ChatClear(), done("aborted"), done("skipped", "r2")],
    "shape A": [ask(), *live(0), error(), transcript(), done("error")],
    "shape A without outcome": [ask(), error(), done(None)],
    "offered, never acked": [offer(), transcript(), done()],
    "offered, never acked, failed": [offer(), error(), done("error")],
    "empty replay": [offer(), ack(), complete(), *live(0), done()],
    "restored stream": [offer(), ack(), *replay(0, 1), done("recovering", replay=True, message_ids=["u1"])],
    "chunks too large to store": [ask(), *live(0, None, 1, None), done()],
    "a build without seq": [ask(), *live(None, None), done(None)],
    "200 offer twice": [offer(), probe(), offer(probe="p"), ack(), *replay(0), complete(), done()],
    "201 second ack": [
        offer(),
        ack(),
        *replay(0),
        complete(),
        *live(1),
        ack(),
        *live(2),
        *replay(0, 1, 2),
        complete(),
        *live(3),
        done(),
    ],
    "201 two acks at once": [
        offer(),
        ack(),
        ack(),
        *replay(0),
        complete(),
        *live(1),
        *replay(0, 1),
        complete(),
        done(),
    ],
    "202 late ack": [ask(), *live(0), done(), ack(), done(None, replay=True)],
    "202 late ack of a stop": [
        ask(),
        done("aborted"),
        ack(),
        done("aborted", replay=True, message_ids=["u1"]),
    ],
    "202 stored completed stream": [ask(), *live(0), done(), ack(), *replay(0), done(None, replay=True)],
    "202 whole chain": [
        ask(),
        *live(0),
        done("recovering"),
        ack(),
        done("recovering", replay=True),
        ack(),
        done(),
    ],
    "202 unknown id": [ack(), NOTHING_KNOWN],
    "202 crossing": [offer(), ack(), done(), done(None, replay=True)],
    "203": [ask(), error(), done("error")],
    "204": [
        transcript(True),
        transcript(),
        ask(),
        transcript(),
        *live(0),
        transcript(),
        done(),
        transcript(),
    ],
    "205": [ask(), banner(), banner()],
    "58 resend of a running id": [ask(), *live(0, 1), ask(), *replay(0, 1), complete(), *live(2), done()],
    "58 resend on a new connection": [ask(), *replay(0, 1), complete(), *live(2), done()],
    "58 resend of a queued id": [ask(), pending(), ask(), pending(), *live(0), done()],
    "58 resend of an ended id": [ask(), *live(0), done(), ask(), done()],
    "failed turn, offered again": [
        ask(),
        *live(0),
        banner(),
        probe(),
        offer(probe="p"),
        ack(),
        *replay(0),
        banner(),
    ],
    "failed turn, acked between error and done": [
        offer(),
        ack(),
        error(),
        *replay(0),
        complete(),
        done("error"),
    ],
    "probe while streaming": [
        ask(),
        *live(0),
        probe(),
        *live(1),
        offer(probe="p"),
        ack(),
        *replay(0, 1, 2),
        complete(),
        *live(3),
        done(),
    ],
    "offer crosses the ack": [
        probe(),
        offer(),
        ack(),
        offer(probe="p"),
        *replay(0),
        complete(),
        *live(1),
        done(),
    ],
    "joined without an offer": [transcript(), *live(7, 8), done()],
    "wrong ack": [ask(), *live(0), ack("other"), *live(1), done()],
    "rpc": [
        f.RpcRequest(id="1", method="m", args=[]),
        f.RpcResponse(id="1", success=True, done=False),
        *live(0),
        f.RpcResponse(id="1", success=True, done=True),
        f.RpcRequest(id="1", method="m", args=[]),
        f.RpcResponse(id="1", success=False, error="x"),
    ],
    "identity": [
        transcript(True),
        f.Identity(name="n", agent="a", state_follows=True),
        f.AgentState(state=1),
        f.McpServers(mcp={}),
        f.StateError(error="x"),
        f.MessageUpdated(message={}),
    ],
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_sequences(name: str) -> None:
    session = Session()
    for index, frame in enumerate(LEGAL[name]):
        assert session.see(frame) is None, f"frame {index}: {frame}"


ILLEGAL: dict[str, tuple[str, list[f.Frame]]] = {
    "live chunk while offered": ("WIRE-105", [offer(), *live(0)]),
    "live chunk before the replay": ("WIRE-104", [offer(), ack(), *live(3)]),
    "live chunk inside the replay": ("WIRE-104", [offer(), ack(), *replay(0), *live(1)]),
    "live error inside the replay": ("WIRE-104", [offer(), ack(), *replay(0), error()]),
    "live terminal inside the replay": ("WIRE-104", [offer(), ack(), *replay(0), done()]),
    "gap after the replay": ("WIRE-104", [offer(), ack(), *replay(0, 1), complete(), *live(3)]),
    "overlap after the replay": ("WIRE-104", [offer(), ack(), *replay(0, 1), complete(), *live(1)]),
    "gap on the live channel": ("WIRE-83", [ask(), *live(0, 2)]),
    "chunk twice": ("WIRE-83", [ask(), *live(0, 0)]),
    "gap in the replay": ("WIRE-83", [offer(), ack(), *replay(0, 2)]),
    "replay from the middle": ("WIRE-83", [offer(), ack(), *replay(1)]),
    "another chunk under the same number": (
        "WIRE-81",
        [ask(), *live(0), ack(), f.ChatResponse(id="r1", body="{}", done=False, seq=0, replay=True)],
    ),
    "replay unasked": ("WIRE-44", [offer(), *replay(0)]),
    "second replay for one ack": ("WIRE-44", [offer(), ack(), *replay(0), complete(), *replay(0)]),
    "terminal replayed unasked": ("WIRE-44", [transcript(), done(None, replay=True)]),
    "two terminals": ("WIRE-209", [ask(), done(), done()]),
    "completed, then aborted": ("WIRE-206", [ask(), *live(0), done(), done("aborted")]),
    "another outcome for a late ack": (
        "WIRE-206",
        [ask(), done("aborted"), ack(), done("completed", replay=True)],
    ),
    "three banners": ("WIRE-209", [ask(), banner(), banner(), banner()]),
    "error, then completed": ("WIRE-206", [ask(), error(), done("completed")]),
    "recovering after the end": ("WIRE-206", [ask(), done(), ack(), done("recovering", replay=True)]),
    "chunk after the end": ("WIRE-85", [ask(), *live(0), done(), *live(1)]),
    "error after the end": ("WIRE-85", [ask(), done(), error()]),
    "running after the end": ("WIRE-85", [ask(), done(), ack(), complete()]),
    "chunk after the error": ("WIRE-91", [ask(), error(), *live(0)]),
    "two errors": ("WIRE-91", [ask(), error(), error()]),
    "pending while offered": ("WIRE-74", [offer(), pending()]),
    "pending after the ack": ("WIRE-74", [offer(), ack(), pending()]),
    "pending inside the replay": ("WIRE-74", [offer(), ack(), *replay(0), pending()]),
    "pending while streaming": ("WIRE-74", [ask(), *live(0), pending()]),
    "pending after an error": ("WIRE-74", [ask(), error(), pending()]),
    "pending after the end": ("WIRE-74", [ask(), done(), pending()]),
    "offer of a completed stream": ("WIRE-72", [ask(), done(), offer()]),
    "two turns at once": ("WIRE-96", [*live(0), *live(0, request="r2")]),
    "probe answered twice": ("WIRE-102", [probe(), none(), none()]),
    "probe never asked": ("WIRE-102", [offer(probe="p")]),
    "pending for no probe": ("WIRE-102", [pending(probe="p")]),
    "call never made": ("WIRE-30", [f.RpcResponse(id="1", success=True, done=True)]),
    "call answered twice": (
        "WIRE-30",
        [f.RpcRequest(id="1", method="m", args=[]), *[f.RpcResponse(id="1", success=False, error="x")] * 2],
    ),
    "probe asked again before its answer": ("WIRE-102", [probe(), probe()]),
    "call made again before its answer": ("WIRE-30", [f.RpcRequest(id="1", method="m", args=[])] * 2),
    "request by GET": ("WIRE-50", [asked("GET", '{"messages":[]}')]),
    "request without a body": ("WIRE-50", [asked("POST", None)]),
    "request whose body is no JSON": ("WIRE-50", [asked("POST", "messages")]),
    "request without a list of messages": ("WIRE-50", [asked("POST", '{"messages":{}}')]),
    "two identities": ("WIRE-20", [f.Identity(name="n", agent="a")] * 2),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal_sequences_break_at_their_last_frame(name: str) -> None:
    spec, sequence = ILLEGAL[name]
    session = Session()
    for frame in sequence[:-1]:
        assert session.see(frame) is None, frame
    violation = session.see(sequence[-1])
    assert violation is not None
    assert violation.spec == spec


def test_every_forbidden_cell_has_an_illegal_sequence() -> None:
    seen = set()
    for _, sequence in ILLEGAL.values():
        session = Session()
        for frame in sequence[:-1]:
            session.see(frame)
        if named := event_of(sequence[-1]):
            seen.add((session.state(named[1]), named[0]))
    assert set(BROKEN) <= seen


def test_each_cell_is_either_legal_or_forbidden_by_a_statement() -> None:
    for state in get_args(State):
        for event in get_args(Event):
            assert (event in NEXT[state]) != ((state, event) in BROKEN), (state, event)


def test_one_mistake_is_told_once() -> None:
    session = Session()
    sequence = [ask(), *live(0, 2, 3), done(), *live(4), ack(), done(None, replay=True)]
    told = [v.spec for v in map(session.see, sequence) if v is not None]
    assert told == ["WIRE-83", "WIRE-85"]


@pytest.mark.parametrize(
    ("frame", "errored", "told"),
    [
        (done("skipped"), True, "skipped"),
        (done(None), False, "completed"),
        (done(None), True, "error"),
        (banner(), False, "error"),
        (NOTHING_KNOWN, True, None),
        (done(None, replay=True, message_ids=[]), False, "completed"),
    ],
)
def test_a_missing_outcome_is_derived(frame: f.ChatResponse, errored: bool, told: str | None) -> None:
    assert outcome_of(frame, errored) == told


IDS = st.sampled_from(["r1", "r2"])
FRAMES = st.one_of(
    st.builds(ask, IDS),
    st.builds(ack, IDS),
    st.builds(offer, IDS, st.sampled_from([None, "p"])),
    st.builds(pending, IDS),
    st.builds(probe),
    st.builds(none, st.sampled_from([None, "p"])),
    st.builds(
        f.ChatResponse,
        id=IDS,
        body=st.sampled_from(["", "{}"]),
        done=st.booleans(),
        error=st.booleans(),
        replay=st.booleans(),
        replay_complete=st.booleans(),
        seq=st.one_of(st.none(), st.integers(-2, 3)),
        outcome=st.sampled_from([None, "completed", "error", "aborted", "skipped", "recovering"]),
    ),
)


@given(st.lists(FRAMES, max_size=30))
def test_any_frames_leave_a_state_of_the_table(sequence: list[f.Frame]) -> None:
    session = Session()
    for frame in sequence:
        session.see(frame)
    assert {session.state("r1"), session.state("r2")} <= set(NEXT)


def test_memory_is_bounded() -> None:
    session = Session()
    for number in range(REQUESTS_KEPT + 1):
        session.see(ask(f"r{number}"))
        session.see(probe(f"p{number}"))
    assert session.state("r0") == "unknown"
    assert session.state(f"r{REQUESTS_KEPT}") == "requested"
    assert session.see(none("p0")) is not None
    assert session.see(none(f"p{REQUESTS_KEPT}")) is None


def test_chunks_are_compared_up_to_a_bound_and_numbered_beyond_it() -> None:
    session = Session()
    for frame in [ask(), *live(*range(CHUNKS_KEPT + 2)), ack(), *replay(*range(CHUNKS_KEPT))]:
        assert session.see(frame) is None
    other = f.ChatResponse(id="r1", body="{}", done=False, replay=True, seq=CHUNKS_KEPT)
    assert session.see(other) is None
    assert session.see(*replay(CHUNKS_KEPT + 2)) is not None
