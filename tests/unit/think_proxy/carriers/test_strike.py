"""Faults on a leg of plain HTTP, on real sockets, verified by what both ends see on the wire."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import (
    ClientError,
    ClientPayloadError,
    ClientResponse,
    ClientSession,
    ServerDisconnectedError,
    web,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy_rig import DEADLINE_S, Peer, Rig, pieces, rig
from think_proxy.engine import Unsupported

SCOPE = "[[case/"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
PLAIN_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
JSON = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"ok": true}'
LAST = b"0\r\n\r\n"

THIRD = {"direction": "down", "json": {"type": "delta"}, "nth": 3}
REQUEST = {"direction": "up"}


def post(marker: str = "[[case/t1]]", target: str = "/v1/chat") -> bytes:
    body = b'{"messages":[{"role":"user","content":"hi %b"}]}' % marker.encode()
    return b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (target.encode(), len(body), body)


def event(n: int) -> bytes:
    return b'data: {"type":"delta","n":%d}\n\n' % n


def chunks(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def events(*numbers: int) -> bytes:
    """Events, each a chunk of its own."""
    return chunks(*map(event, numbers))


DONE = b"data: [DONE]\n\n"


@asynccontextmanager
async def struck(*rows: dict[str, Any]) -> AsyncIterator[Rig]:
    """A rig on the model leg with these faults armed."""
    async with rig("model") as r:
        r.arm(*rows, scope=SCOPE)
        yield r


async def ask(r: Rig, request: bytes = post()) -> tuple[Peer, Peer]:
    """A client whose request has reached the upstream."""
    client, upstream = await r.connect()
    client.send(request)
    await upstream.expect(request)
    return client, upstream


def done(r: Rig) -> list[tuple[list[str], str]]:
    return [(payload["did"], payload["outcome"]) for _, _, payload in r.journal.of("fault-done")]


# ---- at the request --------------------------------------------------------------------------------------


async def test_a_status_answers_instead_of_the_upstream() -> None:
    status = {"code": 429, "headers": {"Retry-After": "7"}, "body": "slow down"}
    async with struck({"when": REQUEST, "do": [{"status": status}]}) as r:
        client, upstream = await r.connect()
        client.send(post())
        got, ending = await client.rest()
        head, _, body = got.partition(b"\r\n\r\n")
        assert head.split(b"\r\n")[0] == b"HTTP/1.1 429 Too Many Requests"
        assert {b"retry-after: 7", b"content-length: 9", b"connection: close"} <= set(head.split(b"\r\n"))
        assert (body, ending) == (b"slow down", "fin")
        assert await upstream.rest() == (b"", "fin")
        assert done(r) == [(["status"], "done")]


@pytest.mark.parametrize("how", ["reset", "fin"])
async def test_a_cut_at_the_request_is_before_the_first_byte(how: str) -> None:
    async with struck({"when": REQUEST, "do": [{"cut": how}]}) as r:
        client, upstream = await r.connect()
        client.send(post())
        assert await client.rest() == (b"", how)
        assert await upstream.rest() == (b"", how)


async def test_a_request_that_is_dropped_reaches_nobody() -> None:
    async with struck({"when": REQUEST, "do": [{"drop": True}]}) as r:
        client, upstream = await r.connect()
        client.send(post())
        await r.journal.seen("fault-done")
        client.fin()
        assert await upstream.rest() == (b"", "fin")


async def test_a_late_request_is_a_slow_first_byte() -> None:
    async with struck({"when": REQUEST, "do": [{"delay": {"for": 0.15}}]}) as r:
        started = asyncio.get_running_loop().time()
        client, upstream = await ask(r)
        assert asyncio.get_running_loop().time() - started >= 0.15
        upstream.send(JSON)
        await client.expect(JSON)


async def test_a_request_is_whole_before_it_is_struck() -> None:
    async with struck({"when": {"json": {"messages": [{"role": "user"}]}}, "do": [{"cut": "reset"}]}) as r:
        client, upstream = await r.connect()
        *most, last = pieces(post(), range(0, 500, 20))
        for piece in most:
            client.send(piece)
            await client.writer.drain()
        other_client, other_upstream = await ask(r, post("[[other/t1]]"))
        assert upstream.silent()
        client.send(last)
        assert await client.rest() == (b"", "reset")
        other_upstream.send(JSON)
        await other_client.expect(JSON)


# ---- at an event -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["reset", "fin"])
async def test_a_cut_at_an_event_drops_it(how: str) -> None:
    async with struck({"when": THIRD, "do": [{"cut": how}]}) as r:
        client, upstream = await ask(r)
        upstream.send(HEAD + events(1, 2, 3, 4))
        assert await client.rest() == (HEAD + events(1, 2), how)
        assert await upstream.rest() == (b"", how)


@pytest.mark.parametrize(
    ("truncate", "passes", "ending"),
    [
        ({}, chunks(event(3)[:15]), "fin"),
        ({"keep": 5}, chunks(b"data:"), "fin"),
        ({"keep": 0, "end": "reset"}, b"", "reset"),
        ({"end": "reset"}, chunks(event(3)[:15]), "reset"),
        ({"keep": 0, "end": "clean"}, LAST, "fin"),
        ({"keep": 5, "end": "clean"}, chunks(b"data:") + LAST, "fin"),
        ({"keep": 999, "end": "clean"}, events(3) + LAST, "fin"),
    ],
)
async def test_an_event_breaks_off(truncate: dict[str, Any], passes: bytes, ending: str) -> None:
    assert len(event(3)) == 30
    async with struck({"when": THIRD, "do": [{"truncate": truncate}]}) as r:
        client, upstream = await ask(r)
        upstream.send(HEAD + events(1, 2, 3, 4))
        assert await client.rest() == (HEAD + events(1, 2) + passes, ending)
        assert (await upstream.rest())[1] == ending
        assert done(r) == [(["truncate"], "done")]


@pytest.mark.parametrize("end", ["clean", "fin"])
async def test_an_event_breaks_off_where_the_connection_is_the_frame(end: str) -> None:
    async with struck({"when": THIRD, "do": [{"truncate": {"end": end}}]}) as r:
        client, upstream = await ask(r)
        upstream.send(PLAIN_HEAD + event(1) + event(2) + event(3))
        assert await client.rest() == (PLAIN_HEAD + event(1) + event(2) + event(3)[:15], "fin")


async def test_the_end_is_cut_off() -> None:
    async with struck({"when": {"direction": "down", "text": "[DONE]"}, "do": [{"cut": "fin"}]}) as r:
        client, upstream = await ask(r)
        upstream.send(HEAD + events(1, 2) + chunks(DONE) + LAST)
        assert await client.rest() == (HEAD + events(1, 2), "fin")


async def test_a_dropped_event_leaves_a_sound_body() -> None:
    async with struck({"when": THIRD, "do": [{"drop": True}]}) as r:
        client, upstream = await ask(r)
        upstream.send(HEAD + chunks(event(1) + event(2) + event(3)[:9], event(3)[9:] + event(4)) + LAST)
        await client.expect(HEAD + events(1, 2, 4) + LAST)
        client.send(post())
        await upstream.expect(post())


async def test_a_stalled_stream_goes_on_with_all_its_events() -> None:
    async with struck({"when": THIRD, "do": [{"stall": {"for": 20}}]}) as r:
        client, upstream = await ask(r)
        upstream.send(HEAD + events(1, 2, 3, 4) + LAST)
        await client.expect(HEAD + events(1, 2))
        await r.journal.seen("fault-fired")
        assert client.silent()
        await r.proxy.heal(SCOPE)
        await client.expect(events(3, 4) + LAST)


async def test_the_first_event_comes_late() -> None:
    async with struck({"when": {"direction": "down", "nth": 1}, "do": [{"delay": {"for": 0.15}}]}) as r:
        client, upstream = await ask(r)
        started = asyncio.get_running_loop().time()
        upstream.send(HEAD + events(1, 2) + LAST)
        await client.expect(HEAD)
        await client.expect(events(1, 2) + LAST)
        assert asyncio.get_running_loop().time() - started >= 0.15


# ---- at an answer without events -------------------------------------------------------------------------


async def test_a_cut_answer_is_lost_with_its_head() -> None:
    async with struck({"when": {"direction": "down"}, "do": [{"cut": "reset"}]}) as r:
        client, upstream = await ask(r)
        upstream.send(JSON)
        assert await client.rest() == (b"", "reset")


async def test_an_answer_is_short_but_looks_whole() -> None:
    fault = {
        "when": {"direction": "down", "json": {"ok": True}},
        "do": [{"truncate": {"keep": 3, "end": "clean"}}],
    }
    async with struck(fault) as r:
        client, upstream = await ask(r)
        upstream.send(JSON)
        expected = JSON.replace(b"Content-Length: 12", b"Content-Length: 3").replace(b'{"ok": true}', b'{"o')
        assert await client.rest() == (expected, "fin")


async def test_an_answer_that_ends_with_the_connection_is_struck_at_its_end() -> None:
    async with struck({"when": {"direction": "down"}, "do": [{"truncate": {"keep": 2}}]}) as r:
        client, upstream = await ask(r)
        head = b"HTTP/1.1 200 OK\r\n\r\n"
        upstream.send(head + b"all")
        upstream.fin()
        assert await client.rest() == (head + b"al", "fin")


# ---- which exchange --------------------------------------------------------------------------------------


async def test_only_exchanges_that_contain_the_scope_are_struck() -> None:
    async with struck({"when": {}, "do": [{"cut": "reset"}], "times": 9}) as r:
        for request in (post("[[other/t1]]"), b"GET /v1/models HTTP/1.1\r\n\r\n"):
            client, upstream = await ask(r, request)
            upstream.send(JSON)
            await client.expect(JSON)
        for request in (post(), post("", "/v1?[[case/t1]]"), post("[[case\\/t1]]")):
            client, _ = await r.connect()
            client.send(request)
            assert await client.rest() == (b"", "reset")


async def test_exchanges_of_a_scope_are_counted_over_connections() -> None:
    async with struck(
        {"when": {"connection": 3, "direction": "down", "nth": 1}, "do": [{"drop": True}]}
    ) as r:
        client, upstream = await ask(r)
        await ask(r, post("[[other/t1]]"))
        upstream.send(JSON)
        await client.expect(JSON)
        client.send(post())
        await upstream.expect(post())
        upstream.send(HEAD + events(1) + LAST)
        await client.expect(HEAD + events(1) + LAST)
        third_client, third_upstream = await ask(r)
        third_upstream.send(HEAD + events(1, 2) + LAST)
        await third_client.expect(HEAD + events(2) + LAST)


async def test_nth_counts_within_an_exchange() -> None:
    async with struck({"when": THIRD, "do": [{"drop": True}]}) as r:
        client, upstream = await ask(r)
        upstream.send(HEAD + events(1, 2) + LAST)
        await client.expect(HEAD + events(1, 2) + LAST)
        client.send(post())
        await upstream.expect(post())
        upstream.send(HEAD + events(1, 2, 3) + LAST)
        await client.expect(HEAD + events(1, 2) + LAST)


async def test_the_journal_proves_which_event_it_was() -> None:
    async with struck({"when": THIRD, "do": [{"drop": True}]}) as r:
        client, upstream = await ask(r)
        upstream.send(JSON)
        await client.expect(JSON)
        client.send(post())
        await upstream.expect(post())
        upstream.send(HEAD + chunks(b": ping\n\n", b"data: hello\n\n") + events(1, 2, 3) + LAST)
        (_, ids, payload) = await r.journal.seen("fault-fired")
        assert ids == {"fault": "f", "token": "f#1"}
        data = event(3)[6:-2]
        assert payload == {
            "leg": "model",
            "direction": "down",
            "exchange": 2,
            "ordinal": 4,
            "offset": len(b": ping\n\ndata: hello\n\n" + event(1) + event(2)),
            "size": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }


@pytest.mark.parametrize(
    ("row", "needs"),
    [
        ({"when": {"client": "a"}}, r"`when\.client`"),
        ({"when": {"offset": 3}}, r"`when\.offset`"),
        ({"do": [{"refuse": True}]}, r"`do\.refuse`"),
        ({"do": [{"cut": {"close": 1011}}]}, r"`do\.cut\.close`"),
        ({"do": [{"throttle": {"bps": 1}}]}, r"`do\.throttle`"),
        (
            {"when": {"direction": "down"}, "do": [{"status": {"code": 500}}]},
            r"`do\.status` where it cannot be",
        ),
        ({"when": {"direction": "up"}, "do": [{"truncate": {}}]}, r"`do\.truncate\.fin` where it cannot be"),
    ],
)
async def test_what_cannot_be_done_here_is_refused(row: dict[str, Any], needs: str) -> None:
    async with rig("model") as r:
        with pytest.raises(Unsupported, match=f"^fault `f` needs {needs}"):
            r.arm({"do": [{"cut": "reset"}], **row}, scope=SCOPE)


# ---- without a fault -------------------------------------------------------------------------------------

NEVER = {"when": {"direction": "down", "json": {"type": "never"}}, "do": [{"cut": "reset"}]}
bodies = st.lists(st.binary(min_size=1, max_size=40), max_size=4)
cuts = st.lists(st.integers(0, 300), max_size=8)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    bodies,
    bodies,
    cuts,
    st.sampled_from([b"", b"A: b\r\n"]),
    st.booleans(),
    st.sampled_from(["fin", "reset"]),
)
def test_any_exchange_in_any_pieces_passes_unchanged_and_so_does_the_ending(
    asked: list[bytes], told: list[bytes], cuts: list[int], trailer: bytes, armed: bool, ending: str
) -> None:
    async def case() -> None:
        async with rig("model") as r:
            if armed:
                r.arm(NEVER, scope=SCOPE)
            client, upstream = await r.connect()
            tail = b"0\r\n" + trailer + b"\r\n"
            request = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(*asked) + tail
            for _ in range(2):
                for sender, receiver, said in (
                    (client, upstream, request),
                    (upstream, client, HEAD + chunks(*told) + tail),
                ):
                    for piece in pieces(said, cuts):
                        sender.send(piece)
                        await sender.writer.drain()
                        await asyncio.sleep(0)
                    await receiver.expect(said)
            await upstream_ends(client, upstream, ending)

    asyncio.run(case())


async def upstream_ends(client: Peer, upstream: Peer, ending: str) -> None:
    if ending == "reset":
        upstream.reset()
    else:
        upstream.fin()
    assert await client.rest() == (b"", ending)


@pytest.mark.parametrize("armed", [False, True])
async def test_a_body_that_is_asked_for_first(armed: bool) -> None:
    async with struck(*[NEVER] * armed) as r:
        client, upstream = await r.connect()
        head, _, body = post().partition(b"\r\n\r\n")
        head += b"\r\nExpect: 100-continue\r\n\r\n"
        client.send(head)
        await upstream.expect(head)
        upstream.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        await client.expect(b"HTTP/1.1 100 Continue\r\n\r\n")
        client.send(body)
        await upstream.expect(body)


@pytest.mark.parametrize("armed", [False, True])
@pytest.mark.parametrize("ending", ["fin", "reset"])
async def test_a_stream_that_is_lost_is_lost_here_too(armed: bool, ending: str) -> None:
    async with struck(*[NEVER] * armed) as r:
        client, upstream = await ask(r)
        upstream.send(HEAD + events(1) + b"1c\r\ndata")
        passed = HEAD + events(1)
        await client.expect(passed)
        if not armed:
            await client.expect(b"1c\r\ndata")
        if ending == "fin":
            upstream.fin()
            assert await client.rest() == (chunks(b"data") if armed else b"", "fin")
        else:
            upstream.reset()
            assert (await client.rest())[1] == "reset"


@pytest.mark.parametrize("armed", [False, True])
@pytest.mark.parametrize("ending", ["fin", "reset"])
async def test_a_caller_that_hangs_up_is_gone_upstream(armed: bool, ending: str) -> None:
    async with struck(*[NEVER] * armed) as r:
        client, upstream = await ask(r)
        upstream.send(HEAD + events(1))
        await client.expect(HEAD + events(1))
        if ending == "fin":
            client.fin()
        else:
            client.reset()
        assert await upstream.rest() == (b"", ending)


@pytest.mark.parametrize("ending", ["fin", "reset"])
async def test_a_caller_that_hangs_up_during_a_stall_is_gone_at_once(ending: str) -> None:
    async with struck({"when": THIRD, "do": [{"stall": {"for": 20}}]}) as r:
        client, upstream = await ask(r)
        upstream.send(HEAD + events(1, 2, 3))
        await client.expect(HEAD + events(1, 2))
        await r.journal.seen("fault-fired")
        if ending == "fin":
            client.fin()
        else:
            client.reset()
        assert await upstream.rest() == (b"", ending)
        assert done(r) == []


async def test_a_late_request_is_taken_back_by_a_caller_that_hangs_up() -> None:
    async with struck({"when": REQUEST, "do": [{"delay": {"for": 20}}]}) as r:
        client, upstream = await r.connect()
        client.send(post())
        await r.journal.seen("fault-fired")
        client.fin()
        assert await upstream.rest() == (b"", "fin")
        await r.proxy.heal(SCOPE)
        assert done(r) == [(["delay"], "done")]


async def test_a_request_that_is_never_whole_is_passed_with_its_ending() -> None:
    async with struck(NEVER) as r:
        client, upstream = await r.connect()
        client.send(post()[:-1])
        client.fin()
        assert await upstream.rest() == (post()[:-1], "fin")


async def test_a_slow_reader_is_felt_by_the_writer() -> None:
    async with struck(NEVER) as r:
        client, upstream = await ask(r)
        client.writer.transport.pause_reading()
        upstream.writer.transport.set_write_buffer_limits(0)
        text = chunks(b"data: " + bytes(65_000) + b"\n\n") * 512
        upstream.send(HEAD + text)
        flushed = asyncio.ensure_future(upstream.writer.drain())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(flushed), 0.3)
        assert len(text) - upstream.writer.transport.get_write_buffer_size() < 16 << 20
        client.writer.transport.resume_reading()
        await client.expect(HEAD + text)
        await flushed


async def test_nobody_upstream_refuses_the_caller() -> None:
    async with rig("model") as r:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            r.proxy._upstream = free.getsockname()
        client = Peer(*await asyncio.open_connection("127.0.0.1", r.proxy.port))
        r.peers.append(client)
        client.send(post())
        assert await client.rest() == (b"", "reset")


# ---- with a real HTTP library ----------------------------------------------------------------------------


class Model:
    """A server that streams four events, the last when told to, and knows who hung up."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.hung_up = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            await response.write(event(1) + event(2)[:7])
            await response.write(event(2)[7:] + event(3))
            await self.go.wait()
            await response.write(event(4))
        except asyncio.CancelledError:
            self.hung_up.set()
            raise
        return response


