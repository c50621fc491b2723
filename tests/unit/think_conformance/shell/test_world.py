"""What stands behind a target: none of it stays when not all of it can be had."""

from __future__ import annotations

import asyncio

import pytest

from think_conformance.shell.world import World
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
