"""The front in this process: what cannot be seen, or not in time, from outside a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import WSMsgType, web

from think_conformance.wire.codec import loads
from think_reference.agent import Think
from think_reference.core.effects import Write
from think_reference.shell import outbox
from think_reference.shell.gateway import Gateway
from think_reference.shell.host import Host
from think_reference.shell.journal import Journal, JournalError
from think_reference.shell.model import Model


@asynccontextmanager
async def front(folder: Path, fatal: Callable[[BaseException], None]) -> AsyncIterator[str]:
    model = Model("http://127.0.0.1:1/v1")
    host = Host({"MyAgent": Think}, folder, model, fatal)
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
    async with front(tmp_path, pytest.fail) as url, http.ws_connect(url) as chat:
        message = await chat.receive(5)
    assert (message.type, message.data, message.extra) == (WSMsgType.CLOSE, 1013, "too slow")


async def test_a_journal_that_cannot_be_written_ends_the_process_and_shows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, http: aiohttp.ClientSession
) -> None:
    errors: list[BaseException] = []
    break_it: list[bool] = []
    write = Journal.write

    def failing(self: Journal, writes: Iterable[Write]) -> None:
        if break_it:
            raise JournalError("disk full")
        write(self, writes)

    monkeypatch.setattr(Journal, "write", failing)
    async with front(tmp_path, errors.append) as url, http.ws_connect(url, autoping=False) as chat:
        greeting = [loads((await chat.receive(5)).data)["type"] for _ in range(3)]
        assert "cf_agent_identity" in greeting
        break_it.append(True)
        await chat.send_json({"type": "cf_agent_state", "state": 1})
        await chat.send_json({"type": "cf_agent_stream_resume_request", "probeId": "p"})
        for _ in range(2):  # an answer to the probe would stand between the two pongs
            await chat.ping()
            assert (await chat.receive(5)).type == WSMsgType.PONG
    assert [str(error) for error in errors] == ["disk full"]
