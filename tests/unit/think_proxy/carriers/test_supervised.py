"""The carrier mitmproxy on real sockets: the same faults, the same proof, and no process left behind."""

from __future__ import annotations

import asyncio
import hashlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest

from proxy_rig import CLOSE, DEADLINE_S, SCOPE, Peer, Rig, asked, faults, frame, opening, rig, said
from think_proxy.carriers import supervised
from think_proxy.carriers.abilities import EMBEDDED, MITMPROXY
from think_proxy.carriers.messages import MESSAGE_CAP
from think_proxy.carriers.supervised import CarrierBroke, MitmProxy, Unavailable
from think_proxy.engine import Unsupported
from think_proxy.plan import Leg

MODEL_SCOPE = "[[case/"
BODY = b'{"messages":["[[case/t1]]"]}'
POST = b"POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
EVENTS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"
)
SLOW = {"code": 429, "headers": {"Retry-After": "3"}, "body": "wait"}

by_mitmproxy = pytest.mark.parametrize("carrier", [MITMPROXY])
by_both = pytest.mark.parametrize("carrier", [EMBEDDED, MITMPROXY])


@asynccontextmanager
async def carried(*rows: dict[str, Any], leg: Leg = "client", carrier: str = MITMPROXY) -> AsyncIterator[Rig]:
    """A rig with these faults armed."""
    async with rig(leg, carrier=carrier) as r:
        r.arm(*rows, scope=SCOPE if leg == "client" else MODEL_SCOPE)
        yield r


async def asks(r: Rig) -> tuple[Peer, Peer]:
    """A client whose request has reached the upstream."""
    client, upstream = await r.connect(POST)
    await upstream.expect(POST)
    return client, upstream


def fired(r: Rig) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """What proves that faults fired; where in the bytes, only who sees them knows."""
    rows = r.journal.of("fault-fired")
    return [(ids, {k: v for k, v in payload.items() if k != "offset"}) for _, ids, payload in rows]


# ---- WebSockets ---------------------------------------------------------------------------------


@by_both
async def test_a_message_is_lost_and_the_proof_says_which(carrier: str) -> None:
    rows = (
        {"id": "d", "when": {"client": "a", "direction": "down", "json": {"n": 2}}, "do": [{"drop": True}]},
        {"id": "u", "when": {"direction": "up", "nth": 2}, "do": [{"drop": True}]},
    )
    async with carried(*rows, carrier=carrier) as r:
        client, upstream = await r.open()
        upstream.send(said(1) + said(2) + said(3))
        await client.expect(said(1) + said(3))
        client.send(asked(1) + asked(2) + asked(3))
        assert [await upstream.frame(), await upstream.frame()] == [
            b'{"type":"ask","n":1}',
            b'{"type":"ask","n":3}',
        ]
        place = {"connection": "a.1", "client": "a"}
        expected = [
            ("d", "down", b'{"type":"delta","n":2}'),
            ("u", "up", b'{"type":"ask","n":2}'),
        ]
        assert fired(r) == [
            (
                {"fault": fault, "token": f"{fault}#1", **place},
                {
                    "leg": "client",
                    "direction": direction,
                    "ordinal": 2,
                    "size": len(content),
                    "sha256": hashlib.sha256(content).hexdigest(),
                },
            )
            for fault, direction, content in expected
        ]
        await r.journal.seen("fault-done", 2)
        assert [payload for _, _, payload in r.journal.of("fault-done")] == [
            {"did": ["drop"], "outcome": "done"}
        ] * 2


@by_both
async def test_a_stall_holds_both_directions_and_loses_nothing(carrier: str) -> None:
    stall = {"when": {"direction": "down", "nth": 2}, "do": [{"stall": {"for": 60}}]}
    async with carried(stall, carrier=carrier) as r:
        client, upstream = await r.open()
        upstream.send(said(1) + said(2) + said(3))
        await client.expect(said(1))
        await r.journal.seen("fault-fired")
        client.send(asked(1))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(upstream.reader.read(1))), 0.2)
        assert client.silent()
        healing = asyncio.get_running_loop().time()
        await r.proxy.heal(SCOPE)
        await client.expect(said(2) + said(3))
        assert asyncio.get_running_loop().time() - healing < DEADLINE_S


async def test_who_floods_a_stalled_connection_feels_it() -> None:
    stall = {"when": {"direction": "down", "nth": 1}, "do": [{"stall": {"for": 20}}]}
    async with carried(stall) as r:
        client, upstream = await r.open()
        many, large = 48, frame(b"x" * 1024 * 1024)
        upstream.send(said(1) + large * many)
        await r.journal.seen("fault-fired")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(upstream.writer.drain(), 1)
        await r.proxy.heal(SCOPE)
        async with asyncio.timeout(30):
            await client.reader.readexactly(len(said(1)) + many * len(large))


