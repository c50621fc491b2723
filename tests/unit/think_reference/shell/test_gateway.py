"""The front in this process: what cannot be seen, or not in time, from outside a server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import WSMsgType, web

from think_reference.agent import Think, callable_by_clients
from think_reference.core.application import Storage
from think_reference.core.effects import InsertMessage, PutTurn, Write
from think_reference.core.turn import Turn
from think_reference.shell import driver, host, outbox
from think_reference.shell.driver import Driver
from think_reference.shell.gateway import Gateway
from think_reference.shell.host import Host
from think_reference.shell.journal import Journal, JournalError, path_of
from think_reference.shell.model import Model


@asynccontextmanager
async def front(folder: Path, kind: type[Think] = Think, **more: float) -> AsyncIterator[str]:
    """A front in this process; the URL of one agent behind it."""
    model = Model("http://127.0.0.1:1/v1")
    host = Host({"MyAgent": kind}, folder, model, **more)
    host.restore()
    runner = web.AppRunner(Gateway(host).application(), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/agents/my-agent/x"
    finally:
        host.stop()
        await runner.cleanup()
        await model.close()


async def test_an_overflow_closes_with_1013(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, http: aiohttp.ClientSession
) -> None:
    monkeypatch.setattr(outbox, "LIMIT", 100)
    async with front(tmp_path) as url, http.ws_connect(url) as chat:
        message = await chat.receive(5)
    assert (message.type, message.data, message.extra) == (WSMsgType.CLOSE, 1013, "too slow")


async def test_a_journal_that_cannot_be_written_drops_its_agent_alone_and_shows_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    http: aiohttp.ClientSession,
) -> None:
    broken = [path_of(tmp_path, "my-agent", "x")]
    write = Journal.write

    def failing(self: Journal, writes: Iterable[Write]) -> None:
        if self.path in broken:
            raise JournalError("disk full")
        write(self, writes)

    monkeypatch.setattr(Journal, "write", failing)
    async with front(tmp_path) as url, http.ws_connect(url) as chat, http.ws_connect(url + "2") as other:
        await chat.send_json({"type": "cf_agent_state", "state": 1})
        seen = [message async for message in chat]
        assert (chat.close_code, "cf_agent_state" in str(seen)) == (1013, False)
        await other.send_json({"type": "cf_agent_state", "state": 1})
        await other.send_json({"type": "cf_agent_stream_resume_request"})
        while (await other.receive_json(timeout=5))["type"] != "cf_agent_stream_resume_none":
            pass
        broken.clear()
        async with http.ws_connect(url) as back:
            assert (await back.receive_json(timeout=5))["type"] == "cf_agent_chat_messages"
    assert caplog.messages == ["disk full"]


async def test_what_is_owed_is_tried_again_until_the_journal_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, http: aiohttp.ClientSession
) -> None:
    broken: list[bool] = []
    tried, opened = asyncio.Semaphore(0), asyncio.Event()
    init, write = Journal.__init__, Journal.write

    def opening(self: Journal, path: Path, kind: str, name: str, *, durable: bool = False) -> None:
        if broken:
            tried.release()
            raise JournalError("disk full")
        init(self, path, kind, name, durable=durable)
        opened.set()

    def writing(self: Journal, writes: Iterable[Write]) -> None:
        if broken:
            raise JournalError("disk full")
        write(self, writes)

    monkeypatch.setattr(Journal, "__init__", opening)
    monkeypatch.setattr(Journal, "write", writing)
    for module in (driver, host):
        monkeypatch.setattr(module, "RETRY_S", 0.01)
    async with front(tmp_path) as url, http.ws_connect(url) as chat:
        opened.clear()
        broken.append(True)
        await chat.send_json({"type": "cf_agent_state", "state": 1})
        async with asyncio.timeout(5):
            for _ in range(3):
                await tried.acquire()
            broken.clear()
            await opened.wait()  # nobody is connected


class Odd(Think):
    """Has a method whose result is no JSON, which is its own fault."""

    @callable_by_clients
    def odd(self) -> object:
        """Cannot be answered."""
        return object()


async def test_an_agent_that_fails_is_dropped_alone_and_comes_back_as_it_is_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, http: aiohttp.ClientSession
) -> None:
    async with (
        front(tmp_path, Odd) as url,
        http.ws_connect(url + "2") as other,
        http.ws_connect(url) as bystander,
    ):
        async with http.ws_connect(url) as chat:
            await chat.send_json({"type": "cf_agent_state", "state": 1})
            await chat.send_json({"type": "rpc", "id": "x", "method": "odd", "args": []})
            assert await ending(chat) == await ending(bystander) == WSMsgType.CLOSED, "no close frame"
        assert caplog.messages == ["my-agent/x is dropped"]
        async with http.ws_connect(url) as chat:
            greeting = [await chat.receive_json(timeout=5) for _ in range(3)]
        assert greeting[2] == {"type": "cf_agent_state", "state": 1}
        await other.send_json({"type": "cf_agent_stream_resume_request", "probeId": "p"})
        while (await other.receive_json(timeout=5))["type"] != "cf_agent_stream_resume_none":
            pass


async def ending(chat: aiohttp.ClientWebSocketResponse) -> WSMsgType:
    """How the connection ends: CLOSE is a close frame, CLOSED is none."""
    while (message := await chat.receive(5)).type is WSMsgType.TEXT:
        pass
    return message.type


UNREADABLE = {"id": "a1", "role": "assistant", "parts": [{"type": "dynamic-tool", "toolCallId": "c"}]}


def keep(folder: Path, name: str, *writes: Write) -> None:
    """Leave these rows behind."""
    journal = Journal(path_of(folder, "my-agent", name), "my-agent", name)
    journal.write(writes)
    journal.close()


async def test_an_agent_whose_rows_cannot_be_loaded_is_set_aside_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, http: aiohttp.ClientSession
) -> None:
    waiting = PutTurn(Turn(id="r1", root="r1", order=0))
    keep(tmp_path, "x", waiting, InsertMessage(0, UNREADABLE))
    keep(tmp_path, "y", waiting)
    async with front(tmp_path) as url:
        why = "my-agent/x cannot be loaded: KeyError('toolName')"
        assert caplog.messages == [why]
        assert not caplog.records[0].exc_info, "one line"
        async with http.get(url) as answer:
            assert (answer.status, await answer.text()) == (500, why)
        async with http.ws_connect(url[:-1] + "y") as chat:
            assert (await chat.receive_json(timeout=5))["type"].startswith("cf_agent_")


def noting(told: asyncio.Event, emit: Callable[[logging.LogRecord], None]) -> Callable[..., None]:
    def noted(record: logging.LogRecord) -> None:
        emit(record)
        told.set()

    return noted


async def test_a_heartbeat_that_finds_unloadable_rows_ends_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    http: aiohttp.ClientSession,
) -> None:
    class Sleeper(Think):
        """Wakes at once; cannot be made again after it was dropped."""

        keep_alive_interval_ms = 0
        prepare_delay_ms = 60_000

        def __init__(self, storage: Storage) -> None:
            super().__init__(storage)
            if storage.get("gone"):
                raise RuntimeError("no way back")

        @callable_by_clients
        def leave(self) -> None:
            self.storage.put("gone", True)

        @callable_by_clients
        def drop(self) -> None:
            self.abort()

    told = asyncio.Event()
    monkeypatch.setattr(caplog.handler, "emit", noting(told, caplog.handler.emit))
    async with front(tmp_path, Sleeper) as url, http.ws_connect(url) as chat:
        body = '{"messages":[]}'
        init = {"method": "POST", "body": body}
        await chat.send_json({"type": "cf_agent_use_chat_request", "id": "r1", "init": init})
        for method in ("leave", "drop"):
            await chat.send_json({"type": "rpc", "id": method, "method": method, "args": []})
        await asyncio.wait_for(told.wait(), 5)
    assert caplog.messages == ["my-agent/x cannot be loaded: RuntimeError('no way back')"]


async def test_an_idle_agent_leaves_memory_and_its_sockets_find_it_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, http: aiohttp.ClientSession
) -> None:
    closed = asyncio.Event()
    close = Journal.close

    def noted(self: Journal) -> None:
        close(self)
        closed.set()

    monkeypatch.setattr(Journal, "close", noted)
    async with front(tmp_path, unload_s=0.05) as url:
        async with http.ws_connect(url) as chat, http.ws_connect(url) as other:
            greetings = [await chat.receive_json(timeout=5) for _ in range(3)]
            await chat.send_json({"type": "cf_agent_state", "state": 1})
            for n in range(2):
                closed.clear()
                await asyncio.wait_for(closed.wait(), 5)
                await other.send_json({"type": "cf_agent_stream_resume_request", "probeId": str(n)})
                while "probeId" not in (told := await other.receive_json(timeout=5)):
                    greetings.append(told)
                assert told == {"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": str(n)}
            assert len(greetings) == 3 + 4, "nobody is greeted a second time; the other heard of the state"
        closed.clear()
        await asyncio.wait_for(closed.wait(), 5)
        async with http.ws_connect(url) as chat:
            greeting = [await chat.receive_json(timeout=5) for _ in range(3)]
        assert greeting[2] == {"type": "cf_agent_state", "state": 1}


async def test_an_agent_with_an_open_turn_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, http: aiohttp.ClientSession
) -> None:
    class Slow(Think):
        """Prepares a turn for longer than any test."""

        prepare_delay_ms = 600_000

    swept, closed = asyncio.Semaphore(0), asyncio.Event()
    doze = Driver.doze

    def noted(self: Driver) -> None:
        doze(self)
        swept.release()
        if not self.loaded:
            closed.set()

    monkeypatch.setattr(Driver, "doze", noted)
    async with front(tmp_path, Slow, unload_s=0.02) as url, http.ws_connect(url) as chat:
        init = {"method": "POST", "body": '{"messages":[]}'}
        await chat.send_json({"type": "cf_agent_use_chat_request", "id": "r1", "init": init})
        await chat.send_json({"type": "cf_agent_stream_resume_request", "probeId": "p"})
        while (await chat.receive_json(timeout=5)).get("probeId") != "p":
            pass
        async with asyncio.timeout(5):
            for _ in range(4):
                await swept.acquire()
        assert not closed.is_set()


async def test_an_agent_that_cannot_be_loaded_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, http: aiohttp.ClientSession
) -> None:
    """Gone between the request and its upgrade: told on the socket, by an error status before."""
    agent, calls = Host.agent, iter([True, False, False])

    def failing(self: Host, kind: str, name: str) -> Driver:
        if next(calls):
            return agent(self, kind, name)
        raise JournalError("no such disk")

    monkeypatch.setattr(Host, "agent", failing)
    async with front(tmp_path) as url:
        async with http.ws_connect(url) as chat:
            message = await chat.receive(5)
        async with http.get(url) as answer:
            assert (answer.status, await answer.text()) == (503, "no such disk")
    assert (message.type, message.data, message.extra) == (WSMsgType.CLOSE, 1011, "no such disk")
