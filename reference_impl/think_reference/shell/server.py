"""The server process from start to signal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

from aiohttp import web
from msgspec import Struct

from think_reference.agent import Think
from think_reference.core.application import Storage
from think_reference.core.policies import Policies
from think_reference.shell.gateway import Gateway
from think_reference.shell.host import Host
from think_reference.shell.journal import JournalError
from think_reference.shell.model import Model


class Settings(Struct, frozen=True):
    """port 0 takes a free one. model_url: base of an OpenAI-compatible endpoint."""

    classes: dict[str, Callable[[Storage], Think]]
    host: str
    port: int
    folder: Path
    model_url: str
    policies: Policies
    durable: bool = False


class CannotServe(Exception):
    """The server cannot start or go on; one line says why."""


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises CannotServe."""
    _check_folder(settings.folder)
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, _settle, ended, None)
    model = Model(settings.model_url)
    host = Host(
        settings.classes,
        settings.folder,
        model,
        lambda error: _settle(ended, error),
        policies=settings.policies,
        durable=settings.durable,
    )
    runner = web.AppRunner(Gateway(host).application(), access_log=None, shutdown_timeout=0.2)
    try:
        host.restore()
        await runner.setup()
        await web.TCPSite(runner, settings.host, settings.port).start()
        port = runner.addresses[0][1]
        print(f"think-reference: serving on http://{settings.host}:{port}", flush=True)
        await ended
    except (JournalError, OSError) as error:
        raise CannotServe(str(error)) from error
    finally:
        host.stop()
        await runner.cleanup()
        await model.close()


def _settle(ended: asyncio.Future[None], error: BaseException | None) -> None:
    if ended.done():
        return
    if error is None:
        ended.set_result(None)
    else:
        ended.set_exception(error)


def _check_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotServe(f"{folder}: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CannotServe(f"{folder}: not writable")
