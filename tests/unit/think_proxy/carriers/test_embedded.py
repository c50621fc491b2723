"""Every fault on real sockets, verified by what both ends see on the wire."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import pytest
from aiohttp import ClientSession, WSMsgType, web

from proxy_rig import CONT, DEADLINE_S, PING, SCOPE, Peer, Rig, asked, faults, frame, rig, said
from think_proxy.carriers import relay
from think_proxy.carriers.embedded import EmbeddedProxy
from think_proxy.engine import Unsupported

THIRD = {"direction": "down", "json": {"type": "delta"}, "nth": 3}
KILL = {"process": "kill"}


def done(r: Any) -> list[tuple[list[str], str]]:
    return [(payload["did"], payload["outcome"]) for _, _, payload in r.journal.of("fault-done")]


async def round_trip(client: Peer, upstream: Peer) -> None:
    """A message upwards has passed, so whatever was before it in the proxy has been dealt with."""
    client.send(asked(0))
    await upstream.expect(asked(0))


# ---- cut ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "ending"), [("reset", "reset"), ("fin", "fin")])
async def test_cut_at_the_third_message(how: str, ending: str) -> None:
    async with rig() as r:
        r.arm({"when": THIRD, "do": [{"cut": how}]})
        client, upstream = await r.open()
        upstream.send(said(1) + said(2) + said(3) + said(4))
        assert await client.rest() == (said(1) + said(2), ending)
        assert await upstream.rest() == (b"", ending)
        assert done(r) == [(["cut"], "done")]


async def test_a_reset_comes_behind_all_that_passed_before_it() -> None:
    async with rig() as r:
        r.arm({"when": {"direction": "down", "nth": 9}, "do": [{"cut": "reset"}]})
        client, upstream = await r.open()
        client.writer.transport.pause_reading()
        before = frame(bytes(65_000)) * 8
        upstream.send(before + said(1))
        await r.journal.seen("fault-done")
        client.writer.transport.resume_reading()
        assert await client.rest() == (before, "reset")


async def keep_talking(peer: Peer) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            peer.send(asked(1))
            await peer.writer.drain()
            await asyncio.sleep(0.01)


async def test_who_does_not_answer_an_orderly_end_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "FAREWELL_S", 0.1)
    async with rig() as r:
        r.arm({"when": THIRD, "do": [{"cut": "fin"}]})
        client, upstream = await r.open()
        upstream.send(said(1) + said(2) + said(3))
        assert await client.rest() == (said(1) + said(2), "fin")
        with pytest.raises(ConnectionError):
            await keep_talking(client)


async def test_close_code_is_told_to_the_client_alone() -> None:
    async with rig() as r:
        r.arm({"when": THIRD, "do": [{"cut": {"close": 1012, "reason": "restart"}}]})
        client, upstream = await r.open()
        upstream.send(said(1) + said(2) + said(3) + said(4))
        assert await client.rest() == (said(1) + said(2) + b"\x88\x09\x03\xf4restart", "fin")
        client.send(frame(b"\x03\xf4", 8, mask=b"abcd"))
        assert await upstream.rest() == (b"", "fin")


async def test_a_close_frame_is_never_put_inside_another_frame() -> None:
    async with rig() as r:
        client, upstream = await r.open()
        large = frame(bytes(1000))
        upstream.send(large[:500])  # nothing is armed yet: it passes as it comes
        await client.expect(large[:500])
        r.arm({"when": {"direction": "up"}, "do": [{"cut": {"close": 1011}}]})
        client.send(asked(1))
        await r.journal.seen("fault-fired")
        upstream.send(large[500:] + said(1))
        rest, ending = await client.rest()
        assert ending == "fin"
        assert rest in (large[500:] + b"\x88\x02\x03\xf3", large[500:] + said(1) + b"\x88\x02\x03\xf3")


async def test_after_forwards_the_message_first() -> None:
    async with rig() as r:
        r.arm({"when": THIRD, "do": [{"cut": "reset"}], "after": True})
        client, upstream = await r.open()
        upstream.send(said(1) + said(2) + said(3) + said(4))
        assert await client.rest() == (said(1) + said(2) + said(3), "reset")


@pytest.mark.parametrize("lifted_by", ["heal", "bound"])
async def test_a_black_hole_swallows_both_directions_and_the_endings(lifted_by: str) -> None:
    async with rig() as r:
        within_s = 30 if lifted_by == "heal" else 0.2
        r.arm({"when": {"direction": "down"}, "do": [{"cut": "blackhole"}], "within_s": within_s})
        client, upstream = await r.open()
        upstream.send(said(1))
        await r.journal.seen("fault-done")
        client.send(asked(1))
        upstream.send(said(2))
        upstream.fin()
        other_client, other_upstream = await r.open(f"{SCOPE}?_pk=b.1")
        await round_trip(other_client, other_upstream)
        assert client.silent()
        assert upstream.silent()
        if lifted_by == "heal":
            await r.proxy.heal(SCOPE)
        assert await client.rest() == (b"", "reset")
        assert await upstream.rest() == (b"", "reset")
        assert done(r) == [(["cut"], "done")]


# ---- stall and drop ----------------------------------------------------------------------------------


async def test_a_stalled_direction_waits_while_the_other_flows() -> None:
    async with rig() as r:
        r.arm({"when": THIRD, "do": [{"stall": {"for": 20, "direction": "down"}}]})
        client, upstream = await r.open()
        upstream.send(said(1) + said(2) + said(3))
        await client.expect(said(1) + said(2))
        await r.journal.seen("fault-fired")
        upstream.send(said(4))
        upstream.fin()
        for _ in range(3):
            await round_trip(client, upstream)
        assert client.silent()
        await r.proxy.heal(SCOPE)
        assert await client.rest() == (said(3) + said(4), "fin")
        assert done(r) == [(["stall"], "done")]


async def test_a_stall_of_both_directions_heals_by_itself_without_loss() -> None:
    async with rig() as r:
        r.arm({"when": THIRD, "do": [{"stall": {"for": 0.2}}]})
        client, upstream = await r.open()
        started = asyncio.get_running_loop().time()
        upstream.send(said(1) + said(2) + said(3) + said(4))
        await r.journal.seen("fault-fired")
        client.send(asked(1))
        await upstream.expect(asked(1))
        assert asyncio.get_running_loop().time() - started >= 0.2, "upwards waits as well"
        await client.expect(said(1) + said(2) + said(3) + said(4))
        assert done(r) == [(["stall"], "done")]


async def test_a_stalled_connection_takes_no_more_than_buffers_hold() -> None:
    async with rig() as r:
        r.arm({"when": {"direction": "down"}, "do": [{"stall": {"for": 20}}]})
        client, upstream = await r.open()
        payload = frame(bytes(65_526)) * 512
        upstream.writer.transport.set_write_buffer_limits(0)
        upstream.send(payload)
        flushed = asyncio.ensure_future(upstream.writer.drain())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(flushed), 0.3)
        assert len(payload) - upstream.writer.transport.get_write_buffer_size() < 16 << 20
        await r.proxy.heal(SCOPE)
        await client.expect(payload)
        await flushed


async def test_drop_loses_one_message_only() -> None:
    async with rig() as r:
        r.arm({"when": THIRD, "do": [{"drop": True}]})
        client, upstream = await r.open()
        upstream.send(said(1) + said(2) + said(3) + said(4))
        upstream.fin()
        assert await client.rest() == (said(1) + said(2) + said(4), "fin")


async def test_a_fragmented_message_is_dropped_whole_and_pings_between_pass() -> None:
    async with rig() as r:
        r.arm({"when": {"json": {"type": "delta"}}, "do": [{"drop": True}]})
        client, upstream = await r.open()
        ping = frame(b"p", PING)
        upstream.send(frame(b'{"type":', fin=False) + ping)
        await client.expect(ping)
        upstream.send(frame(b'"delta"}', CONT) + said(2))
        await client.expect(said(2))


# ---- what waits while the list runs -------------------------------------------------------------------


async def test_the_message_and_all_behind_it_wait_until_the_list_is_done() -> None:
    async with rig() as r:
        r.arm({"when": THIRD, "do": [KILL, {"process": "restart"}]})
        client, upstream = await r.open()
        upstream.send(said(1) + said(2) + said(3) + frame(b"", PING) + said(4))
        upstream.fin()
        await r.control.called.wait()
        await client.expect(said(1) + said(2))
        await round_trip(client, upstream)
        assert client.silent()
        assert done(r) == []
        r.control.go.set()
        assert await client.rest() == (said(3) + frame(b"", PING) + said(4), "fin")
        assert r.control.calls == [("kill", "f#1"), ("restart", "f#1")]
        assert done(r) == [(["process", "process"], "done")]


async def test_other_connections_end_at_once_while_the_list_runs() -> None:
    async with rig() as r:
        r.arm({"when": {**THIRD, "client": "a"}, "do": [KILL]})
        client, upstream = await r.open()
        other_client, other_upstream = await r.open(f"{SCOPE}?_pk=b.1")
        upstream.send(said(1) + said(2) + said(3))
        await r.control.called.wait()
        upstream.reset()
        other_upstream.reset()
        assert await other_client.rest() == (b"", "reset")
        await client.expect(said(1) + said(2))
        assert client.silent()
        r.control.go.set()
        assert await client.rest() == (said(3), "reset")


async def test_the_firing_is_written_before_anything_is_done() -> None:
    async with rig() as r:
        r.arm({"when": THIRD, "do": [KILL, {"cut": "reset"}]})
        client, upstream = await r.open()
        upstream.send(frame(b"hello") + said(1) + said(2) + said(3))
        await r.control.called.wait()
        assert [kind for kind, _, _ in r.journal.rows] == ["fault-planned", "fault-fired"]
        r.control.go.set()
        assert (await client.rest())[1] == "reset"
        planned, fired, finished = r.journal.rows
        assert planned == (
            "fault-planned",
            {"fault": "f"},
            {"leg": "client", "when": THIRD, "do": [{"process": "kill"}, {"cut": "reset"}]},
        )
        assert fired[1] == {"fault": "f", "token": "f#1", "connection": "a.1", "client": "a"}
        content = said(3)[2:]
        assert fired[2] == {
            "leg": "client",
            "direction": "down",
            "ordinal": 4,
            "offset": len(frame(b"hello") + said(1) + said(2)),
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        assert finished == (
            "fault-done",
            {"fault": "f", "token": "f#1"},
            {"did": ["process", "cut"], "outcome": "done"},
        )


async def test_a_list_that_takes_too_long_lets_the_connection_flow_again() -> None:
    async with rig() as r:
        r.arm({"when": THIRD, "do": [{"process": "term"}, KILL], "within_s": 0.1})
        client, upstream = await r.open()
        upstream.send(said(1) + said(2) + said(3) + said(4))
        await client.expect(said(1) + said(2) + said(3) + said(4))
        (_, _, payload) = await r.journal.seen("fault-done")
        assert payload == {"did": [], "outcome": "timeout", "reason": "not done within 0.1 s"}


async def test_process_control_that_fails_is_told_and_the_connection_flows_again() -> None:
    async with rig() as r:

        async def broken(action: str, token: str) -> None:
            raise TimeoutError("never got ready")

        r.proxy._process = broken
        r.arm({"when": THIRD, "do": [KILL]})
        client, upstream = await r.open()
        upstream.send(said(1) + said(2) + said(3))
        await client.expect(said(1) + said(2) + said(3))
        (_, _, payload) = await r.journal.seen("fault-done")
        assert payload == {"did": [], "outcome": "error", "reason": "TimeoutError: never got ready"}


async def test_healing_ends_a_list_early() -> None:
    async with rig() as r:
        r.arm({"when": THIRD, "do": [{"stall": {"for": 20}}, {"cut": "reset"}]})
        client, upstream = await r.open()
        upstream.send(said(1) + said(2) + said(3))
        await r.journal.seen("fault-fired")
        await r.proxy.heal(None)
        [(_, _, payload)] = r.journal.of("fault-done")
        assert payload == {"did": ["stall"], "outcome": "error", "reason": "healed before the list was done"}
        await client.expect(said(1) + said(2) + said(3))


# ---- counting and scopes --------------------------------------------------------------------------------


async def test_pings_do_not_disturb_the_count() -> None:
    async with rig() as r:
        r.arm({"when": {"direction": "down", "nth": 2}, "do": [{"drop": True}]})
        client, upstream = await r.open()
        ping = frame(b"", PING)
        upstream.send(ping + said(1) + ping + said(2) + ping + said(3))
        await client.expect(ping + said(1) + ping + ping + said(3))


async def test_a_fault_fires_as_often_as_it_may_on_each_new_connection() -> None:
    async with rig() as r:
        r.arm({"when": THIRD, "do": [{"drop": True}], "times": 2})
        for n, survivors in ((1, [1, 2, 4]), (2, [1, 2, 4]), (3, [1, 2, 3, 4])):
            client, upstream = await r.open(f"{SCOPE}?_pk=a.{n}")
            upstream.send(said(1) + said(2) + said(3) + said(4))
            upstream.fin()
            assert await client.rest() == (b"".join(map(said, survivors)), "fin")
        assert [ids["token"] for _, ids, _ in r.journal.of("fault-fired")] == ["f#1", "f#2"]


async def test_scopes_and_their_journals_are_apart() -> None:
    async with rig() as r:
        elsewhere: list[str] = []
        row = {"when": {"direction": "down"}, "do": [{"drop": True}]}
        r.arm(row)
        r.proxy.arm(faults(row), "/agents/a/two", journal=lambda kind, ids, payload: elsewhere.append(kind))
        two_client, two_upstream = await r.open("/agents/a/two?_pk=a.1")
        two_upstream.send(said(1) + said(2))
        await two_client.expect(said(2))
        assert elsewhere == ["fault-planned", "fault-fired", "fault-done"]
        assert [kind for kind, _, _ in r.journal.rows] == ["fault-planned"]
        await r.proxy.heal("/agents/a/two")
        client, upstream = await r.open()
        upstream.send(said(1) + said(2))
        await client.expect(said(2))
        assert len(r.journal.of("fault-fired")) == 1


async def test_healing_disarms_one_scope() -> None:
    async with rig() as r:
        r.arm({"when": {}, "do": [{"cut": "reset"}]})
        client, upstream = await r.open()
        await r.proxy.heal(SCOPE)
        upstream.send(said(1))
        await client.expect(said(1))
        assert r.journal.of("fault-fired") == []


async def test_healing_lifts_the_faults_of_one_scope() -> None:
    async with rig() as r:
        row = {"when": {"direction": "down"}, "do": [{"stall": {"for": 20}}]}
        r.arm(row)
        r.arm(row, scope="/agents/a/two")
        client, upstream = await r.open()
        two_client, two_upstream = await r.open("/agents/a/two")
        upstream.send(said(1))
        two_upstream.send(said(1))
        await r.journal.seen("fault-fired", 2)
        await r.proxy.heal(SCOPE)
        await client.expect(said(1))
        assert two_client.silent()
        await r.proxy.heal(None)
        await two_client.expect(said(1))


async def test_a_fault_may_hit_what_a_client_says() -> None:
    async with rig() as r:
        r.arm({"when": {"direction": "up", "json": {"type": "ask", "n": 2}}, "do": [{"drop": True}]})
        client, upstream = await r.open()
        client.send(asked(1) + asked(2) + asked(3))
        await upstream.expect(asked(1) + asked(3))
        (_, _, payload) = await r.journal.seen("fault-fired")
        assert (payload["direction"], payload["ordinal"]) == ("up", 2)
        assert payload["sha256"] == hashlib.sha256(b'{"type":"ask","n":2}').hexdigest()


async def test_what_the_carrier_cannot_do_is_refused() -> None:
    async with rig() as r:
        with pytest.raises(
            Unsupported, match=r"^fault `f` needs `do\.truncate\.fin`: not supported by the Web"
        ):
            r.arm({"do": [{"truncate": {}}]})
        assert r.journal.rows == []
    alone = EmbeddedProxy(("127.0.0.1", 1), journal=r.journal, process=None)
    with pytest.raises(
        Unsupported, match=r"needs `do\.process`: not supported by the WebSocket carrier without"
    ):
        alone.arm(faults({"do": [KILL]}), "")


# ---- delay ---------------------------------------------------------------------------------------------


async def test_a_delay_holds_one_direction_and_loses_nothing() -> None:
    async with rig() as r:
        r.arm({"when": THIRD, "do": [{"delay": {"for": 0.2}}]})
        client, upstream = await r.open()
        started = asyncio.get_running_loop().time()
        upstream.send(said(1) + said(2) + said(3) + said(4))
        upstream.fin()
        await client.expect(said(1) + said(2))
        await round_trip(client, upstream)
        assert asyncio.get_running_loop().time() - started < 0.2, "upwards nothing waits"
        assert await client.rest() == (said(3) + said(4), "fin")
        assert asyncio.get_running_loop().time() - started >= 0.2
        assert done(r) == [(["delay"], "done")]


# ---- when a connection opens -----------------------------------------------------------------------------

HEAD = f"GET {SCOPE}?_pk=%s HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"
REFUSED = {"when": {"client": "a", "connection": 2}, "do": [{"refuse": True}]}
BUSY = {"status": {"code": 503, "headers": {"Retry-After": "1"}, "body": "later"}}


async def knock(r: Rig, name: str) -> tuple[Peer, Peer]:
    """A client that has asked for a WebSocket."""
    client, upstream = await r.connect()
    client.send((HEAD % name).encode())
    return client, upstream


async def test_the_second_connection_of_a_client_is_refused() -> None:
    async with rig() as r:
        r.arm(REFUSED)
        for name in ("a.1", "b.1", "b.2"):
            client, upstream = await r.open(f"{SCOPE}?_pk={name}")
            await round_trip(client, upstream)
        client, upstream = await knock(r, "a.2")
        assert await client.rest() == (b"", "reset")
        assert await upstream.rest() == (b"", "reset")
        [(_, ids, payload)] = r.journal.of("fault-fired")
        assert ids == {"fault": "f", "token": "f#1", "connection": "a.2", "client": "a"}
        assert (payload["direction"], payload["ordinal"], payload["offset"]) == ("up", 0, 0)
        assert payload["size"] == len(HEAD % "a.2")
        client, upstream = await r.open(f"{SCOPE}?_pk=a.3")
        await round_trip(client, upstream)


async def test_an_upgrade_is_answered_with_a_status() -> None:
    async with rig() as r:
        r.arm({"when": {"client": "a"}, "do": [BUSY]})
        client, upstream = await knock(r, "a.1")
        got, ending = await client.rest()
        assert got.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"\r\nretry-after: 1\r\n" in got
        assert got.endswith(b"\r\n\r\nlater")
        assert ending == "fin"
        assert await upstream.rest() == (b"", "fin")
        assert done(r) == [(["status"], "done")]


async def test_the_process_dies_while_a_connection_opens() -> None:
    async with rig() as r:
        r.arm({"do": [KILL, {"refuse": True}]})
        client, upstream = await knock(r, "a.1")
        await r.control.called.wait()
        assert client.silent()
        assert upstream.silent()
        r.control.go.set()
        assert await client.rest() == (b"", "reset")


async def test_messages_do_not_set_off_what_belongs_to_the_opening() -> None:
    async with rig() as r:
        opened = await r.open()
        r.arm({"do": [BUSY]})
        await round_trip(*opened)
        plain, upstream = await r.connect()
        plain.send(f"GET {SCOPE}/get-messages HTTP/1.1\r\n\r\n".encode())
        await upstream.head()
        assert r.journal.of("fault-fired") == []


# ---- with a real WebSocket library -----------------------------------------------------------------------


async def echo(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(heartbeat=0.5)
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(message.data)
    return socket


@pytest.mark.parametrize("compress", [0, 15, 9])
@pytest.mark.parametrize("late", [False, True])
async def test_compressed_or_not_the_content_decides(compress: int, late: bool) -> None:
    app = web.Application()
    app.router.add_get(SCOPE, echo)
    async with rig() as r:
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        r.proxy._upstream = runner.addresses[0]
        fault = {"when": {"direction": "down", "json": {"n": 3}}, "do": [{"cut": {"close": 1011}}]}
        if not late:
            r.arm(fault)
        url = f"http://127.0.0.1:{r.proxy.port}{SCOPE}?_pk=a.1"
        async with ClientSession() as session, session.ws_connect(url, compress=compress) as socket:
            assert bool(socket.compress) is bool(compress)
            for n in range(3):
                text = json.dumps({"n": n, "text": "the same again " * 20})
                await socket.send_str(text)
                assert (await socket.receive(timeout=5)).data == text
            if late:
                r.arm(fault)
            large = json.dumps({"n": 3, "text": "x" * 1_000_000})
            await socket.send_str(large)
            message = await socket.receive(timeout=5)
            assert (message.type, message.data) == (WSMsgType.CLOSE, 1011)
        (_, _, payload) = await r.journal.seen("fault-fired")
        assert (payload["ordinal"], payload["size"]) == (4, len(large))
        await runner.cleanup()
