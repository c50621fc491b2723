"""A process with its proxy: nothing is left of one that could not be had whole."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from think_conformance.shell.instance import Instance
from think_conformance.shell.process import TargetNotReady
from think_conformance.targets.contract import Target
from think_proxy.carriers.embedded import EmbeddedProxy

SERVE = """
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
class NotFound(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(404)
HTTPServer(("127.0.0.1", int(os.environ["THINK_PORT"])), NotFound).serve_forever()
"""


@pytest.fixture
def instance(tmp_path: Path) -> Instance:
    program = tmp_path / "serve.py"
    program.write_text(SERVE)
    target = Target(name="t", agent="a", start=["{python}", "-S", str(program)])
    return Instance(target, tmp_path / "data", tmp_path / "log", {}, (), 0)


async def test_a_proxy_that_cannot_listen_leaves_no_process(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(proxy: EmbeddedProxy) -> None:
        raise OSError("no socket")

    monkeypatch.setattr(EmbeddedProxy, "start", fail)
    with pytest.raises(OSError, match="no socket"):
        await instance.start()
    assert instance.epoch == 1
    assert not instance.alive


async def test_a_start_that_is_cancelled_at_its_proxy_leaves_no_process(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = asyncio.Event()

    async def hang(proxy: EmbeddedProxy) -> None:
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(EmbeddedProxy, "start", hang)
    starting = asyncio.create_task(instance.start())
    async with asyncio.timeout(10):
        await reached.wait()
    assert instance.alive
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not instance.alive


async def test_a_server_without_the_agent_is_not_ready_and_leaves_no_process(instance: Instance) -> None:
    with pytest.raises(TargetNotReady, match=r"no WebSocket at /agents/a/NAME \(HTTP status 404\)"):
        await instance.start()
    assert not instance.alive


async def test_a_proxy_that_does_not_close_is_no_reason_to_leave_the_process(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(proxy: EmbeddedProxy) -> None:
        raise OSError("no socket")

    async def well_met(instance: Instance) -> None:
        pass

    monkeypatch.setattr(Instance, "_say_hello", well_met)
    await instance.start()
    with monkeypatch.context() as broken:
        broken.setattr(EmbeddedProxy, "close", fail)
        with pytest.raises(OSError, match="no socket"):
            await instance.stop()
    await instance.proxy.close()
    assert not instance.alive
