"""The `prepare` command of a target file: run to its end, told as it goes, never left behind."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest

from think_conformance.shell.prepare import LINE, prepare
from think_conformance.shell.process import TargetNotReady
from think_conformance.targets.contract import Target


def target(script: str, **more: str) -> Target:
    return Target(name="t", agent="a", start=["true"], prepare=["/bin/sh", "-c", script], **more)


async def said(script: str) -> list[str]:
    lines: list[str] = []
    await prepare(target(script), lines.append)
    return lines


async def test_a_target_without_one_needs_nothing() -> None:
    lines: list[str] = []
    await prepare(Target(name="t", agent="a", start=["true"]), lines.append)
    assert lines == []


async def test_what_it_writes_to_stderr_is_told_and_nothing_else() -> None:
    assert await said("echo one >&2; echo; echo out; echo two >&2") == ["one", "two"]


async def test_a_line_without_end_is_told_in_pieces() -> None:
    pieces = await said(f"head -c {3 * LINE} /dev/zero | tr '\\0' x >&2")
    assert "".join(pieces) == "x" * (3 * LINE)


async def test_of_one_that_fails_the_last_line_is_the_reason() -> None:
    lines: list[str] = []
    with pytest.raises(TargetNotReady, match=r"^`prepare` of the target failed: no network$"):
        await prepare(target("echo working >&2; echo no network >&2; exit 3"), lines.append)
    assert lines == ["working"]
    with pytest.raises(TargetNotReady, match="it ended with code 3"):
        await said("exit 3")


async def test_one_that_is_not_there_is_named() -> None:
    missing = Target(name="t", agent="a", start=["true"], prepare=["no-such-program"])
    with pytest.raises(
        TargetNotReady, match=r"`prepare` of the target file cannot be started: .*no-such-program"
    ):
        await prepare(missing, print)


async def test_nothing_is_left_of_one_that_is_interrupted(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    started = asyncio.Event()
    script = f"exec 3>{held}; echo one >&2; echo two >&2; sleep 600 & wait"
    task = asyncio.create_task(prepare(target(script), lambda _line: started.set()))
    ended = asyncio.create_task(asyncio.to_thread(held.read_bytes))  # when nobody holds the other end
    await asyncio.wait_for(started.wait(), 20)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert await asyncio.wait_for(ended, 20) == b""
