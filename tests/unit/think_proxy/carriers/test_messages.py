from __future__ import annotations

import zlib
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy_rig import CLOSE, CONT, PING, TEXT, frame, pieces
from think_proxy.carriers import messages
from think_proxy.carriers.messages import MessageReader, close_frame, header, unmask
from think_proxy.match import Message

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is no finding."""


def run(
    reader: MessageReader, data: bytes, cuts: list[int], watch: list[bool], *, flush: bool = True
) -> list[bytes | Message]:
    """All units the reader yields for `data` in pieces; before each piece the next of `watch` holds."""
    buffer = bytearray()
    units: list[bytes | Message] = []
    for n, piece in enumerate(pieces(data, cuts)):
        buffer += piece
        while (unit := reader.take(buffer, watch[n % len(watch)])) is not None:
            assert unit if isinstance(unit, bytes) else unit.raw, "a unit is never empty"
            units.append(unit)
    return [*units, reader.flush(buffer)] if flush else units


def raw(units: list[bytes | Message]) -> bytes:
    return b"".join(unit if isinstance(unit, bytes) else unit.raw for unit in units)


def only_messages(units: list[bytes | Message]) -> list[Message]:
    return [unit for unit in units if isinstance(unit, Message)]


@dataclass
class Said:
    """A stream of frames and the messages in it."""

    stream: bytes
    contents: list[bytes]
    offsets: list[int]


masks = st.sampled_from([b"", b"\x00\x00\x00\x00", b"\x01\x02\x03\x04", b"\xff\x80\x7f\x01"])
bodies = st.one_of(
    st.binary(max_size=40), st.integers(100, 300).map(bytes), st.integers(65530, 65540).map(bytes)
)


@st.composite
def streams(draw: st.DrawFn, interleaved: bool = True, deflate: bool = False) -> Said:
    mask = draw(masks)
    deflater = zlib.compressobj(wbits=-15)
    said = Said(b"", [], [])
    for body in draw(st.lists(bodies, max_size=6)):
        payload = body
        packed = deflate and draw(st.booleans())
        if packed:
            payload = (deflater.compress(body) + deflater.flush(zlib.Z_SYNC_FLUSH))[:-4]
        parts = pieces(payload, draw(st.lists(st.integers(0, 60), max_size=3))) or [b""]
        said.contents.append(body)
        said.offsets.append(len(said.stream))
        for n, part in enumerate(parts):
            if interleaved and draw(st.booleans()):
                ping = frame(draw(st.binary(max_size=5)), PING, mask=mask)
                said.offsets[-1] += len(ping) if n == 0 else 0
                said.stream += ping
            said.stream += frame(
                part, CONT if n else TEXT, fin=n == len(parts) - 1, mask=mask, rsv1=packed and n == 0
            )
    return said


cuts = st.lists(st.integers(0, 500), max_size=12)
switches = st.lists(st.booleans(), min_size=1, max_size=5)


@relaxed
@given(st.one_of(st.binary(max_size=200), streams().map(lambda s: s.stream)), cuts)
def test_unwatched_everything_passes_as_it_came(stream: bytes, cuts: list[int]) -> None:
    assert raw(run(MessageReader(inflate=False), stream, cuts, [False])) == stream


@relaxed
@given(streams(interleaved=False), cuts, switches)
def test_watched_or_not_nothing_changes(said: Said, cuts: list[int], watch: list[bool]) -> None:
    assert raw(run(MessageReader(inflate=False), said.stream, cuts, watch)) == said.stream


@relaxed
@given(st.binary(max_size=200), cuts, switches)
def test_no_byte_of_garbage_is_lost(stream: bytes, cuts: list[int], watch: list[bool]) -> None:
    units = run(MessageReader(inflate=True), stream, cuts, watch)
    assert sorted(raw(units)) == sorted(stream)


@relaxed
@given(streams(), cuts)
def test_watched_every_message_is_shown_whole(said: Said, cuts: list[int]) -> None:
    shown = only_messages(run(MessageReader(inflate=False), said.stream, cuts, [True]))
    assert [message.content for message in shown] == said.contents
    assert [message.offset for message in shown] == said.offsets
    assert [message.ordinal for message in shown] == list(range(1, len(said.contents) + 1))


@relaxed
@given(streams(), cuts, switches)
def test_what_is_shown_is_counted_over_what_is_not(said: Said, cuts: list[int], watch: list[bool]) -> None:
    for message in only_messages(run(MessageReader(inflate=False), said.stream, cuts, watch)):
        assert message.content == said.contents[message.ordinal - 1]
        assert message.offset == said.offsets[message.ordinal - 1]


@relaxed
@given(streams(deflate=True), cuts, switches)
def test_compressed_messages_are_read_whenever_one_looks(
    said: Said, cuts: list[int], watch: list[bool]
) -> None:
    for message in only_messages(run(MessageReader(inflate=True), said.stream, cuts, watch)):
        assert message.content == said.contents[message.ordinal - 1]


def test_control_frames_go_ahead_of_a_message_that_is_not_whole() -> None:
    first, ping, last = frame(b"a", fin=False), frame(b"p", PING), frame(b"b", CONT)
    units = run(MessageReader(inflate=False), first + ping + last, [], [True])
    assert units[0] == ping
    assert isinstance(units[1], Message)
    assert units[1].raw == first + last


def test_a_message_that_began_unseen_passes_and_counts() -> None:
    reader = MessageReader(inflate=False)
    begun = frame(b"a", fin=False)
    units = run(reader, begun + frame(b"b", CONT) + frame(b"c"), [len(begun)], [False, True])
    assert [(m.content, m.ordinal) for m in only_messages(units)] == [(b"c", 2)]


def test_a_message_that_is_let_go_passes_at_once() -> None:
    reader = MessageReader(inflate=False)
    buffer = bytearray(frame(b"a", fin=False))
    assert reader.take(buffer, True) is None
    assert reader.take(buffer, False) == frame(b"a", fin=False)


@pytest.mark.parametrize("fragments", [1, 7])
def test_a_message_beyond_the_cap_passes_unseen(monkeypatch: pytest.MonkeyPatch, fragments: int) -> None:
    monkeypatch.setattr(messages, "MESSAGE_CAP", 1000)
    parts = [bytes(1400 // fragments)] * fragments
    big = b"".join(frame(part, CONT if n else TEXT, fin=n == fragments - 1) for n, part in enumerate(parts))
    stream = big + frame(b"small")
    units = run(MessageReader(inflate=False), stream, list(range(0, len(stream), 50)), [True])
    assert raw(units) == stream
    assert [(m.content, m.ordinal) for m in only_messages(units)] == [(b"small", 2)]


def test_a_frame_of_any_announced_length_is_not_waited_for() -> None:
    endless = b"\x82\x7f" + (2**63 - 1).to_bytes(8) + b"x" * 100
    assert raw(run(MessageReader(inflate=False), endless, [50], [True], flush=False)) == endless


def test_a_message_that_inflates_beyond_the_cap_ends_all_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MESSAGE_CAP", 1000)
    deflater = zlib.compressobj(wbits=-15)

    def packed(body: bytes) -> bytes:
        return frame((deflater.compress(body) + deflater.flush(zlib.Z_SYNC_FLUSH))[:-4], rsv1=True)

    stream = packed(b"one") + packed(bytes(1001)) + packed(b"three") + frame(b"plain")
    shown = only_messages(run(MessageReader(inflate=True), stream, [], [True]))
    assert [message.content for message in shown] == [b"one", None, None, b"plain"]


def test_compressed_messages_that_dripped_by_unseen_still_teach() -> None:
    deflater = zlib.compressobj(wbits=-15)

    def packed(body: bytes) -> bytes:
        payload = (deflater.compress(body) + deflater.flush(zlib.Z_SYNC_FLUSH))[:-4]
        return frame(payload, mask=b"\x01\x02\x03\x04", rsv1=True)

    unseen, seen = packed(b"some words that come again"), packed(b"some words that come again")
    reader = MessageReader(inflate=True)
    run(reader, unseen, list(range(len(unseen))), [False])
    [message] = only_messages(run(reader, seen, [], [True], flush=False))
    assert (message.content, message.ordinal) == (b"some words that come again", 2)
    assert message.offset == len(unseen)


@pytest.mark.parametrize("inflate", [True, False])
def test_what_cannot_be_inflated_has_no_content(inflate: bool) -> None:
    shown = only_messages(run(MessageReader(inflate=inflate), frame(b"\xff\xff", rsv1=True), [], [True]))
    assert [message.content for message in shown] == [None]


def test_a_deflate_stream_may_end_and_another_begin() -> None:
    def final(body: bytes) -> bytes:
        deflater = zlib.compressobj(wbits=-15)
        return frame(deflater.compress(body) + deflater.flush(zlib.Z_FINISH) + b"\x00", rsv1=True)

    shown = only_messages(run(MessageReader(inflate=True), final(b"one") + final(b"two"), [], [True]))
    assert [message.content for message in shown] == [b"one", b"two"]


def test_inside_frame_tells_where_a_frame_may_be_put_in() -> None:
    reader, data = MessageReader(inflate=False), frame(b"abc")
    buffer = bytearray(data[:4])
    reader.take(buffer, False)
    assert reader.inside_frame
    buffer += data[4:]
    reader.take(buffer, False)
    assert not reader.inside_frame


@relaxed
@given(st.binary(max_size=300), masks, st.integers(0, 300))
def test_a_payload_is_unmasked_in_pieces_as_in_one(payload: bytes, mask: bytes, cut: int) -> None:
    whole = bytes(byte ^ mask[n % 4] for n, byte in enumerate(payload)) if mask else payload
    assert unmask(payload, mask) == whole
    assert unmask(payload[:cut], mask) + unmask(payload[cut:], mask, cut) == whole


def test_a_close_frame_is_a_servers() -> None:
    head = header(bytearray(close_frame(1012, "later")))
    assert head is not None
    assert (head.opcode, head.mask, head.length) == (CLOSE, b"", 7)
    assert close_frame(1012, "later") == b"\x88\x07\x03\xf4later"
