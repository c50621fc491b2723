"""What may be hit of an exchange, and what passes as it came."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy_rig import faults, pieces
from think_proxy.carriers import http
from think_proxy.carriers.abilities import carrier
from think_proxy.carriers.http import ExchangeReader
from think_proxy.engine import Engine
from think_proxy.match import Message
from think_proxy.plan import Direction

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is no finding."""

SCOPE = "[[case/"
PROMPT = b'{"text":"hi [[case/t1]]"}'
POST = b"POST /v1 HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(PROMPT), PROMPT)
OTHER = b"POST /v1 HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi"
SSE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
)
JSON = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"n":1}'


def reader(*rows: dict[str, Any]) -> ExchangeReader:
    engine = Engine(carrier("model", controls_process=False))
    engine.arm(faults(*({"do": [{"drop": True}], **row} for row in rows), leg="model"), SCOPE)
    return ExchangeReader(engine)


class Fed:
    """A reader, and what has left it in each direction."""

    def __init__(self, made: ExchangeReader) -> None:
        self.reader = made
        self.buffers: dict[Direction, bytearray] = {"up": bytearray(), "down": bytearray()}
        self.units: dict[Direction, list[bytes | Message]] = {"up": [], "down": []}

    def feed(
        self, direction: Direction, data: bytes, cuts: list[int] | None = None, end: bool = False
    ) -> None:
        for piece in [*pieces(data, cuts or []), b""]:
            self.buffers[direction] += piece
            ended = end and not piece
            while (unit := self.reader.take(direction, self.buffers[direction], ended)) is not None:
                assert unit if isinstance(unit, bytes) else unit.raw, "a unit is never empty"
                self.units[direction].append(unit)

    def raw(self, direction: Direction) -> bytes:
        return b"".join(unit if isinstance(unit, bytes) else unit.raw for unit in self.units[direction])

    def shown(self, direction: Direction) -> list[bytes | None]:
        return [unit.content for unit in self.units[direction] if isinstance(unit, Message)]


DOWN = {"when": {"direction": "down"}}
UP = {"when": {"direction": "up"}}
cuts = st.lists(st.integers(0, 200), max_size=10)


@relaxed
@given(
    st.lists(st.sampled_from([OTHER, b"GET / HTTP/1.1\r\n\r\n", POST]), min_size=1, max_size=3),
    st.sampled_from([SSE + b"9\r\ndata: x\n\n\r\n0\r\nA: b\r\n\r\n", JSON, b"HTTP/1.1 204 No\r\n\r\n"]),
    cuts,
    st.booleans(),
)
def test_what_no_fault_concerns_passes_as_it_came(
    requests: list[bytes], answer: bytes, cuts: list[int], armed: bool
) -> None:
    rows = [{"when": {"connection": 9}}] if armed else []
    fed = Fed(reader(*rows))
    for request in requests:
        fed.feed("up", request, cuts)
        fed.feed("down", answer, cuts)
    assert (fed.raw("up"), fed.raw("down")) == (b"".join(requests), answer * len(requests))
    assert fed.shown("up") == fed.shown("down") == []


@relaxed
@given(st.lists(st.binary(min_size=1, max_size=20), max_size=4), cuts, cuts)
def test_a_request_in_scope_is_one_message(
    extra: list[bytes], request_cuts: list[int], cuts: list[int]
) -> None:
    fed = Fed(reader(UP))
    body = PROMPT + b"".join(extra)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces(body, cuts) if piece)
    request = b"POST /v1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    fed.feed("up", request, request_cuts)
    [message] = fed.units["up"]
    assert isinstance(message, Message)
    assert (message.raw, message.content, message.ordinal, message.offset) == (request, body, 1, 0)


