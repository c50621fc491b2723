"""A scripted model endpoint, the reference as a process and a client, as fixtures: for the coarse tests."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

DEADLINE_S = 15.0
Frame = dict[str, Any]


class FakeModel:
    """Each call says its `answers` entry, word by word; a dict is a delta as it stands, `...` holds until
    the caller hangs up. With `pace`, each word waits until the test releases it."""

    def __init__(self) -> None:
        self.answers: list[list[Any]] = []
        self.prompts: list[list[dict[str, Any]]] = []
        self.called = asyncio.Condition()
        self.hung_up = asyncio.Event()
        self.pace: asyncio.Semaphore | None = None
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The endpoint."""
        async with self.called:
            self.prompts.append((await request.json())["messages"])
            self.called.notify_all()
        response = web.StreamResponse()
        await response.prepare(request)
        for word in self.answers.pop(0):
            if word is ...:
                await self._hold(response)
                return response
            if self.pace is not None:
                await self.pace.acquire()
            event = {"choices": [{"delta": word if isinstance(word, dict) else {"content": word}}]}
            await response.write(f"data: {json.dumps(event)}\n\n".encode())
        await response.write(b'data: {"choices":[{"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
        return response

    async def calls(self, count: int) -> None:
        """Wait until it was called this often."""
        async with asyncio.timeout(DEADLINE_S), self.called:
            await self.called.wait_for(lambda: len(self.prompts) >= count)

    async def _hold(self, response: web.StreamResponse) -> None:
        try:
            while True:
                await response.write(b": waiting\n\n")
                await asyncio.sleep(0.005)
        except ConnectionError:
            self.hung_up.set()


class Outside:
    """The endpoint that tools report to; answers `status`."""

    def __init__(self) -> None:
        self.effects: list[dict[str, Any]] = []
        self.told = asyncio.Condition()
        self.status = 200

    async def handle(self, request: web.Request) -> web.Response:
        """The endpoint."""
        async with self.told:
            self.effects.append(await request.json())
            self.told.notify_all()
        return web.Response(status=self.status)

    async def happened(self, count: int) -> None:
        """Wait until it was told this often."""
        async with asyncio.timeout(DEADLINE_S), self.told:
            await self.told.wait_for(lambda: len(self.effects) >= count)


class Server:
    """`think-reference serve` as a process, restartable on the same folder."""

    def __init__(self, folder: Path, model_url: str, before: Sequence[str] = ()) -> None:
        self.command = [*before, sys.executable, "-m", "think_reference", "serve", "--port", "0"]
        self.command += ["--data-dir", str(folder), "--model-url", model_url]
        self.command += ["--effects-url", model_url + "/effects"]
        self._process: asyncio.subprocess.Process | None = None
        self.url = self.said = ""

    async def start(self, *more: str, stderr: int | None = None) -> None:
        """Start; returns when it serves."""
        self._process = await asyncio.create_subprocess_exec(
            *self.command, *more, stdout=asyncio.subprocess.PIPE, stderr=stderr
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            line = (await self._process.stdout.readline()).decode()
        self.url = line.split()[3]

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._process is not None
        return self._process.pid

    async def end(self, how: signal.Signals) -> int:
        """Send the signal; the exit code."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(how)
        async with asyncio.timeout(DEADLINE_S):
            _, said = await self._process.communicate()
        self.said = (said or b"").decode()
        code = self._process.returncode
        assert code is not None
        return code


class Client:
    """One chat socket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.frames: list[Frame] = []

    async def send(self, kind: str, **fields: Any) -> None:
        """Send one frame."""
        await self.socket.send_json({"type": kind, **fields})

    async def ask(self, request_id: str, *messages: Any) -> None:
        """Send a chat request."""
        body = json.dumps({"messages": messages})
        await self.send("cf_agent_use_chat_request", id=request_id, init={"method": "POST", "body": body})

    async def until(self, seen: Callable[[Frame], bool]) -> Frame:
        """The first frame from now on for which this holds."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                self.frames.append(await self.socket.receive_json())
                if seen(self.frames[-1]):
                    return self.frames[-1]

    @property
    def text(self) -> str:
        """The text of every chunk that came."""
        bodies = [json.loads(f["body"]) for f in self.frames if "seq" in f]
        return "".join(b["delta"] for b in bodies if b["type"] == "text-delta")


@pytest.fixture
async def outside() -> Outside:
    return Outside()


@pytest.fixture
async def fake_model(outside: Outside) -> AsyncIterator[FakeModel]:
    model = FakeModel()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", model.handle)
    app.router.add_post("/v1/effects", outside.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    model.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield model
    await runner.cleanup()


@pytest.fixture
async def server(fake_model: FakeModel, tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(tmp_path / "data", fake_model.url)
    await server.start()
    yield server
    await server.end(signal.SIGKILL)


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield session


@pytest.fixture
async def dial(http: aiohttp.ClientSession) -> AsyncIterator[Callable[[str], Any]]:
    sockets: list[aiohttp.ClientWebSocketResponse] = []

    async def connect(url: str, name: str = "x") -> Client:
        address = f"{url}/agents/conformance-agent/{name}?_pk=a.1"
        sockets.append(await http.ws_connect(address, max_msg_size=0))
        return Client(sockets[-1])

    yield connect
    for socket in sockets:
        await socket.close()
