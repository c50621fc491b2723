"""Without a fault the proxy is not there: bytes, endings and pressure are those of a direct connection."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from certificates import CA, server_side
from proxy_rig import (
    BINARY,
    CLOSE,
    CONT,
    DEADLINE_S,
    PING,
    PONG,
    SCOPE,
    TEXT,
    Peer,
    asked,
    frame,
    pieces,
    rig,
    said,
)

NEVER = {"when": {"json": {"type": "never"}}, "do": [{"cut": "reset"}]}
SILENT = {"when": {"direction": "up", "client": "nobody"}, "do": [{"cut": "reset"}]}

frames = st.builds(
    frame,
    st.one_of(st.binary(max_size=30), st.integers(120, 140).map(bytes), st.just(bytes(70_000))),
    st.sampled_from([TEXT, BINARY, CONT, PING, PONG, CLOSE]),
    fin=st.booleans(),
    mask=st.sampled_from([b"", b"\x01\x02\x03\x04"]),
    rsv1=st.booleans(),
)
streams = st.lists(frames, max_size=8).map(b"".join)
cuts = st.lists(st.integers(0, 400), max_size=8)
endings = st.sampled_from(["fin", "reset"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(streams, streams, cuts, cuts, st.sampled_from([None, SILENT]), endings, st.booleans())
def test_any_frames_in_any_pieces_pass_unchanged_and_so_does_the_ending(
    up: bytes,
    down: bytes,
    up_cuts: list[int],
    down_cuts: list[int],
    armed: dict[str, object] | None,
    ending: str,
    client_ends: bool,
) -> None:
    async def case() -> None:
        async with rig() as r:
            if armed is not None:
                r.arm(armed)
            client, upstream = await r.open(extensions="permessage-deflate" if len(up) % 2 else "")
            await asyncio.gather(trickle(client, up, up_cuts), trickle(upstream, down, down_cuts))
            await upstream.expect(up)
            await client.expect(down)
            first, second = (client, upstream) if client_ends else (upstream, client)
            await the_ending_passes(first, second, ending)

    asyncio.run(case())


async def trickle(peer: Peer, data: bytes, cuts: list[int]) -> None:
    for piece in pieces(data, cuts):
        peer.send(piece)
        await peer.writer.drain()
        await asyncio.sleep(0)


async def the_ending_passes(first: Peer, second: Peer, ending: str) -> None:
    if ending == "reset":
        first.reset()
        assert await second.rest() == (b"", "reset")
        return
    first.fin()
    assert await second.rest() == (b"", "fin")
    second.send(b"\x81\x03yet")  # the other direction goes on
    second.fin()
    assert await first.rest() == (b"\x81\x03yet", "fin")


@pytest.mark.parametrize("ending", ["fin", "reset"])
@pytest.mark.parametrize("watched", [False, True])
async def test_a_loss_in_the_middle_of_a_frame_passes_what_there_was(ending: str, watched: bool) -> None:
    async with rig() as r:
        if watched:
            r.arm(NEVER)
        client, upstream = await r.open()
        torn = frame(b"first half, second half")[:10]
        upstream.send(said(1) + torn)
        await client.expect(said(1) + (b"" if watched else torn))
        if ending == "fin":
            upstream.fin()
        else:
            upstream.reset()
        assert await client.rest() == (torn if watched else b"", ending)


async def test_watched_messages_pass_unchanged() -> None:
    async with rig() as r:
        r.arm(NEVER)
        client, upstream = await r.open()
        stream = said(1) + frame(b"a", fin=False) + frame(b"b", CONT) + frame(bytes(1_000_000)) + said(2)
        upstream.send(stream)
        await client.expect(stream)


async def test_a_kept_alive_connection_is_upgraded_at_last() -> None:
    async with rig() as r:
        client, upstream = await r.connect()
        post = b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        for request, answer in [
            (post, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            (b"GET /y HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ]:
            client.send(request)
            await upstream.expect(request)
            upstream.send(answer)
            await client.expect(answer)
        r.arm({"when": {"client": "a", "nth": 1}, "do": [{"drop": True}]})
        await r.upgrade(client, upstream, f"{SCOPE}?_pk=a.1")
        upstream.send(said(1) + said(2))
        await client.expect(said(2))
        assert len(r.journal.of("fault-fired")) == 1


async def test_frames_sent_with_the_handshake_are_not_lost() -> None:
    async with rig() as r:
        client, upstream = await r.connect()
        head = f"GET {SCOPE} HTTP/1.1\r\nUpgrade: websocket\r\n\r\n".encode()
        client.send(head + asked(1))
        assert await upstream.head() == head
        answer = b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n" + said(1)
        upstream.send(answer)
        await client.expect(answer)
        await upstream.expect(asked(1))


async def test_an_ending_waits_behind_a_request_that_waits_for_an_answer() -> None:
    async with rig() as r:
        r.arm({"when": {"direction": "down"}, "do": [{"drop": True}]})
        client, upstream = await r.connect()
        get, upgrade = b"GET / HTTP/1.1\r\n\r\n", f"GET {SCOPE} HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"
        client.send(get + upgrade.encode())
        client.fin()
        await upstream.expect(get)
        upstream.send(b"HTTP/1.1 204 No Content\r\n\r\n")
        assert await upstream.rest() == (upgrade.encode(), "fin")
        upstream.send(b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n" + said(1) + said(2))
        await client.expect(b"HTTP/1.1 204 No Content\r\n\r\n")
        await client.head()
        await client.expect(said(2))


async def test_a_client_that_is_lost_while_its_answer_is_due_is_lost_upstream() -> None:
    async with rig() as r:
        client, upstream = await r.connect()
        head = f"GET {SCOPE} HTTP/1.1\r\nUpgrade: websocket\r\n\r\n".encode()
        client.send(head + asked(1))
        await upstream.expect(head)
        client.reset()
        assert await upstream.rest() == (asked(1), "reset")


async def test_what_is_sent_at_once_reaches_the_upstream() -> None:
    async with rig() as r:
        client = Peer(*await asyncio.open_connection("127.0.0.1", r.proxy.port))
        r.peers.append(client)
        client.send(b"not http at all\r\n\r\n")
        client.fin()
        async with asyncio.timeout(DEADLINE_S):
            upstream = await r.accepted.get()
        assert await upstream.rest() == (b"not http at all\r\n\r\n", "fin")


@pytest.mark.parametrize("armed", [None, NEVER])
async def test_a_slow_consumer_is_felt_by_the_producer(armed: dict[str, object] | None) -> None:
    async with rig() as r:
        if armed is not None:
            r.arm(armed)
        client, upstream = await r.open()
        client.writer.transport.pause_reading()
        payload = frame(bytes(65_526)) * 512
        upstream.send(payload)
        flushed = asyncio.ensure_future(flush(upstream))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(flushed), 0.3)
        waiting = upstream.writer.transport.get_write_buffer_size()
        assert len(payload) - waiting < 16 << 20, "more was taken than buffers should hold"
        client.writer.transport.resume_reading()
        await client.expect(payload)
        await flushed


async def flush(peer: Peer) -> None:
    """Returns when all that was sent has left."""
    peer.writer.transport.set_write_buffer_limits(0)
    await peer.writer.drain()


async def test_data_before_a_reset_arrives() -> None:
    async with rig() as r:
        client, upstream = await r.open()
        upstream.send(said(1))
        await flush(upstream)
        upstream.reset()
        assert await client.rest() == (said(1), "reset")


async def test_a_reset_that_the_loop_has_not_noticed_is_passed_on() -> None:
    async with rig() as r:
        client, upstream = await r.open()
        upstream.fin()
        client.reset()
        assert (await upstream.rest())[1] == "reset"


async def test_nobody_upstream_refuses_the_client() -> None:
    async with rig() as r:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            r.proxy._upstream = free.getsockname()
        client = Peer(*await asyncio.open_connection("127.0.0.1", r.proxy.port))
        r.peers.append(client)
        assert await client.rest() == (b"", "reset")
        kind, ids, payload = await r.journal.seen("info")
        assert (kind, ids) == ("info", {})
        assert "Connect call failed" in payload["reason"]


@pytest.mark.parametrize("ending", ["fin", "reset"])
async def test_nothing_is_left_of_a_connection_that_ended(ending: str) -> None:
    async with rig() as r:
        before = open_files()
        for _ in range(5):
            client, upstream = await r.open()
            await the_ending_passes(client, upstream, ending)
            client.writer.transport.abort()
            upstream.writer.transport.abort()
        async with asyncio.timeout(DEADLINE_S):
            while open_files() > before:  # noqa: ASYNC110 (a closed file tells nobody)
                await asyncio.sleep(0.01)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_close_ends_every_connection() -> None:
    async with rig() as r:
        opened = [await r.open(), await r.connect()]
        await r.proxy.close()
        for client, upstream in opened:
            await client.rest()
            await upstream.rest()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", r.proxy.port)


@pytest.mark.parametrize("ending", ["upstream", "client", "reset"])
async def test_behind_tls_all_bytes_pass_and_an_ending_is_one(ending: str) -> None:
    async with rig(server_side=server_side(), tls=ssl.create_default_context(cafile=str(CA))) as r:
        client, upstream = await r.open()
        many = b"".join(said(n) for n in range(2000))
        client.send(asked(1))
        await upstream.expect(asked(1))
        upstream.send(many)
        if ending == "upstream":
            upstream.writer.close()
            assert await client.rest() == (many, "fin")
        elif ending == "client":
            await client.expect(many)
            client.fin()
            assert await upstream.rest() == (b"", "fin")
        else:
            await client.expect(many)
            upstream.reset()
            assert await client.rest() == (b"", "reset")


async def test_a_certificate_that_is_not_trusted_is_told_and_nothing_passes() -> None:
    async with rig(server_side=server_side(), tls=ssl.create_default_context()) as r:
        client = Peer(*await asyncio.open_connection("127.0.0.1", r.proxy.port))
        r.peers.append(client)
        assert await client.rest() == (b"", "reset")
        assert "certificate verify failed" in str(r.journal.rows)
