"""The server process from start to signal."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web
from msgspec import Struct

from think_reference.agent import Think
from think_reference.core.application import Storage
from think_reference.core.policies import Policies
from think_reference.shell.gateway import Gateway
from think_reference.shell.host import UNLOAD_S, Host
from think_reference.shell.journal import JournalError
from think_reference.shell.model import Model


class Settings(Struct, frozen=True):
    """port 0 takes a free one. model_url: base of an OpenAI-compatible endpoint. unload_s: how long an agent
    is idle before it leaves memory."""

    classes: dict[str, Callable[[Storage], Think]]
    host: str
    port: int
    folder: Path
    model_url: str
    policies: Policies
    durable: bool = False
    unload_s: float = UNLOAD_S


_ELSEWHERE = "give another --data-dir"


class CannotServe(Exception):
    """The server cannot start; one line says why, and what to do."""


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises CannotServe."""
    with _alone(settings.folder):
        await _serve(settings)


async def _serve(settings: Settings) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, ended.set)
    model = Model(settings.model_url)
    host = Host(
        settings.classes,
        settings.folder,
        model,
        policies=settings.policies,
        durable=settings.durable,
        unload_s=settings.unload_s,
    )
    runner = web.AppRunner(Gateway(host).application(), access_log=None, shutdown_timeout=0.2)
    try:
        host.restore()
        await runner.setup()
        await web.TCPSite(runner, settings.host, settings.port).start()
        port = runner.addresses[0][1]
        print(f"think-reference: serving on http://{settings.host}:{port}", flush=True)
        await ended.wait()
    except (JournalError, OSError) as error:
        raise CannotServe(str(error)) from error
    finally:
        host.stop()
        await runner.cleanup()
        await model.close()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Makes the folder and keeps every other server out of it, by a lock that the system lets go of when its
    holder dies. Raises CannotServe."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise CannotServe(f"{folder}: {error.strerror}; {_ELSEWHERE}") from error
    try:
        if not os.access(folder, os.W_OK | os.X_OK):
            raise CannotServe(f"{folder}: read-only; make it writable for this user, or {_ELSEWHERE}")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CannotServe(f"{folder}: another process serves it; end that, or {_ELSEWHERE}") from error
        yield
    finally:
        os.close(held)
