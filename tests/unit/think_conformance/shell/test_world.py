"""What stands behind a target: none of it stays when not all of it can be had."""

from __future__ import annotations

import asyncio
import socket

import aiohttp
import pytest

from think_conformance.errors import UsageError
from think_conformance.shell.ports import free_port
from think_conformance.shell.world import ANY, World
from think_proxy.carriers.embedded import EmbeddedProxy


async def test_a_world_that_cannot_start_whole_listens_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(proxy: EmbeddedProxy) -> None:
        raise OSError("no socket")

    monkeypatch.setattr(EmbeddedProxy, "start", fail)
    world = World(0)
    with pytest.raises(OSError, match="no socket"):
        await world.start()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*world.model.address)


async def test_a_world_stands_where_a_service_was_told_to_find_it() -> None:
    model, effects = free_port(), free_port()
    world = World(0, ("127.0.0.2", model), ("127.0.0.2", effects))
    await world.start()
    try:
        async with aiohttp.ClientSession() as session:
            said = await session.post(f"http://127.0.0.2:{model}/v1/chat/completions", json={})
            assert "a prompt without a marker" in await said.text()
            done = await session.post(f"http://127.0.0.2:{effects}/", json={"key": "x/y"})
            assert "no case that runs" in await done.text()
    finally:
        await world.close()


@pytest.mark.parametrize("which", ["model", "effects"])
async def test_an_address_that_is_taken_is_a_usage_error_and_leaves_nothing(which: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        taken = ("127.0.0.1", foreign.getsockname()[1])
        world = World(0, taken, ANY) if which == "model" else World(0, ANY, taken)
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1 port {taken[1]}: "):
            await world.start()
    if which == "model":
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*world.model.address)