@by_both
async def test_an_answer_instead_of_a_websocket(carrier: str) -> None:
    async with carried({"when": {"client": "a"}, "do": [{"status": SLOW}]}, carrier=carrier) as r:
        client = await r.client(opening(f"{SCOPE}?_pk=a.1"))
        head = (
            b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: text/plain; charset=utf-8\r\nretry-after: 3\r\n"
            b"content-length: 4\r\nconnection: close\r\n\r\n"
        )
        assert await client.rest() == (head + b"wait", "fin")
        [(_, payload)] = fired(r)
        assert (payload["ordinal"], payload["size"]) == (0, len(opening(f"{SCOPE}?_pk=a.1")))
        if carrier == MITMPROXY:  # which does not even dial
            assert r.accepted.empty()


async def test_an_end_without_a_close_is_noted_where_it_concerns_a_case() -> None:
    async with rig(carrier=MITMPROXY) as r:
        case = type(r.journal)()
        r.proxy.arm([], SCOPE, journal=case)
        client, upstream = await r.open(f"{SCOPE}?_pk=a.1")
        upstream.send(frame(b"\x03\xe9", CLOSE))
        assert await client.rest() == (frame(b"\x03\xe9", CLOSE), "fin")
        client, upstream = await r.open("/agents/a/other?_pk=a.2")
        upstream.reset()
        assert await client.rest() == (frame(b"\x03\xe8", CLOSE), "fin")
        client, upstream = await r.open(f"{SCOPE}?_pk=a.3")
        upstream.reset()
        assert await client.rest() == (frame(b"\x03\xe8", CLOSE), "fin")
        why = "the carrier told a client a close that the target did not say"
        await case.seen("info")
        assert case.rows == [("info", {"connection": "a.3", "client": "a"}, {"reason": why})]


async def test_what_is_too_large_passes_unshown_and_counts() -> None:
    second = {"when": {"direction": "down", "nth": 2}, "do": [{"drop": True}]}
    async with carried(second) as r:
        client, upstream = await r.open()
        large = frame(b"x" * (MESSAGE_CAP + 1))
        upstream.send(large + said(1) + said(2) + said(3))
        await client.expect(large + said(1) + said(3))
        assert fired(r)[0][1]["ordinal"] == 3


# ---- HTTP ---------------------------------------------------------------------------------------


@by_mitmproxy
async def test_events_pass_as_they_come(carrier: str) -> None:
    async with rig("model", carrier=carrier) as r:
        client, upstream = await asks(r)
        upstream.send(EVENTS[: EVENTS.index(b"9\r\ndata: 2")])
        await client.expect(EVENTS[: EVENTS.index(b"9\r\ndata: 2")])
        upstream.reset()
        assert await client.rest() == (b"", "fin")


@by_both
async def test_an_answer_instead_of_the_models(carrier: str) -> None:
    row = {"leg": "model", "when": {"direction": "up"}, "do": [{"status": SLOW}]}
    async with carried(row, leg="model", carrier=carrier) as r:
        client = await r.client(POST)
        got, how = await client.rest()
        assert (got.splitlines()[0], got[-4:], how) == (b"HTTP/1.1 429 Too Many Requests", b"wait", "fin")
        [(ids, payload)] = fired(r)
        assert ids == {"fault": "f", "token": "f#1"}
        assert (payload["exchange"], payload["ordinal"], payload["size"]) == (1, 1, len(BODY))
        assert payload["sha256"] == hashlib.sha256(BODY).hexdigest()


@by_both
async def test_a_request_may_end_without_a_byte(carrier: str) -> None:
    row = {"leg": "model", "when": {"connection": 2}, "do": [{"cut": "fin"}]}
    row["when"] |= {"direction": "up"}
    async with carried(row, leg="model", carrier=carrier) as r:
        client, upstream = await asks(r)
        upstream.send(EVENTS)
        await client.expect(EVENTS)
        second = await r.client(POST)
        assert await second.rest() == (b"", "fin")
        assert len(fired(r)) == 1


@by_both
async def test_a_caller_that_hangs_up_takes_its_request_back(carrier: str) -> None:
    late = {"leg": "model", "when": {"direction": "up", "connection": 2}, "do": [{"delay": {"for": 1}}]}
    async with carried(late, leg="model", carrier=carrier) as r:
        client, upstream = await asks(r)
        upstream.send(EVENTS)
        await client.expect(EVENTS)
        client.send(POST)
        await r.journal.seen("fault-fired")
        client.fin()
        assert await client.rest() == (b"", "fin")
        assert await upstream.rest() == (b"", "fin")
        await r.journal.seen("fault-done")


# ---- what it does not do exactly ----------------------------------------------------------------

