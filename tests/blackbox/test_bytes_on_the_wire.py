"""The reference, looked at with a WebSocket library that neither it nor the kit uses: each text it sends is
held against the published schema, and the sequences of the protocol against what the specification shows."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from websockets.asyncio.client import ClientConnection, connect

from think_conformance.shell.model_server import ModelServer
from think_conformance.shell.recorder import Recorder

SCHEMA = json.loads(files("think_conformance.wire.schema").joinpath("server.json").read_text())
SCRIPT: Any = [[{"text": "w1 "}, {"text": "w2 "}, {"gate": "rest"}, {"text": "w3"}, "done"]]
BODY = {"messages": [{"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hi [[ind/t1]]"}]}]}
REQUEST = {
    "type": "cf_agent_use_chat_request",
    "id": "r1",
    "init": {"method": "POST", "body": json.dumps(BODY)},
}


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    model = ModelServer()
    await model.start()
    model.load("ind", {"t1": SCRIPT}, Recorder(None))
    yield model
    await model.close()


@pytest.fixture
async def address(model: ModelServer, tmp_path: Path) -> AsyncIterator[str]:
    """Host and port of a fresh reference."""
    command = [sys.executable, "-m", "think_reference", "serve", "--port", "0", "--data-dir", str(tmp_path)]
    server = await asyncio.create_subprocess_exec(
        *command, "--model-url", model.url, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    line = await asyncio.wait_for(server.stdout.readline(), 30)
    yield line.decode().strip().rpartition("//")[2]
    server.terminate()
    await asyncio.wait_for(server.wait(), 10)


async def read(socket: ClientConnection, until: str) -> list[dict[str, Any]]:
    """The frames up to the one whose text contains `until`, each valid by the schema."""
    frames = []
    while True:
        text = await asyncio.wait_for(socket.recv(), 10)
        assert isinstance(text, str)
        frames.append(json.loads(text))
        jsonschema.validate(frames[-1], SCHEMA)
        if until in text:
            return frames


def response(body: dict[str, Any] | str, done: bool = False, **more: Any) -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
    return {"type": "cf_agent_use_chat_response", "id": "r1", "body": text, "done": done, **more}


def chunks(message_id: str) -> list[dict[str, Any]]:
    return [
        {"type": "start", "messageId": message_id},
        {"type": "start-step"},
        {"type": "text-start", "id": "text-1"},
        {"type": "text-delta", "id": "text-1", "delta": "w1 "},
        {"type": "text-delta", "id": "text-1", "delta": "w2 "},
        {"type": "text-delta", "id": "text-1", "delta": "w3"},
        {"type": "text-end", "id": "text-1"},
        {"type": "finish-step"},
        {"type": "finish", "finishReason": "stop"},
    ]


async def test_a_turn_a_resume_and_late_questions_read_as_the_specification_shows(
    address: str, model: ModelServer
) -> None:
    url = f"ws://{address}/agents/conformance-agent/ind"
    async with connect(url) as a, connect(url) as b:
        hello = await read(a, "cf_agent_mcp_servers")
        assert [f["type"] for f in hello] == [
            "cf_agent_chat_messages",
            "cf_agent_identity",
            "cf_agent_mcp_servers",
        ]
        assert hello[0] == {"type": "cf_agent_chat_messages", "messages": [], "connect": True}
        await read(b, "cf_agent_mcp_servers")
        await a.send(json.dumps(REQUEST))
        live = await read(a, "w2")
        message_id = json.loads(live[0]["body"])["messageId"]
        expected = chunks(message_id)
        assert live == [response(c, seq=n) for n, c in enumerate(expected[:5])]
        stored = [{**BODY["messages"][0], "metadata": {"channel": "web"}}]
        assert (await read(b, "w2"))[0] == {"type": "cf_agent_chat_messages", "messages": stored}

        async with connect(url) as late:
            offer = {"type": "cf_agent_stream_resuming", "id": "r1"}
            assert (await read(late, "cf_agent_mcp_servers"))[0] == offer
            await late.send('{"type":"cf_agent_stream_resume_request","probeId":"p1"}')
            assert await read(late, "p1") == [{**offer, "probeId": "p1"}]
            await late.send('{"type":"cf_agent_stream_resume_ack","id":"r1"}')
            assert await read(late, "replayComplete") == [
                *(response(c, replay=True, seq=n) for n, c in enumerate(expected[:5])),
                response("", replay=True, replayComplete=True),
            ]
            model.open_gate("ind", "rest")
            *tail, transcript, terminal = await read(late, '"done":true')
            assert tail == [response(c, seq=n) for n, c in enumerate(expected) if n > 4]
            assert [m["id"] for m in transcript["messages"]] == ["u1", message_id]
            assert terminal == response("", done=True, messageIds=["u1"], outcome="completed")

            await late.send('{"type":"cf_agent_stream_resume_request","probeId":"p2"}')
            idle = {"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": "p2"}
            assert await read(late, "p2") == [idle]
            await late.send('{"type":"cf_agent_stream_resume_ack","id":"r1"}')
            assert await read(late, "done") == [{**terminal, "replay": True}]
        assert (await read(a, '"done":true'))[-1] == terminal
        assert (await read(b, '"done":true'))[-1] == terminal


ROUTES = {
    "/agents/conformance-agent/ind/get-messages": (200, "[]"),
    "/agents/ConformanceAgent/ind": (400, "Invalid request"),
    "/agents/conformance-agent/ind/else": (404, "Not implemented"),
    "/agents/conformance-agent": (404, None),
}


@pytest.mark.parametrize("path", ROUTES)
async def test_routes_answer_as_the_specification_says(path: str, address: str) -> None:
    def ask() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    status, text = await asyncio.to_thread(ask)
    assert status == ROUTES[path][0]
    assert ROUTES[path][1] in (None, text)
