"""What has to be done once before a target can be started at all: the `prepare` command of its file."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from think_conformance.shell.process import TargetNotReady
from think_conformance.targets.command import command_line
from think_conformance.targets.contract import Target

PREPARE_TIMEOUT_S = 1200.0
LINE = 4096
"""Bytes of one line that are shown."""


async def prepare(target: Target, tell: Callable[[str], None]) -> None:
    """Runs the command to its end. `tell` gets each line it writes to stderr, as it comes; of a command
    that fails the last line is its reason, in TargetNotReady. Nothing of it is left running."""
    if not target.prepare:
        return
    command = command_line(target.prepare)
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            cwd=target.cwd,
            env={**os.environ, **target.env},
            start_new_session=True,
            limit=LINE,
        )
    except OSError as error:
        raise TargetNotReady(f"`prepare` of the target file cannot be started: {error}") from None
    last = ""
    try:
        async with asyncio.timeout(PREPARE_TIMEOUT_S):
            async for line in _lines(process):
                if last:
                    tell(last)
                last = line
            code = await process.wait()
    except TimeoutError:
        raise TargetNotReady(f"`prepare` of the target did not end within {PREPARE_TIMEOUT_S:g} s") from None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if code != 0:
        raise TargetNotReady(f"`prepare` of the target failed: {last or f'it ended with code {code}'}")
    if last:
        tell(last)


async def _lines(process: asyncio.subprocess.Process) -> AsyncIterator[str]:
    """What it writes to stderr, without blank lines; what is longer than a line may be comes in pieces."""
    assert process.stderr is not None
    while True:
        try:
            raw = await process.stderr.readuntil()
        except asyncio.IncompleteReadError as end:
            raw = end.partial
        except asyncio.LimitOverrunError as long:
            raw = await process.stderr.read(long.consumed)
        if not raw:
            return
        if line := raw.decode(errors="replace").strip():
            yield line
