"""The server as a real process over real sockets: few and coarse."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import WSMsgType
from yarl import URL

from reference_world import texts_of, user
from think_reference.core.repair import INTERRUPTED

AGENT = "/agents/conformance-agent/x"
U1 = user("u1", "hello")


def is_terminal(frame: dict[str, Any]) -> bool:
    return frame.get("done") is True and frame["type"] == "cf_agent_use_chat_response"


def is_delta(frame: dict[str, Any]) -> bool:
    return "text-delta" in frame.get("body", "")


async def test_a_turn_reaches_everyone_and_is_kept(
    server: Any, fake_model: Any, dial: Any, http: aiohttp.ClientSession
) -> None:
    fake_model.answers = [["one ", "two"]]
    a, b = await dial(server.url), await dial(server.url)
    await b.until(lambda f: f["type"] == "cf_agent_mcp_servers")
    await a.ask("r1", U1)
    for client in (a, b):
        terminal = await client.until(is_terminal)
        assert terminal == {
            "type": "cf_agent_use_chat_response",
            "id": "r1",
            "body": "",
            "done": True,
            "messageIds": ["u1"],
            "outcome": "completed",
        }
        assert client.text == "one two"
        assert [f["seq"] for f in client.frames if "seq" in f] == list(range(8))
    async with http.get(server.url + AGENT + "/get-messages") as answer:
        assert answer.content_type == "application/json"
        stored = await answer.json()
    assert stored == a.frames[-2]["messages"]
    assert texts_of(stored)[1].endswith(": one two")

    await a.send("cf_agent_state", state={"n": 1})
    assert (await b.until(lambda f: f["type"] == "cf_agent_state"))["state"] == {"n": 1}
    await a.send("rpc", id="x", method="configure", args=[{"maxAttempts": 3}])
    answered = await a.until(lambda f: f["type"] == "rpc")
    assert answered == {"type": "rpc", "id": "x", "success": True, "done": True}
    await a.socket.send_str("rubbish")
    await a.socket.send_bytes(b"\0")
    await a.send("cf_agent_stream_resume_request", probeId="p")
    none = await a.until(lambda f: f["type"] != "cf_agent_state")
    assert none == {"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": "p"}
    assert await server.end(signal.SIGTERM) == 0


async def _status(http: aiohttp.ClientSession, url: str) -> tuple[int, str]:
    async with http.get(url) as answer:
        return answer.status, await answer.text()


async def test_routes(server: Any, http: aiohttp.ClientSession) -> None:
    expected = {
        "/": (404, "Not found"),
        "/agents/conformance-agent": (404, "Not found"),
        "/agents/conformance-agent/": (404, "Not found"),
        "/x/conformance-agent/y": (404, "Not found"),
        "/agents/ConformanceAgent/y": (400, "Invalid request"),
        "/agents/other/y/get-messages": (400, "Invalid request"),
        AGENT: (404, "Not implemented"),
        AGENT + "/get-messages/": (404, "Not implemented"),
        AGENT + "/get-messages?x=1": (200, "[]"),
        "/agents/conformance-agent/a%2Fb/deep/get-messages": (200, "[]"),
    }
    for path, answer in expected.items():
        assert await _status(http, server.url + path) == answer, path
    async with http.post(server.url + AGENT + "/get-messages") as posted:
        assert posted.status == 200
    url = URL(server.url + "/agents/conformance-agent/a%2Fb", encoded=True)
    async with http.ws_connect(url) as chat:
        frames = [await chat.receive_json() for _ in range(3)]
    assert frames[1] == {"type": "cf_agent_identity", "name": "a%2Fb", "agent": "conformance-agent"}


async def test_a_lost_socket_resumes_and_a_stop_hangs_up(server: Any, fake_model: Any, dial: Any) -> None:
    fake_model.answers = [["one ", "two", ...]]
    a = await dial(server.url)
    await a.ask("r1", U1)
    await a.until(is_delta)
    await a.socket.close()

    b = await dial(server.url)
    assert (await b.until(lambda f: True)) == {"type": "cf_agent_stream_resuming", "id": "r1"}
    await b.send("cf_agent_stream_resume_ack", id="r1")
    await b.until(lambda f: "two" in f.get("body", ""))
    assert b.text == "one two"
    assert not fake_model.hung_up.is_set()

    await b.send("cf_agent_chat_request_cancel", id="r1")
    assert (await b.until(is_terminal))["outcome"] == "aborted"
    await fake_model.hung_up.wait()
    assert len(fake_model.prompts) == 1


async def test_a_killed_server_goes_on_by_itself(
    server: Any, fake_model: Any, dial: Any, http: aiohttp.ClientSession
) -> None:
    fake_model.answers = [["one ", ...], ["two"], ["three"]]
    a = await dial(server.url)
    await a.ask("r1", U1)
    await a.until(is_delta)
    await a.ask("r2", user("u2"))
    await a.send("cf_agent_stream_resume_request", probeId="p")
    await a.until(lambda f: f["type"] == "cf_agent_stream_resuming")
    await server.end(signal.SIGKILL)
    await server.start()

    await fake_model.calls(3)  # nobody is connected
    b = await dial(server.url)
    for request_id in ("r2", "r1"):
        await b.send("cf_agent_use_chat_request", id=request_id, init={"method": "POST", "body": "{}"})
        told = await b.until(
            lambda f, r=request_id: is_terminal(f) and f["id"] == r and f["outcome"] != "recovering"
        )
        assert told["outcome"] == "completed"
    async with http.get(server.url + AGENT + "/get-messages") as answer:
        texts = [text.partition(": ")[2] for text in texts_of(await answer.json())]
    assert texts == ["hello", "one two", "u2", "three"]
    assert len(fake_model.prompts) == 3
    assert [m["content"] for m in fake_model.prompts[1]][:2] == ["hello", "one "]


async def test_an_evicted_agent_is_cut_off_and_goes_on_by_itself(
    server: Any, fake_model: Any, dial: Any, http: aiohttp.ClientSession
) -> None:
    fake_model.answers = [["one ", ...], ["two"]]
    a, control = await dial(server.url), await dial(server.url)
    await control.send("rpc", id="c", method="configure", args=[{"keepAliveIntervalMs": 50}])
    await control.send("rpc", id="e", method="evict", args=[])
    assert await _ending(control) == await _ending(a) == WSMsgType.CLOSED, "no close frame"

    a, control = await dial(server.url), await dial(server.url)
    await a.ask("r1", U1)
    await a.until(is_delta)
    await control.send("rpc", id="e", method="evict", args=[])
    assert await _ending(a) == WSMsgType.CLOSED
    async with asyncio.timeout(15):
        await fake_model.hung_up.wait()
    await fake_model.calls(2)  # nobody is connected
    b = await dial(server.url)
    await b.send("cf_agent_use_chat_request", id="r1", init={"method": "POST", "body": "{}"})
    await b.until(lambda f: is_terminal(f) and f["outcome"] != "recovering")
    async with http.get(server.url + AGENT + "/get-messages") as answer:
        assert [text.partition(": ")[2] for text in texts_of(await answer.json())] == ["hello", "one two"]
    assert len(fake_model.prompts) == 2


async def _ending(client: Any) -> aiohttp.WSMsgType:
    """How the connection ends: CLOSE is a close frame, CLOSED is none."""
    async with asyncio.timeout(15):
        while (message := await client.socket.receive()).type is WSMsgType.TEXT:
            pass
    ended: aiohttp.WSMsgType = message.type
    return ended


def tool(index: int, name: str, **given: Any) -> dict[str, Any]:
    """A model delta that asks for a tool."""
    function = {"name": name, "arguments": json.dumps(given)}
    return {"tool_calls": [{"index": index, "id": f"c{index}", "function": function}]}


def tools_of(messages: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    parts = [p for m in messages for p in m["parts"] if "toolCallId" in p]
    return [(p["state"], p.get("output", p.get("errorText"))) for p in parts]


async def test_tools_have_effects_and_their_results_reach_the_model(
    server: Any, fake_model: Any, dial: Any, outside: Any
) -> None:
    asked = [
        tool(0, "record_effect", key="x/a"),
        tool(1, "slow_effect", key="x/b", ms=1),
        tool(2, "fail_effect", key="x/c"),
        tool(3, "record_effect", id=7),
    ]
    fake_model.answers = [asked, [tool(0, "record_effect", key="x/d")], ["done"]]
    a = await dial(server.url)
    await a.ask("r1", U1)
    await outside.happened(3)
    outside.status = 500
    assert (await a.until(is_terminal))["outcome"] == "completed"
    assert outside.effects == [
        {"key": "x/a", "tool": "record_effect", "toolCallId": "c0"},
        {"key": "x/b", "tool": "slow_effect", "toolCallId": "c1"},
        {"key": "x/c", "tool": "fail_effect", "toolCallId": "c2"},
        {"key": "x/d", "tool": "record_effect", "toolCallId": "c0-2"},
    ]
    results = tools_of(a.frames[-2]["messages"])
    assert results[:3] == [
        ("output-available", {"recorded": "x/a"}),
        ("output-available", {"recorded": "x/b"}),
        ("output-error", "`x/c` was recorded, and then the tool failed"),
    ]
    assert results[3] == ("output-error", "Object missing required field `key`")
    assert results[4] == ("output-error", "the effect was refused with status 500")
    assert [m["role"] for m in fake_model.prompts[1]] == ["user", "assistant", *["tool"] * 4]


async def test_a_tool_that_was_killed_is_never_run_again(
    server: Any, fake_model: Any, dial: Any, outside: Any, http: aiohttp.ClientSession
) -> None:
    fake_model.answers = [
        [tool(0, "record_effect", key="x/a"), tool(1, "slow_effect", key="x/b", ms=60_000)],
        ["after all"],
    ]
    a = await dial(server.url)
    await a.ask("r1", U1)
    await outside.happened(2)
    await server.end(signal.SIGKILL)
    await server.start()
    await fake_model.calls(2)
    b = await dial(server.url)
    await b.send("cf_agent_use_chat_request", id="r1", init={"method": "POST", "body": "{}"})
    await b.until(lambda f: is_terminal(f) and f["outcome"] != "recovering")
    async with http.get(server.url + AGENT + "/get-messages") as answer:
        results = tools_of(await answer.json())
    assert results == [("output-available", {"recorded": "x/a"}), ("output-error", INTERRUPTED)]
    assert len(outside.effects) == len(fake_model.prompts) == 2
    assert fake_model.prompts[1][-1]["content"] == INTERRUPTED


async def test_a_stop_or_an_evict_ends_a_running_tool(
    server: Any, fake_model: Any, dial: Any, outside: Any
) -> None:
    slow = tool(0, "slow_effect", key="x/a", ms=60_000)
    fake_model.answers = [[slow], [slow], ["on"]]
    a = await dial(server.url)
    await a.ask("r1", U1)
    await outside.happened(1)
    await a.send("cf_agent_chat_request_cancel", id="r1")
    assert (await a.until(is_terminal))["outcome"] == "aborted"
    await a.ask("r2", user("u2"))
    await outside.happened(2)
    await a.send("rpc", id="e", method="evict", args=[])
    assert await _ending(a) == WSMsgType.CLOSED
    await fake_model.calls(3)
    assert fake_model.prompts[2][-1] == {"role": "tool", "tool_call_id": "c0-2", "content": INTERRUPTED}
    assert len(outside.effects) == 2


async def test_a_reader_that_stopped_is_cut_off_and_delays_nobody(
    server: Any, fake_model: Any, dial: Any
) -> None:
    """It comes back to a replay, which may be larger than all that may wait for one connection."""
    fake_model.answers = [["x" * 500_000] * 60]
    fake_model.pace = asyncio.Semaphore(0)
    a, slow = await dial(server.url), await _deaf(server.url)
    await a.ask("r1", U1)
    for _ in range(59):
        fake_model.pace.release()
        await a.until(is_delta)
    assert _rest_of(slow) < 59 * 500_000
    back = await dial(server.url)
    await back.send("cf_agent_stream_resume_ack", id="r1")
    await back.until(lambda f: f.get("replayComplete") is True)
    fake_model.pace.release()
    for client in (a, back):
        assert (await client.until(is_terminal))["outcome"] == "completed"
    assert len(back.text) == 60 * 500_000


def _rest_of(slow: socket.socket) -> int:
    """How many bytes a late reader still gets before its connection ends."""
    received = 0
    with slow, suppress(ConnectionResetError):
        while piece := slow.recv(1 << 20):
            received += len(piece)
    return received


async def _deaf(url: str) -> socket.socket:
    """A chat socket that sends its handshake and then does not read."""
    host, port = url.removeprefix("http://").split(":")
    deaf = socket.create_connection((host, int(port)), timeout=10)
    deaf.sendall(
        f"GET {AGENT} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    assert deaf.recv(12) == b"HTTP/1.1 101"
    return deaf


async def test_a_defect_is_switched_on_by_its_name(server: Any, fake_model: Any, dial: Any) -> None:
    await server.end(signal.SIGKILL)
    await server.start("--defect", "two-terminals")
    fake_model.answers = [["one"]]
    a = await dial(server.url)
    await a.ask("r1", U1)
    assert [(await a.until(is_terminal))["outcome"] for _ in range(2)] == ["completed", "aborted"]


async def test_a_folder_is_served_by_one_process(server: Any, fake_model: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "think_reference", "serve", "--port", "0", "--model-url", fake_model.url]
    second = await asyncio.create_subprocess_exec(
        *command, "--data-dir", str(tmp_path / "data"), stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(15):
        _, said = await second.communicate()
    assert second.returncode == 4
    folder = tmp_path / "data"
    assert said.decode() == (
        f"think-reference: {folder}: another process serves it; end that, or give another --data-dir\n"
    )
    assert await server.end(signal.SIGKILL) == -signal.SIGKILL
    await server.start()  # the lock dies with its holder
