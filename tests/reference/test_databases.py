"""Journals that cannot be used, as an operator meets them: one line with the cause and the next step, the
documented exit code, and nothing damaged."""

from __future__ import annotations

import asyncio
import resource
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from reference_process import DEADLINE_S, Server
from reference_world import texts_of, user
from think_reference.core.effects import PutTurn
from think_reference.core.turn import Turn
from think_reference.shell.journal import Journal, path_of

KIND = "conformance-agent"
ANEW = "; put back a copy, or move it away to begin anew"

# What keeps root from passing over the permissions of files, which would make nothing read-only.
LIKE_ANYBODY = [
    sys.executable,
    "-c",
    "import ctypes, os, sys; libc = ctypes.CDLL(None); "
    "[libc.prctl(24, capability, 0, 0, 0) for capability in (1, 2) if hasattr(libc, 'prctl')]; "
    "os.execv(sys.argv[1], sys.argv[1:])",
]


# No file may grow beyond its first byte.
ON_A_FULL_DISK = [
    sys.executable,
    "-c",
    "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1)); "
    "os.execv(sys.argv[1], sys.argv[1:])",
]


def keep(folder: Path, name: str, *, unfinished: bool) -> Path:
    """The journal of an agent with one turn that waits, or has ended."""
    folder.mkdir(exist_ok=True)
    path = path_of(folder, KIND, name)
    turn = Turn(id="r1", root="r1", order=0)
    journal = Journal(path, KIND, name)
    journal.write([PutTurn(turn if unfinished else turn.ended("aborted"))])
    journal.close()
    return path


def no_database(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)


def damaged(path: Path) -> None:
    """Its first page is whole, nothing behind it is."""
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))


def without_its_tables(path: Path) -> None:
    change(path, "drop table turn")


def foreign(path: Path) -> None:
    path.unlink()
    change(path, "create table notes (text)")


def newer(path: Path) -> None:
    change(path, "pragma user_version = 2")


def change(path: Path, statement: str) -> None:
    db = sqlite3.connect(path)
    db.execute(statement)
    db.commit()
    db.close()


BROKEN: list[tuple[Callable[[Path], None], str]] = [
    (no_database, "file is not a database" + ANEW),
    (damaged, "database disk image is malformed" + ANEW),
    (without_its_tables, "no such table: turn" + ANEW),
    (foreign, "a database of another program; move it out of the data folder"),
    (newer, "a journal of version 2, and this think-reference knows 1; use the one that wrote it"),
]


@pytest.mark.parametrize(("spoil", "why"), BROKEN, ids=[spoil.__name__ for spoil, _ in BROKEN])
async def test_a_broken_journal_is_named_in_one_line_and_not_touched_and_the_others_are_served(
    tmp_path: Path, fake_model: Any, http: aiohttp.ClientSession, spoil: Callable[[Path], None], why: str
) -> None:
    data = tmp_path / "data"
    path = keep(data, "broken", unfinished=True)
    spoil(path)
    keep(data, "good", unfinished=True)
    before = path.read_bytes()
    fake_model.answers = [["well"]]
    server = Server(data, fake_model.url)
    await server.start(stderr=asyncio.subprocess.PIPE)
    await fake_model.calls(1)  # what is owed to the good one
    assert await get(http, server, "broken") == (500, f"{path}: {why}")
    assert (await get(http, server, "good"))[0] == 200
    assert await server.end(signal.SIGTERM) == 0
    assert server.said == f"{path}: {why}\n" * 2, "once at the start, once when it was asked for"
    assert path.read_bytes() == before


async def get(http: aiohttp.ClientSession, server: Server, name: str) -> tuple[int, str]:
    async with http.get(f"{server.url}/agents/{KIND}/{name}/get-messages") as answer:
        return answer.status, await answer.text()


