"""Targets that run already: reached with tokens, over TLS, at paths of their own, through the kit's proxy."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from certificates import CA, server_side
from think_conformance.errors import UsageError
from think_conformance.shell.client import Client
from think_conformance.shell.instance import Instance
from think_conformance.shell.process import TargetNotReady
from think_conformance.shell.recorder import Recorder
from think_conformance.targets.contract import load_target
from think_proxy.engine import Unsupported
from think_proxy.plan import Fault

AUTHORITY = f'tls = {{ca = "{CA}"}}'


class Service:
    """Echoes at one path, to whoever shows the token; remembers what it was asked."""

    def __init__(self, path: str, header: str, query: str) -> None:
        self._path = path
        self._token = (header, query)
        self.hosts: list[str] = []

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.hosts.append(request.host)
        shown = (request.headers.get("Authorization", ""), request.query.get("token", ""))
        if shown != self._token:
            raise web.HTTPUnauthorized
        if request.path == f"{self._path}/get-messages":
            return web.json_response([{"id": "m1", "role": "user", "parts": []}])
        if request.path not in (self._path, self._path.replace("chat-1", "hello")):
            raise web.HTTPNotFound
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        async for message in ws:
            await ws.send_str(message.data)
        return ws


@asynccontextmanager
async def serving(service: Service, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Host and port of the service while it runs."""
    app = web.Application()
    app.router.add_get("/{any:.*}", service.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    yield f"localhost:{runner.addresses[0][1]}"
    await runner.cleanup()


def instance(folder: Path, url: str, keys: str = "") -> Instance:
    path = folder / "target.toml"
    path.write_text(f'[target]\nname = "t"\nagent = "a"\nurl = "{url}"\n{keys}\n')
    return Instance(load_target(str(path)), folder / "data", folder / "log", {}, (), 0)


DOORS: dict[str, tuple[str, str, str, str, str]] = {
    # scheme, keys of the target file, path, header and query that the service demands
    "plain": ("ws", "", "/agents/a/chat-1", "", ""),
    "token in a header": (
        "ws",
        'headers = {Authorization = "Bearer x"}',
        "/agents/a/chat-1",
        "Bearer x",
        "",
    ),
    "token in the query": ("http", 'query = {token = "x y"}', "/agents/a/chat-1", "", "x y"),
    "path of its own": ("ws", 'path = "/v1/{agent}/of/{name}"', "/v1/a/of/chat-1", "", ""),
    "our authority": ("wss", AUTHORITY, "/agents/a/chat-1", "", ""),
    "no verification": ("https", "tls = {verify = false}", "/agents/a/chat-1", "", ""),
}


@pytest.mark.parametrize("door", DOORS)
async def test_a_service_is_reached_through_the_proxy_as_its_file_says(door: str, tmp_path: Path) -> None:
    scheme, keys, path, header, query = DOORS[door]
    service = Service(path, header, query)
    tls = server_side() if scheme in ("wss", "https") else None
    async with serving(service, tls) as where:
        one = instance(tmp_path, f"{scheme}://{where}", keys)
        await one.start()
        recorder = Recorder(None)
        client = Client("a", lambda: one.endpoint("chat-1"), recorder, lambda: one.epoch)
        try:
            assert f":{one.proxy.port}/" in one.endpoint("chat-1").url
            assert await client.connect(follow=False), client.refusal
            await client.send_text('{"n":1}')
            assert await recorder.wait_for(lambda r: r.kind == "frame-in", 5)
            messages = await client.get_messages()
            assert messages is not None, client.refusal
            assert messages[0]["id"] == "m1"
            await client.close()
        finally:
            await one.stop()
        assert set(service.hosts) == {where}


@pytest.mark.parametrize("scheme", ["ws", "wss"])
async def test_a_fault_strikes_the_connection_to_a_service(scheme: str, tmp_path: Path) -> None:
    service = Service("/agents/a/chat-1", "", "")
    async with serving(service, server_side() if scheme == "wss" else None) as where:
        one = instance(tmp_path, f"{scheme}://{where}", AUTHORITY)
        await one.start()
        recorder = Recorder(None)
        client = Client("a", lambda: one.endpoint("chat-1"), recorder, lambda: one.epoch)
        try:
            row = {
                "id": "cut",
                "leg": "client",
                "when": {"direction": "down", "json": {"n": 2}},
                "do": [{"cut": "reset"}],
            }
            one.proxy.arm(msgspec.convert([row], list[Fault]), one.scope("chat-1"))
            assert await client.connect(follow=False), client.refusal
            for n in (1, 2):
                await client.send_text(f'{{"n":{n}}}')
            closed = await recorder.wait_for(lambda r: r.kind == "close", 5)
            assert closed is not None
            assert closed.payload["code"] == 1006
            received = [r.payload["frame"] for r in recorder.records if r.kind == "frame-in"]
            assert received == [{"n": 1}]
            kill = msgspec.convert([{**row, "id": "kill", "do": [{"process": "kill"}]}], list[Fault])
            with pytest.raises(Unsupported):
                one.proxy.arm(kill, one.scope("chat-1"))
        finally:
            await client.close()
            await one.stop()


REFUSED: dict[str, tuple[str, str, str]] = {
    # scheme, keys of the target file, what is told
    "no token": ("ws", "", r"opens no WebSocket at http://localhost:\d+/agents/a/NAME \(HTTP status 401\)"),
    "a stranger's certificate": ("wss", "", "certificate verify failed"),
    "no TLS at all": (
        "ws",
        AUTHORITY,
        "a target file says where it is: `url`, `agent`, `path`, `headers`, `query` and `tls`",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
async def test_a_service_that_lets_nobody_in_says_why(why: str, tmp_path: Path) -> None:
    scheme, keys, told = REFUSED[why]
    service = Service("/agents/a/chat-1", "Bearer x", "")
    tls = None if why == "no token" else server_side()
    async with serving(service, tls) as where:
        one = instance(tmp_path, f"{scheme}://{where}", keys)
        with pytest.raises(TargetNotReady, match=told):
            await one.start()


async def test_a_service_that_is_not_there_says_so(tmp_path: Path) -> None:
    async with serving(Service("", "", "")) as where:
        one = instance(tmp_path, f"ws://{where}")
    with pytest.raises(TargetNotReady, match="Cannot connect to host localhost"):
        await one.start()


def test_an_authority_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.pem cannot be used"):
        instance(tmp_path, "wss://localhost:1", 'tls = {ca = "none.pem"}')


async def test_a_service_is_never_started_ended_or_thought_dead(tmp_path: Path) -> None:
    one: Any = instance(tmp_path, "ws://localhost:1")
    await one.ensure_running()
    assert (one.alive, one.epoch) == (True, 1)
    with pytest.raises(AssertionError, match="out of reach"):
        await one.perform("kill")