REFUSED: dict[str, tuple[Leg, dict[str, Any], str]] = {
    "a reset": ("client", {"do": [{"cut": "reset"}]}, "do.cut.reset"),
    "an end without a close": ("client", {"do": [{"cut": "fin"}]}, "do.cut.fin"),
    "a close that only one side hears": ("client", {"do": [{"cut": {"close": 1012}}]}, "do.cut.close"),
    "a black hole": ("client", {"do": [{"cut": "blackhole"}]}, "do.cut.blackhole"),
    "one direction": (
        "client",
        {"when": {"direction": "down"}, "do": [{"stall": {"for": 1, "direction": "down"}}]},
        "do.stall.down at down",
    ),
    "a late message": (
        "client",
        {"when": {"nth": 2}, "do": [{"delay": {"for": 1}}]},
        "do.delay at down or up",
    ),
    "what comes behind": ("client", {"do": [{"stall": {"for": 1}}], "after": True}, "after"),
    "a process": ("client", {"do": [{"process": "kill"}]}, "do.process"),
    "events": ("model", {"when": {"direction": "down"}, "do": [{"cut": "fin"}]}, "do.cut.fin at down"),
    "bytes": ("model", {"do": [{"truncate": {"keep": 3}}]}, "do.truncate.fin"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_refuses(what: str) -> None:
    leg, row, need = REFUSED[what]
    proxy = MitmProxy(("127.0.0.1", 9), journal=lambda *_: pytest.fail("armed"), process=None, leg=leg)
    with pytest.raises(Unsupported, match=r"^fault `f` needs `") as refused:
        proxy.arm(faults(row, leg=leg), "")
    assert refused.value.need == need
    assert "mitmproxy" in str(refused.value)


# ---- its process --------------------------------------------------------------------------------


def lone(port: int = 0) -> MitmProxy:
    return MitmProxy(("127.0.0.1", 9), journal=lambda *_: None, process=None, port=port)


async def test_without_mitmproxy_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    install = "install it with: pip install 'think-conformance[mitm]'"
    monkeypatch.setattr(supervised, "version", missing)
    with pytest.raises(Unavailable, match=r"^the carrier mitmproxy is not installed: ") as absent:
        await lone().start()
    assert str(absent.value).endswith(install)
    monkeypatch.setattr(supervised, "version", lambda _: "11.01")
    with pytest.raises(Unavailable, match=r"^mitmproxy 11\.01 is installed, the carrier needs 11\.0: "):
        await lone().start()


async def test_a_taken_port_is_told_as_everywhere() -> None:
    async with rig(carrier=MITMPROXY) as r:
        with pytest.raises(OSError, match="Address already in use"):
            await lone(r.proxy.port).start()


async def test_a_process_that_never_says_that_it_listens_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "START_S", 0.01)
    proxy = lone()
    with pytest.raises(CarrierBroke, match=r"^mitmproxy did not start within 0\.01 s"):
        await proxy.start()
    assert proxy._child is None or proxy._child.returncode is not None


async def test_what_dies_is_told_and_arms_nothing_more() -> None:
    async with rig(carrier=MITMPROXY) as r:
        assert isinstance(r.proxy, MitmProxy)
        client, upstream = await r.open()
        upstream.send(said(1))
        await client.expect(said(1))
        assert r.proxy._child is not None
        r.proxy._child.kill()
        async with asyncio.timeout(DEADLINE_S):
            assert await r.proxy.lost() == "the carrier mitmproxy broke: its process ended"
        with pytest.raises(CarrierBroke):
            r.arm({"when": {"direction": "down"}, "do": [{"drop": True}]})
        with pytest.raises(CarrierBroke):
            await r.proxy.heal(None)


async def test_it_closes_while_it_holds() -> None:
    async with carried({"when": {"direction": "down"}, "do": [{"stall": {"for": 20}}]}) as r:
        assert isinstance(r.proxy, MitmProxy)
        client, upstream = await r.open()
        upstream.send(said(1))
        await r.journal.seen("fault-fired")
        async with asyncio.timeout(DEADLINE_S):
            await r.proxy.close()
        assert r.proxy._child is not None
        assert r.proxy._child.returncode == 0
        assert (await client.rest())[0] in (b"", frame(b"\x03\xe8", CLOSE))


OWNER = """
import asyncio, os
from think_proxy.carriers.supervised import MitmProxy
async def own():
    proxy = MitmProxy(("127.0.0.1", 9), journal=print, process=None)
    await proxy.start()
    print(proxy._child.pid, flush=True)
    await asyncio.get_running_loop().create_future()
asyncio.run(own())
"""


def test_it_ends_with_its_owner() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        number = os.pidfd_open(pid)
        try:
            owner.kill()
            ended, _, _ = select.select([number], [], [], DEADLINE_S)
            if not ended:
                signal.pidfd_send_signal(number, signal.SIGKILL)
            assert ended, "the process outlives its owner"
        finally:
            os.close(number)