async def refused(command: list[str]) -> str:
    """What the command says that ends at once with the documented code."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(DEADLINE_S):
        out, said = await process.communicate()
    assert (process.returncode, out) == (4, b"")
    assert said.count(b"\n") == 1
    return said.decode()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma locking_mode = exclusive")
    db.execute("begin exclusive")
    yield
    db.close()


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    mode = path.stat().st_mode
    path.chmod(mode & ~0o222)
    yield
    path.chmod(mode)


async def test_a_journal_that_another_process_holds(tmp_path: Path) -> None:
    path = keep(tmp_path, "x", unfinished=True)
    before = path.read_bytes()
    with locked(path):
        said = await refused(Server(tmp_path, "http://127.0.0.1:1/v1").command)
    why = f"think-reference: {path}: database is locked; end the other process that has it open\n"
    assert said == why
    assert path.read_bytes() == before


async def test_a_journal_that_is_read_only_and_a_folder_that_is(
    tmp_path: Path, http: aiohttp.ClientSession
) -> None:
    path = keep(tmp_path / "data", "x", unfinished=True)
    command = [*LIKE_ANYBODY, *Server(path.parent, "http://127.0.0.1:1/v1").command]
    before = path.read_bytes()
    with read_only(path):
        said = await refused(command)
        assert said == f"think-reference: {path}: read-only; make it writable for this user\n"
    with read_only(path.parent):
        said = await refused(command)
    assert said == (
        f"think-reference: {path.parent}: read-only; make it writable for this user, "
        "or give another --data-dir\n"
    )
    assert path.read_bytes() == before


async def test_a_read_only_journal_without_an_open_turn_waits_until_it_is_asked_for(
    tmp_path: Path, http: aiohttp.ClientSession
) -> None:
    path = keep(tmp_path, "x", unfinished=False)
    server = Server(tmp_path, "http://127.0.0.1:1/v1", LIKE_ANYBODY)
    with read_only(path):
        await server.start()
        assert await get(http, server, "x") == (503, f"{path}: read-only; make it writable for this user")
    assert await get(http, server, "x") == (200, "[]")
    await server.end(signal.SIGKILL)


def fill_the_disk(server: Server, full: bool) -> None:
    """No file of the process may grow beyond its first byte, or as it likes."""
    _, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1 if full else hard, hard))


def is_terminal(frame: dict[str, Any]) -> bool:
    return frame.get("done") is True and frame["type"] == "cf_agent_use_chat_response"


async def test_a_disk_that_is_full_at_the_start(tmp_path: Path) -> None:
    path = keep(tmp_path, "x", unfinished=True)
    command = Server(tmp_path, "http://127.0.0.1:1/v1").command
    before = path.read_bytes()
    said = await refused([*ON_A_FULL_DISK, *command])
    assert said == f"think-reference: {path}: disk I/O error; see to the disk and to the room on it\n"
    assert path.read_bytes() == before


async def test_while_the_disk_is_full_nothing_is_lost_and_all_goes_on_when_there_is_room(
    server: Any, fake_model: Any, dial: Any, http: aiohttp.ClientSession
) -> None:
    """One agent streams, one is asked, one only listens."""
    fake_model.answers = [["one ", "two "], ["three"], ["after all"]]
    fake_model.pace = asyncio.Semaphore(1)
    streams, asked, listens = [await dial(server.url, name) for name in "xyz"]
    await streams.ask("r1", user("u1", "count"))
    await streams.until(lambda f: "one " in f.get("body", ""))

    fill_the_disk(server, True)
    await asked.ask("r1", user("u1"))
    told = await asked.until(is_terminal)
    assert (told["error"], told["outcome"]) == (True, "error")
    assert told["body"] == "the journal cannot be written; try again later"
    fake_model.pace.release()
    for client in (streams, asked):
        ended = await client.socket.receive(DEADLINE_S)
        assert (ended.type, ended.data, ended.extra) == (aiohttp.WSMsgType.CLOSE, 1013, told["body"])
    await listens.send("cf_agent_stream_resume_request", probeId="p")
    assert (await listens.until(lambda f: "probeId" in f))["reason"] == "idle"
    assert await get(http, server, "z") == (200, "[]")
    assert (await get(http, server, "x"))[0] == 503

    fill_the_disk(server, False)
    for _ in range(9):
        fake_model.pace.release()
    await fake_model.calls(2)  # nobody is connected
    back = await dial(server.url, "x")
    await back.ask("r1")
    told = await back.until(lambda f: is_terminal(f) and f["outcome"] != "recovering")
    assert told["outcome"] == "completed"
    assert texts_of(await messages(http, server, "x"))[1].endswith(": one three")
    assert await messages(http, server, "y") == [], "it was refused"
    again = await dial(server.url, "y")
    await again.ask("r2", user("u1"))
    assert (await again.until(is_terminal))["outcome"] == "completed"
    assert len(fake_model.prompts) == 3


async def messages(http: aiohttp.ClientSession, server: Server, name: str) -> Any:
    async with http.get(f"{server.url}/agents/{KIND}/{name}/get-messages") as answer:
        return await answer.json()
