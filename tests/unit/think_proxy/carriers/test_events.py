from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy_rig import pieces
from think_proxy.carriers import events
from think_proxy.carriers.events import BodyMessage, EventReader, chunk, data_of
from think_proxy.carriers.http1 import Head, Part

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is no finding."""

HEADS = {
    "chunked": Head(("HTTP/1.1", "200", "OK"), {"transfer-encoding": "chunked"}),
    "length": Head(("HTTP/1.1", "200", "OK"), {"content-length": "999"}),
    "close": Head(("HTTP/1.1", "200", "OK"), {}),
}


def read(reader: EventReader, data: bytes, cuts: list[int] = []) -> list[bytes | BodyMessage]:  # noqa: B006
    """What leaves for a body that comes in these pieces; a chunked or announced one has its end."""
    got: list[bytes | BodyMessage] = []
    for piece in pieces(data, cuts):
        got += reader.read(Part(piece, None, piece))  # type: ignore[arg-type]
    return [unit for unit in got if unit]


def shown(units: list[bytes | BodyMessage]) -> list[bytes | None]:
    return [unit.content for unit in units if isinstance(unit, BodyMessage)]


def raw(units: list[bytes | BodyMessage]) -> bytes:
    return b"".join(unit if isinstance(unit, bytes) else unit.raw for unit in units)


line_ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
texts = st.binary(max_size=12).map(lambda b: b.replace(b"\r", b".").replace(b"\n", b"."))


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A body of events and comments, one kind of line end throughout, and the data of the events."""
    end = draw(line_ends)
    body, contents = b"", []
    for _ in range(draw(st.integers(0, 5))):
        lines = draw(
            st.lists(st.tuples(st.sampled_from([b"data: ", b"data:", b"id: ", b": "]), texts), min_size=1)
        )
        data = [
            text if name[-1:] == b" " else text.removeprefix(b" ") for name, text in lines if name[:1] == b"d"
        ]
        body += b"".join(name + text + end for name, text in lines) + end
        contents += [b"\n".join(data)] if data else []
    return body, contents


@relaxed
@given(bodies(), st.lists(st.integers(0, 300), max_size=12))
def test_events_are_told_apart_however_they_come(body: tuple[bytes, list[bytes]], cuts: list[int]) -> None:
    stream, contents = body
    reader = EventReader(HEADS["close"])
    units = read(reader, stream + b": the end is near", cuts)
    assert shown(units) == contents
    assert raw(units) + reader.rest() == stream + b": the end is near"
    messages = [unit for unit in units if isinstance(unit, BodyMessage)]
    assert [message.ordinal for message in messages] == list(range(1, len(contents) + 1))
    for message in messages:
        assert stream[message.offset :].startswith(message.body)


@relaxed
@given(st.binary(max_size=100), st.lists(st.integers(0, 100), max_size=8), st.sampled_from(sorted(HEADS)))
def test_no_byte_of_garbage_is_lost(body: bytes, cuts: list[int], framing: str) -> None:
    reader = EventReader(HEADS[framing])
    units = [*read(reader, body, cuts), reader.rest()]
    if framing == "close":
        assert raw(units) == body
    else:
        assert unchunked(raw(units)) == body


def unchunked(data: bytes) -> bytes:
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        body, data = body + data[: int(size, 16)], data[int(size, 16) + 2 :]
    return body


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (b"data: x\n\n", b"x"),
        (b"data:x\r\n\r\n", b"x"),
        (b"data:  x\n\n", b" x"),
        (b"data: a\ndata: b\n\n", b"a\nb"),
        (b"event: e\r\ndata: a\r\ndata:\r\ndata: c\r\n\r\n", b"a\n\nc"),
        (b"data\n\n", b""),
        (b": comment\n\n", None),
        (b"event: e\nid: 1\n\n", None),
        (b"database: x\n\n", None),
        (b"\n\n", None),
    ],
)
def test_the_data_of_an_event(text: bytes, data: bytes | None) -> None:
    assert data_of(text) == data


def test_an_event_leaves_with_its_last_byte_and_not_before() -> None:
    reader = EventReader(HEADS["close"])
    assert read(reader, b"data: x\r\n\r") == []
    assert shown(read(reader, b"\n")) == [b"x"]
    assert read(reader, b"data: y\n") == []
    assert shown(read(reader, b"\ndata: z\n\ndata: half")) == [b"y", b"z"]
    assert reader.rest() == b"data: half"


def test_every_event_is_a_chunk_and_the_end_is_the_one_that_came() -> None:
    reader = EventReader(HEADS["chunked"])
    assert raw(read(reader, b"data: x\n\n: c\n\nda")) == b"9\r\ndata: x\n\n\r\n5\r\n: c\n\n\r\n"
    tail = b"0\r\nA: b\r\n\r\n"
    last = [unit for unit in reader.read(Part(b"", None, b"ta", tail, True)) if unit]
    assert last == [chunk(b"data"), tail]


def test_an_announced_length_becomes_chunks() -> None:
    reader = EventReader(HEADS["length"])
    head = b"HTTP/1.1 200 OK\r\nX: y\r\ncontent-LENGTH: 9\r\n\r\n"
    assert reader.head(head) == b"HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n"
    units = [unit for unit in reader.read(Part(b"", None, b"data: x\n\n", b"", True)) if unit]
    assert raw(units) == b"9\r\ndata: x\n\n\r\n0\r\n\r\n"  # type: ignore[arg-type]


def test_a_large_event_passes_unseen_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MESSAGE_CAP", 100)
    reader = EventReader(HEADS["close"])
    stream = b"data: " + b"x" * 300 + b"\n\ndata: small\n\n"
    units = read(reader, stream, list(range(0, 400, 40)))
    assert raw(units) == stream
    assert [(unit.content, unit.ordinal) for unit in units if isinstance(unit, BodyMessage)] == [
        (b"small", 2)
    ]


BODY = b"data: 12\n\n"


@pytest.mark.parametrize(
    ("chunked", "keep", "clean", "passes"),
    [
        (True, None, False, b"5\r\ndata:\r\n"),
        (True, 2, False, b"2\r\nda\r\n"),
        (True, 0, False, b""),
        (True, 0, True, b"0\r\n\r\n"),
        (True, 99, True, b"a\r\ndata: 12\n\n\r\n0\r\n\r\n"),
        (False, None, True, b"data:"),
        (False, 0, True, b""),
    ],
)
def test_what_passes_of_an_event_that_breaks_off(
    chunked: bool, keep: int | None, clean: bool, passes: bytes
) -> None:
    message = BodyMessage(chunk(BODY), b"12", 1, 0, body=BODY, chunked=chunked)
    assert message.first(keep, clean=clean) == passes


@pytest.mark.parametrize(("clean", "length"), [(True, b"3"), (False, b"10")])
def test_a_whole_answer_breaks_off_behind_its_head(clean: bool, length: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
    message = BodyMessage(head + BODY, BODY, 1, 0, head=head, body=BODY, chunked=False)
    assert message.first(3, clean=clean) == head.replace(b"10", length) + b"dat"
