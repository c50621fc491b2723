"""The JavaScript side: its packages, installed once from the lock file, and the process that speaks for it.

Nothing is installed into the source tree: the folder lies in the virtual environment of the tests and is
named by what it was made from.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).with_name("js")
INSTALL_S = 300
PATIENCE_S = 60.0
"""How long anything may take, on a slow machine too; only what hangs takes that long."""

_LINE_LIMIT = 16 * 1024 * 1024


class Missing(Exception):
    """What this machine lacks, in one line."""


def chromium() -> str:
    """The browser. Raises Missing."""
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if not os.access(path, os.X_OK):
        raise Missing(f"no Chromium at {path}: `apt-get install chromium`, or set CHROMIUM")
    return path


def install() -> Path:
    """The folder with the drivers and the bundled page, the packages above it; each made by the first who
    comes, whole or not at all. Raises Missing."""
    home = Path(sys.prefix) / "interop"
    home.mkdir(exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        packages = _made(home, [SOURCES / "package.json", SOURCES / "package-lock.json"], _fetch)
        return _made(packages, sorted(SOURCES.glob("*.mjs")), _bundle)


def _fetch(folder: Path) -> None:
    _run(folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


def _bundle(folder: Path) -> None:
    esbuild = "../node_modules/esbuild/bin/esbuild"
    _run(folder, "node", esbuild, "page.mjs", "--bundle", "--minify", "--format=esm", "--outfile=page.js")


def _made(parent: Path, sources: list[Path], make: Callable[[Path], None]) -> Path:
    """The folder in `parent` that is named by its sources; `make` completes a copy of them."""
    key = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    folder, making = parent / key, parent / f"{key}.part"
    if not folder.exists():
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir()
        for path in sources:
            shutil.copy(path, making)
        make(making)
        making.rename(folder)
    return folder


def _run(folder: Path, *command: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_S)
    except FileNotFoundError:
        raise Missing(f"`{command[0]}` is not there: install Node.js 20 or newer, with npm") from None
    except subprocess.TimeoutExpired:
        raise Missing(
            f"`{' '.join(command)}` was not done within {INSTALL_S} s: is there a network?"
        ) from None
    if done.returncode:
        raise Missing(f"`{' '.join(command)}` failed: {' '.join(done.stderr.split())[-400:]}")


class Driver:
    """One Node process for many clients. Use as an async context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()
        self._replies: dict[int, asyncio.Future[None]] = {}
        self._told: dict[str, Callable[[dict[str, Any]], None]] = {}

    async def __aenter__(self) -> Driver:
        self._process = await asyncio.create_subprocess_exec(
            "node",
            "driver.mjs",
            cwd=self._folder,
            env={**os.environ, "CHROMIUM": chromium()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            limit=_LINE_LIMIT,
        )
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), PATIENCE_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reader

    def listen(self, client: str, told: Callable[[dict[str, Any]], None]) -> None:
        """Events of that client go to `told`."""
        self._told[client] = told

    async def perform(self, client: str, what: str, **more: Any) -> None:
        """One command, to its end. RuntimeError with the words of the other side."""
        assert self._process.stdin is not None
        number = next(self._numbers)
        reply = self._replies[number] = asyncio.get_running_loop().create_future()
        line = json.dumps({"n": number, "client": client, "do": what, **more})
        self._process.stdin.write(line.encode() + b"\n")
        async with asyncio.timeout(PATIENCE_S):
            await reply

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            event = json.loads(line)
            if "n" not in event:
                self._told.get(event["client"], _nobody)(event)
            elif not (reply := self._replies.pop(event["n"])).done():
                if "error" in event:
                    reply.set_exception(RuntimeError(event["error"]))
                else:
                    reply.set_result(None)
        for reply in self._replies.values():
            if not reply.done():  # nobody waits any more
                reply.set_exception(RuntimeError("the driver has ended"))


def _nobody(_event: dict[str, Any]) -> None:
    """Takes what comes from a client that nobody listens to."""
