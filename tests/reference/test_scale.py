"""The reference with much to do: a long turn, many agents at once, agents that come and go. Judged by what
comes out; how fast is the business of `tox -e bench`."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from reference_process import Client, Server
from reference_world import texts_of, user

LONG = 10_000
MANY = 200


def is_terminal(frame: dict[str, Any]) -> bool:
    return frame.get("done") is True and frame["type"] == "cf_agent_use_chat_response"


def words(count: int) -> list[str]:
    return [f"{n} " for n in range(count)]


async def test_a_turn_of_ten_thousand_chunks_is_shown_replayed_and_recovered_whole(
    server: Any, fake_model: Any, dial: Any, http: aiohttp.ClientSession
) -> None:
    fake_model.answers = [[*words(LONG), ...], ["the end"]]
    a = await dial(server.url)
    await a.ask("r1", user("u1"))
    await a.until(lambda f: f'"{LONG - 1} "' in f.get("body", ""))
    assert a.text == "".join(words(LONG))
    late = await dial(server.url)
    await late.send("cf_agent_stream_resume_ack", id="r1")
    await late.until(lambda f: f.get("replayComplete") is True)
    chunks = [f for f in late.frames if "seq" in f]
    assert [f["seq"] for f in chunks] == list(range(LONG + 3))
    assert late.text == a.text
    await server.end(signal.SIGKILL)
    await server.start()
    await fake_model.calls(2)
    back = await dial(server.url)
    await back.ask("r1")
    await back.until(lambda f: is_terminal(f) and f["outcome"] == "completed")
    assert (await stored(http, server, "x"))[1].partition(": ")[2] == "".join(words(LONG)) + "the end"


async def stored(http: aiohttp.ClientSession, server: Server, name: str) -> list[str]:
    async with http.get(f"{server.url}/agents/conformance-agent/{name}/get-messages") as answer:
        return texts_of(await answer.json())


async def test_two_hundred_agents_stream_at_once_and_each_gets_its_own(
    server: Any, fake_model: Any, dial: Any
) -> None:
    """Every model call is open before any of them goes on."""
    fake_model.answers = [words(10) for _ in range(MANY)]
    fake_model.pace = asyncio.Semaphore(0)
    clients: list[Client] = [await dial(server.url, f"agent-{n}") for n in range(MANY)]
    for n, client in enumerate(clients):
        await client.ask(f"r{n}", user(f"u{n}"))
    await fake_model.calls(MANY)
    for _ in range(MANY * 10):
        fake_model.pace.release()
    told = await asyncio.gather(*(client.until(is_terminal) for client in clients))
    assert [(t["id"], t["messageIds"], t["outcome"]) for t in told] == [
        (f"r{n}", [f"u{n}"], "completed") for n in range(MANY)
    ]
    for client in clients:
        assert client.text == "".join(words(10))
        assert [f["seq"] for f in client.frames if "seq" in f] == list(range(16))


async def test_idle_agents_leave_memory_and_come_back_whole_to_sockets_that_stayed(
    fake_model: Any, dial: Any, tmp_path: Path, http: aiohttp.ClientSession
) -> None:
    """Nothing of them is open any more; then each is asked on the socket that it had."""
    count = 20
    fake_model.answers = [[f"first {n}"] for n in range(count)]
    server = Server(tmp_path / "data", fake_model.url)
    await server.start("--unload-after", "0.3")
    clients: list[Client] = []
    for n in range(count):
        clients.append(await dial(server.url, f"agent-{n}"))
        await clients[-1].ask("r1", user("u1"))
        await clients[-1].until(is_terminal)
    await open_journals_are(server, 0)
    fake_model.answers = [["second"] for _ in range(count)]
    for n, client in enumerate(clients):
        client.frames.clear()
        await client.ask("r1")  # the turn is known still
        assert (await client.until(is_terminal))["outcome"] == "completed"
        await client.ask("r2", user("u2"))
        told = await client.until(lambda f: is_terminal(f) and f["id"] == "r2")
        assert told["outcome"] == "completed"
        texts = [text.partition(": ")[2] for text in await stored(http, server, f"agent-{n}")]
        assert texts == ["u1", f"first {n}", "u2", "second"]
        assert not any(f.get("connect") for f in client.frames), "greeted a second time"
    assert len(fake_model.prompts) == 2 * count
    await server.end(signal.SIGKILL)


async def open_journals_are(server: Server, count: int) -> None:
    """Wait until the process has this many journals open."""
    for _ in range(300):
        if len(open_journals(server)) == count:
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"{open_journals(server)} are open")


def open_journals(server: Server) -> set[str]:
    """The journals that the process has open, each once."""
    links = [path.readlink() for path in Path(f"/proc/{server.pid}/fd").iterdir() if path.is_symlink()]
    return {link.name.partition("-")[0] for link in links if ".sqlite3" in link.name}


async def test_a_turn_outlives_the_time_after_which_idle_agents_leave(
    fake_model: Any, dial: Any, tmp_path: Path
) -> None:
    """Its model says nothing for several such times, and nobody is connected."""
    fake_model.answers = [["one ", "two"]]
    fake_model.pace = asyncio.Semaphore(1)
    server = Server(tmp_path / "data", fake_model.url)
    await server.start("--unload-after", "0.05")
    a = await dial(server.url)
    await a.ask("r1", user("u1"))
    await a.until(lambda f: "one " in f.get("body", ""))
    await a.socket.close()
    idle = await dial(server.url, "other")
    await idle.socket.close()
    await open_journals_are(server, 1)
    fake_model.pace.release()
    back = await dial(server.url)
    await back.ask("r1")
    assert (await back.until(is_terminal))["outcome"] == "completed"
    assert len(fake_model.prompts) == 1
    await server.end(signal.SIGKILL)