Call = Callable[[], Awaitable[ClientResponse]]


@asynccontextmanager
async def model(*rows: dict[str, Any]) -> AsyncIterator[tuple[Rig, Model, Call]]:
    """A model behind a proxy with these faults, and how to call it."""
    served = Model()
    app = web.Application()
    app.router.add_post("/v1/chat", served.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with struck(*rows) as r, ClientSession() as session:
            r.proxy._upstream = runner.addresses[0]
            url = f"http://127.0.0.1:{r.proxy.port}/v1/chat"
            yield r, served, lambda: session.post(url, json={"prompt": "hi [[case/t1]]"})
    finally:
        await runner.cleanup()


async def test_a_library_sees_a_broken_body() -> None:
    async with model({"when": THIRD, "do": [{"truncate": {"end": "fin"}}]}) as (_, _, call):
        response = await call()
        assert response.status == 200
        with pytest.raises(ClientPayloadError):
            await response.read()


async def test_a_library_takes_a_clean_end_for_the_end() -> None:
    async with model({"when": THIRD, "do": [{"truncate": {"keep": 0, "end": "clean"}}]}) as (_, served, call):
        assert await (await call()).read() == event(1) + event(2)
        async with asyncio.timeout(DEADLINE_S):
            await served.hung_up.wait()
        served.go.set()
        assert await (await call()).read() == b"".join(map(event, (1, 2, 3, 4)))


async def test_a_library_reads_all_of_a_stream_that_stalls_and_heals() -> None:
    async with model({"when": THIRD, "do": [{"stall": {"for": 0.1}}]}) as (r, served, call):
        served.go.set()
        assert await (await call()).read() == b"".join(map(event, (1, 2, 3, 4)))
        assert done(r) == [(["stall"], "done")]


@pytest.mark.parametrize(("how", "error"), [("reset", ClientError), ("fin", ServerDisconnectedError)])
async def test_a_library_gets_no_answer(how: str, error: type[Exception]) -> None:
    async with model({"when": REQUEST, "do": [{"cut": how}]}) as (_, served, call):
        with pytest.raises(error):
            await call()
        assert not served.hung_up.is_set()


async def test_a_library_gets_a_status_and_calls_again() -> None:
    status = {"code": 503, "headers": {"Retry-After": "0"}, "body": "busy"}
    async with model({"when": REQUEST, "do": [{"status": status}]}) as (_, served, call):
        refused = await call()
        assert (refused.status, refused.headers["Retry-After"], await refused.text()) == (503, "0", "busy")
        served.go.set()
        assert (await call()).status == 200


@pytest.mark.parametrize("armed", [False, True])
async def test_a_call_that_is_given_up_is_seen_by_the_model(armed: bool) -> None:
    async with model(*[NEVER] * armed) as (_, served, call):
        response = await call()
        await response.content.readuntil(b"\n\n")
        response.close()
        async with asyncio.timeout(DEADLINE_S):
            await served.hung_up.wait()
