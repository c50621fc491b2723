from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy_rig import pieces
from think_proxy.carriers.http1 import HEAD_CAP, Conversation, Part, answer
from think_proxy.plan import Status

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
                self.passed[direction] += unit.raw if unit else b""
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


def parts(direction: str, data: bytes, cuts: list[int]) -> list[Part]:
    """What a conversation makes of an answer (`down`) to a GET, or of a request."""
    http, buffer, got = Conversation(), bytearray(), []
    if direction == "down":
        http.take("up", bytearray(b"GET / HTTP/1.1\r\n\r\n"))
    for piece in pieces(data, cuts):
        buffer += piece
        while (part := http.take(direction, buffer)) is not None:  # type: ignore[arg-type]
            got.append(part)
    return got


@relaxed
@given(
    st.lists(st.binary(min_size=1, max_size=30), max_size=5),
    st.sampled_from([b"", b"A: b\r\n", b"A: b\r\nC: d\r\n"]),
    st.lists(st.integers(0, 300), max_size=12),
)
def test_a_chunked_body_is_told_from_its_framing(
    chunks: list[bytes], trailer: bytes, cuts: list[int]
) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    tail = b"0\r\n" + trailer + b"\r\n"
    stream = head + b"".join(b"%x;q=1\r\n%b\r\n" % (len(c), c) for c in chunks) + tail
    first, *rest = parts("down", stream, cuts)
    assert first.head is not None
    assert first.head.framing == "chunked"
    assert first.raw + b"".join(part.raw for part in rest) == stream
    assert b"".join(part.data for part in rest) == b"".join(chunks)
    assert b"".join(part.tail for part in rest) == tail
    assert [part.over for part in [first, *rest]] == [False] * len(rest) + [True]


@pytest.mark.parametrize(
    ("headers", "framing"),
    [
        (b"Content-Length: 3\r\n", "length"),
        (b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "chunked"),
        (b"Transfer-Encoding: gzip\r\n", "close"),
        (b"", "close"),
    ],
)
def test_how_a_body_tells_its_end(headers: bytes, framing: str) -> None:
    [part, *_] = parts("down", b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n", [])
    assert part.head is not None
    assert part.head.framing == framing


def test_what_is_sound_passes_before_what_is_not() -> None:
    stream = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nxyz\r\n"
    assert [(part.raw, part.data) for part in parts("up", stream, [])[1:]] == [
        (b"3\r\nabc\r\n", b"abc"),
        (b"xyz\r\n", b""),
    ]


def test_data_that_is_longer_than_its_chunk_is_not_read_on() -> None:
    stream = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n"
    got = parts("up", stream, [])
    assert b"".join(part.raw for part in got) == stream
    assert not got[-1].over


def test_an_answer_says_how_long_it_is_and_that_it_is_the_last() -> None:
    status = Status(503, {"Retry-After": "3", "Content-Type": "x/y", "Content-Length": "99"}, "zu früh")
    assert (
        answer(status)
        == (
            "HTTP/1.1 503 Service Unavailable\r\ncontent-type: x/y\r\nretry-after: 3\r\ncontent-length: 8\r\n"
            "connection: close\r\n\r\nzu früh"
        ).encode()
    )
