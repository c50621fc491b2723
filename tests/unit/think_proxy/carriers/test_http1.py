from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy_rig import pieces
from think_proxy.carriers.http1 import HEAD_CAP, Conversation

UPGRADE = b"GET /agents/x/y?_pk=a.1 HTTP/1.1\r\nHost: h\r\nUpgrade: WebSocket\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

EXCHANGES = {
    "get": (b"GET / HTTP/1.1\r\n\r\n", OK),
    "head": (b"HEAD / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"),
    "post": (b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nGET /", OK),
    "chunked": (
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nGE\r\n\r\n0\r\nA: b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n",
    ),
    "no content": (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n"),
    "not modified": (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 304 N\r\nContent-Length: 9\r\n\r\n"),
    "continue": (
        b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK,
    ),
    "refused upgrade": (UPGRADE, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
    "bare line ends": (b"GET / HTTP/1.1\nHost: x\n\n", b"HTTP/1.1 200 OK\nContent-Length: 1\n\nx"),
}

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is no finding."""


class Both:
    """A conversation and what has passed in each direction."""

    def __init__(self) -> None:
        self.http = Conversation()
        self.buffers = {"up": bytearray(), "down": bytearray()}
        self.passed = {"up": b"", "down": b""}

    def feed(self, direction: str, data: bytes) -> None:
        self.buffers[direction] += data
        while self.http.mode != "websocket" and self._round():
            pass

    def _round(self) -> bool:
        moved = False
        for direction in ("up", "down"):
            if self.http.mode != "websocket":
                unit = self.http.take(direction, self.buffers[direction])  # type: ignore[arg-type]
                self.passed[direction] += unit or b""
                moved = moved or unit is not None
        return moved


@relaxed
@given(
    st.lists(st.sampled_from(sorted(EXCHANGES)), max_size=4),
    st.lists(st.integers(0, 150), max_size=12),
)
def test_a_kept_alive_connection_is_followed_to_its_upgrade(names: list[str], cuts: list[int]) -> None:
    both = Both()
    for name in names:
        request, response = EXCHANGES[name]
        for piece in pieces(request, cuts):
            both.feed("up", piece)
        assert both.passed["up"].endswith(request), name
        for piece in pieces(response, cuts):
            both.feed("down", piece)
        assert both.passed["down"].endswith(response), name
        assert not both.http.waiting("up"), name
    both.feed("up", UPGRADE)
    both.feed("down", SWITCH)
    assert both.http.mode == "websocket"
    assert both.http.request is not None
    assert both.http.request.target == "/agents/x/y?_pk=a.1"


def test_what_is_behind_an_upgrade_waits_for_the_answer() -> None:
    both = Both()
    both.feed("up", UPGRADE + b"\x81\x00")
    assert both.passed["up"] == UPGRADE
    assert both.http.waiting("up")
    both.feed("down", SWITCH + b"\x81\x01x")
    assert both.http.mode == "websocket"
    assert both.buffers == {"up": b"\x81\x00", "down": b"\x81\x01x"}


def test_pipelined_requests_pass_one_by_one() -> None:
    both = Both()
    get = b"GET / HTTP/1.1\r\n\r\n"
    both.feed("up", get + get)
    assert both.passed["up"] == get
    both.feed("down", OK)
    assert both.passed["up"] == get + get


def test_a_body_without_an_announced_end_lasts() -> None:
    both = Both()
    both.feed("up", b"GET / HTTP/1.1\r\n\r\n")
    answer = b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 101 no\r\n\r\n"
    both.feed("down", answer)
    assert both.passed["down"] == answer
    assert both.http.mode == "http"


@pytest.mark.parametrize(
    ("extensions", "deflate"),
    [(b"", False), (b"Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n", True)],
)
def test_the_answer_tells_whether_messages_are_compressed(extensions: bytes, deflate: bool) -> None:
    both = Both()
    both.feed("up", UPGRADE)
    both.feed("down", SWITCH[:-2] + extensions + b"\r\n")
    assert both.http.mode == "websocket"
    assert both.http.deflate is deflate


@pytest.mark.parametrize(
    ("up", "down"),
    [
        (b"\x16\x03\x01 not http\r\n\r\n", b"\x15\x03"),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", OK),
        (b"POST / HTTP/1.1\r\nContent-Length: 1, 2\r\n\r\nabc", OK),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc", OK),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 9000, OK),
        (b"CONNECT h:1 HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n\x00\x01"),
        (b"GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n", b"HTTP/1.1 101 S\r\nUpgrade: h2c\r\n\r\n\x00"),
        (b"", b"220 mail.example ESMTP\r\n"),
        (b"x" * (HEAD_CAP + 1), b"y"),
    ],
)
def test_what_is_no_plain_http_passes_unseen(up: bytes, down: bytes) -> None:
    both = Both()
    both.feed("up", up)
    both.feed("down", down)
    assert both.passed == {"up": up, "down": down}
    assert both.http.mode == "tunnel"
    both.feed("up", b"more")
    assert both.passed["up"] == up + b"more"


def test_a_head_is_kept_until_it_is_whole_and_within_bounds() -> None:
    both = Both()
    both.feed("up", b"GET / HTTP/1.1\r\nX: " + b"y" * (HEAD_CAP - 100))
    assert both.passed["up"] == b""
    both.feed("up", b"y" * 200)
    assert len(both.passed["up"]) > HEAD_CAP
    assert both.http.mode == "tunnel"


@relaxed
@given(st.binary(max_size=200), st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_garbage_never_raises_and_is_never_changed(up: bytes, down: bytes, cuts: list[int]) -> None:
    both = Both()
    for piece in pieces(up, cuts):
        both.feed("up", piece)
    for piece in pieces(down, cuts):
        both.feed("down", piece)
    assert both.passed["up"] + both.buffers["up"] == up
    assert both.passed["down"] + both.buffers["down"] == down