@relaxed
@given(st.lists(st.integers(0, 60), max_size=6), cuts)
def test_events_are_shown_whatever_chunks_they_come_in(chunk_cuts: list[int], cuts: list[int]) -> None:
    fed = Fed(reader(DOWN))
    events = b'data: {"n":1}\n\n: ping\n\ndata: {"n":2}\r\n\r\ndata: [DONE]\n\n'
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces(events, chunk_cuts) if p)
    fed.feed("up", POST)
    fed.feed("down", SSE + chunks + b"0\r\n\r\n", cuts)
    assert fed.shown("down") == [b'{"n":1}', b'{"n":2}', b"[DONE]"]
    assert fed.raw("down").startswith(SSE)
    assert fed.raw("down").endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(
    ("answer", "content", "ends"),
    [
        (JSON, b'{"n":1}', False),
        (b"HTTP/1.1 200 OK\r\n\r\nall of it", b"all of it", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", False),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n", b"", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nA: b\r\n\r\n", b"hi", False),
        (
            SSE.replace(b"\r\n\r\n", b"\r\nContent-Encoding: br\r\n\r\n") + b"2\r\nhi\r\n0\r\n\r\n",
            None,
            False,
        ),
    ],
)
def test_an_answer_without_events_is_one_message(answer: bytes, content: bytes | None, ends: bool) -> None:
    fed = Fed(reader(DOWN))
    fed.feed("up", POST)
    fed.feed("down", b"HTTP/1.1 103 Early Hints\r\n\r\n" + answer, [30, 60], end=ends)
    interim, message = fed.units["down"]
    assert interim == b"HTTP/1.1 103 Early Hints\r\n\r\n"
    assert isinstance(message, Message)
    assert (message.raw, message.content, message.ordinal) == (answer, content, 1)


def test_an_answer_that_never_gets_whole_is_no_message() -> None:
    fed = Fed(reader(DOWN))
    fed.feed("up", POST)
    fed.feed("down", JSON[:-1], end=True)
    assert fed.raw("down") == JSON[:-1]
    assert fed.shown("down") == []


@pytest.mark.parametrize("direction", ["up", "down"])
def test_what_is_too_large_passes_and_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, direction: Direction
) -> None:
    monkeypatch.setattr(http, "MESSAGE_CAP", 100)
    fed = Fed(reader({"when": {"direction": direction}}))
    large = b"Content-Length: 1000\r\n\r\n" + PROMPT + bytes(1000 - len(PROMPT))
    request = b"POST /v1?[[case/t1]] HTTP/1.1\r\n" + (large if direction == "up" else b"\r\n")
    fed.feed("up", request, [200, 300])
    fed.feed("down", b"HTTP/1.1 200 OK\r\n" + large, [200, 300])
    assert fed.raw("up") == request
    assert fed.raw("down") == b"HTTP/1.1 200 OK\r\n" + large
    assert fed.shown("up") == fed.shown("down") == []


def test_the_answer_to_a_large_request_is_told_by_its_target_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MESSAGE_CAP", 10)
    fed = Fed(reader({**DOWN, "times": 9}))
    for target, shown in ((b"/v1", []), (b"/v1?[[case/t1]]", [b"hi"])):
        fed.feed("up", POST.replace(b"/v1", target))
        fed.feed("down", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        assert fed.shown("down") == shown


def test_who_asks_before_sending_is_not_kept_waiting() -> None:
    fed = Fed(reader(UP))
    head, _, body = POST.partition(b"\r\n\r\n")
    head += b"\r\nExpect: 100-continue\r\n\r\n"
    fed.feed("up", head)
    assert fed.raw("up") == head
    fed.feed("down", b"HTTP/1.1 100 Continue\r\n\r\n")
    fed.feed("up", body)
    assert fed.raw("up") == head + body
    assert fed.shown("up") == [PROMPT]


def test_an_exchange_under_way_when_a_fault_is_armed_passes() -> None:
    engine = Engine(carrier("model", controls_process=False))
    fed = Fed(ExchangeReader(engine))
    fed.feed("up", POST)
    engine.arm(faults({"do": [{"drop": True}]}, leg="model"), SCOPE)
    fed.feed("down", JSON)
    assert fed.shown("down") == []
    fed.feed("up", POST)
    fed.feed("down", JSON)
    assert fed.shown("down") == [b'{"n":1}']


@pytest.mark.parametrize("broken", [b"zz\r\n", b"9\r\ndata: x\n\n\r\nzz\r\n", b"4\r\ndatazz\r\n"])
def test_what_stops_being_http_passes_from_there_on(broken: bytes) -> None:
    fed = Fed(reader(DOWN))
    fed.feed("up", POST)
    fed.feed("down", SSE + broken)
    fed.feed("down", b"more")
    assert fed.raw("down").startswith(SSE)
    assert fed.raw("down").endswith(b"zz\r\nmore")


@relaxed
@given(st.binary(max_size=150), st.binary(max_size=150), cuts)
def test_garbage_never_raises_and_nothing_is_lost(up: bytes, down: bytes, cuts: list[int]) -> None:
    fed = Fed(reader(UP, {"id": "g", **DOWN}))
    fed.feed("up", up, cuts)
    fed.feed("down", down, cuts)
    assert fed.raw("up") + fed.reader.flush("up", fed.buffers["up"]) == up
    assert fed.raw("down") + fed.reader.flush("down", fed.buffers["down"]) == down
