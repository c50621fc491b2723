"""The kit's client against real servers that behave, misbehave and go away."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from think_conformance.errors import UsageError
from think_conformance.history.op import Record
from think_conformance.shell import client as module
from think_conformance.shell.client import Client, Endpoint, IllegalFrame, RpcFailed
from think_conformance.shell.recorder import Recorder
from think_conformance.targets.contract import Target, Tls
from think_conformance.wire.codec import decode_client, encode
from think_conformance.wire.frames import (
    CancelRequest,
    ChatRequest,
    RequestInit,
    ResumeRequest,
    RpcRequest,
    RpcResponse,
    StreamPending,
    StreamResuming,
)

Script = Callable[[web.WebSocketResponse, web.Request], Awaitable[None]]
PATH = "/agents/a/n"


class Agent:
    """A server whose behaviour a test gives: `script` per socket, `transcript` for get-messages."""

    def __init__(self) -> None:
        self.script: Script = idle
        self.transcript = web.Response(text="[]")
        self.names: list[str] = []
        self.got: list[Any] = []
        self.codes: asyncio.Queue[int | None] = asyncio.Queue()
        self.port = 0

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        self.names.append(request.query["_pk"])
        ws = web.WebSocketResponse(autoclose=True)
        await ws.prepare(request)
        await self.script(ws, request)
        self.codes.put_nowait(ws.close_code)
        return ws

    async def messages(self, request: web.Request) -> web.Response:
        return self.transcript


async def idle(ws: web.WebSocketResponse, request: web.Request) -> None:
    async for _ in ws:
        pass


@pytest.fixture
async def agent() -> AsyncIterator[Agent]:
    made = Agent()
    app = web.Application()
    app.router.add_get(PATH, made.socket)
    app.router.add_get(PATH + "/get-messages", made.messages)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder(None)


@pytest.fixture
async def client(agent: Agent, recorder: Recorder) -> AsyncIterator[Client]:
    made = Client("a", lambda: endpoint(agent), recorder, lambda: 3)
    yield made
    await made.close()


def endpoint(agent: Agent) -> Endpoint:
    return Endpoint(f"http://127.0.0.1:{agent.port}{PATH}", query={"token": "t"})


def kinds(recorder: Recorder) -> list[str]:
    return [r.kind for r in recorder.records]


async def seen(recorder: Recorder, kind: str, nth: int = 1) -> Record:
    record = await recorder.wait_for(lambda r: r.kind == kind, 5, nth)
    assert record is not None, kinds(recorder)
    return record


async def test_all_that_crosses_a_connection_is_recorded(
    agent: Agent, client: Client, recorder: Recorder
) -> None:
    async def echo(ws: web.WebSocketResponse, request: web.Request) -> None:
        assert request.query["token"] == "t"
        async for message in ws:
            await ws.send_str(message.data)

    agent.script = echo
    assert await client.connect(follow=False)
    assert client.connected
    assert await client.send(CancelRequest(id="r"))
    assert await client.send_text("[1, no")
    await seen(recorder, "frame-in", 2)
    assert agent.names == ["a.1"]
    frame = {"type": "cf_agent_chat_request_cancel", "id": "r"}
    received = [r for r in recorder.records if r.kind == "frame-in"]
    sent = [r for r in recorder.records if r.kind == "frame-out"]
    assert recorder.records[1].payload == {}
    assert [r.payload for r in sent] == [{"frame": frame}, {"text": "[1, no"}]
    assert [r.payload for r in received] == [
        {"frame": frame, "size": len(encode(CancelRequest(id="r")))},
        {"text": "[1, no", "size": 6},
    ]
    assert {r.source for r in recorder.records} == {"client"}
    assert all(r.ids == {"client": "a", "connection": "a.1", "epoch": 3} for r in recorder.records)


async def test_a_follower_probes_once_and_accepts_each_offer_once_per_connection(
    agent: Agent, client: Client, recorder: Recorder
) -> None:
    async def offer(ws: web.WebSocketResponse, request: web.Request) -> None:
        got: list[Any] = []
        agent.got.append(got)
        await ws.send_str(encode(StreamResuming(id="r1")))
        async for message in ws:
            frame = decode_client(message.data)
            got.append(frame)
            if isinstance(frame, ResumeRequest):
                await ws.send_str(encode(StreamPending(id="r2", probe_id=frame.probe_id)))
                await ws.send_str(encode(StreamResuming(id="r1", probe_id=frame.probe_id)))
                await ws.send_str(encode(StreamResuming(id="r2")))

    agent.script = offer
    for n in (1, 2):
        assert await client.connect()
        await seen(recorder, "frame-in", 4 * n)
        await seen(recorder, "frame-out", 3 * n)
        assert await client.close()
    await agent.codes.get()
    await agent.codes.get()
    told = [[(type(f).__name__, getattr(f, "id", None)) for f in got] for got in agent.got]
    assert told == [[("ResumeRequest", None), ("ResumeAck", "r1"), ("ResumeAck", "r2")]] * 2
    probes = [got[0].probe_id for got in agent.got]
    assert None not in probes
    assert len(set(probes)) == 2
    assert agent.names == ["a.1", "a.2"]


async def test_who_does_not_follow_says_nothing(agent: Agent, client: Client, recorder: Recorder) -> None:
    async def offer(ws: web.WebSocketResponse, request: web.Request) -> None:
        await ws.send_str(encode(StreamResuming(id="r1")))
        await ws.send_str("{}")
        async for message in ws:
            agent.got.append(message.data)

    agent.script = offer
    await client.connect(follow=False)
    await seen(recorder, "frame-in", 2)
    await client.close()
    await agent.codes.get()
    assert agent.got == []


async def test_a_frame_that_is_too_large_to_keep_is_told_by_its_size(
    agent: Agent, client: Client, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def large(ws: web.WebSocketResponse, request: web.Request) -> None:
        await ws.send_str("x" * 101)
        await idle(ws, request)

    monkeypatch.setattr(module, "PAYLOAD_LIMIT", 100)
    agent.script = large
    await client.connect(follow=False)
    assert (await seen(recorder, "frame-in")).payload == {"truncated": True, "size": 101}


ILLEGAL = {
    "no frame of a client": StreamPending(id="r1"),
    "a field of another type": CancelRequest(id=7),  # type: ignore[arg-type]
    "a request that could not be run": ChatRequest(id="r1", init=RequestInit("GET")),
    "a question asked before its answer": ResumeRequest(probe_id="twice"),
}


@pytest.mark.parametrize("what", ILLEGAL)
async def test_what_no_client_may_send_is_never_sent_and_the_kits_own_bug(
    what: str, agent: Agent, client: Client, recorder: Recorder
) -> None:
    await client.connect(follow=False)
    await client.send(ResumeRequest(probe_id="twice"))
    with pytest.raises(IllegalFrame):
        await client.send(ILLEGAL[what])
    assert kinds(recorder) == ["dial", "open", "frame-out"]
    assert await client.send_text(encode(ILLEGAL[what])), "a plan may say it as it stands"


async def test_illegal_frames_are_recorded_and_survived(
    agent: Agent, client: Client, recorder: Recorder
) -> None:
    illegal = ["not json", "[1]", "3", "[" * 100_000, '{"a": ' * 5000, "x" * 3000, '"\\ud800"']

    async def rubbish(ws: web.WebSocketResponse, request: web.Request) -> None:
        for text in illegal:
            await ws.send_str(text)
        await ws.send_bytes(b"\x00\x01")
        await ws.send_str('{"type": "cf_agent_stream_resuming", "id": 5}')
        await idle(ws, request)

    agent.script = rubbish
    await client.connect()
    await seen(recorder, "frame-in", len(illegal) + 2)
    payloads = [r.payload for r in recorder.records if r.kind == "frame-in"]
    assert payloads[:-2] == [{"text": text[:2000], "size": len(text)} for text in illegal]
    assert payloads[-2] == {"binary": True, "size": 2}
    assert payloads[-1]["frame"]["id"] == 5
    assert client.connected


async def gone(ws: web.WebSocketResponse, request: web.Request, how: str) -> None:
    transport = request.transport
    assert transport is not None
    if how == "rst":
        linger = struct.pack("ii", 1, 0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()
    elif how == "fin":
        transport.close()
    elif how == "no-code":
        transport.write(b"\x88\x00")
    elif how == "bad-utf8":
        transport.write(b"\x81\x01\xff")
    elif how == "big":
        transport.write(b"\x81\x7e\x07\xd0" + b"x" * 2000)
    else:
        await ws.close(code=int(how), message=b"bye")
    await idle(ws, request)


@pytest.mark.parametrize(
    ("how", "code", "reason", "by"),
    [
        ("rst", 1006, "", "peer"),
        ("fin", 1006, "", "peer"),
        ("no-code", 1005, "", "peer"),
        ("1000", 1000, "bye", "peer"),
        ("1012", 1012, "bye", "peer"),
        ("4001", 4001, "bye", "peer"),
        ("bad-utf8", 1007, None, "self"),
        ("big", 1009, None, "self"),
    ],
)
async def test_how_a_connection_ended_is_told_exactly(
    agent: Agent,
    client: Client,
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    code: int,
    reason: str | None,
    by: str,
) -> None:
    monkeypatch.setattr(module, "MESSAGE_LIMIT", 1000)
    agent.script = lambda ws, request: gone(ws, request, how)
    assert await client.connect(follow=False)
    close = await seen(recorder, "close")
    assert (close.payload["code"], close.payload["by"]) == (code, by)
    assert close.payload["reason"] == reason if reason is not None else close.payload["reason"]
    assert not client.connected
    assert not await client.send_text("late")
    assert not await client.close()
    assert kinds(recorder) == ["dial", "open", "close"]


async def test_a_close_of_our_own_reaches_the_peer_with_its_code(
    agent: Agent, client: Client, recorder: Recorder
) -> None:
    await client.connect(follow=False)
    assert await client.close(4000)
    assert await asyncio.wait_for(agent.codes.get(), 5) == 4000
    assert not await client.close()
    assert [r.payload for r in recorder.records] == [None, {}, {"code": 4000, "reason": "", "by": "self"}]


async def test_a_new_connection_leaves_an_open_one_as_it_is_until_all_are_closed(
    agent: Agent, client: Client, recorder: Recorder
) -> None:
    await client.connect(follow=False)
    await client.connect(follow=False)
    await client.send_text("{}")
    assert await client.close(4001)
    assert [await asyncio.wait_for(agent.codes.get(), 5) for _ in range(2)] == [4001, 4001]
    told = [(r.kind, r.ids["connection"]) for r in recorder.records]
    assert told == [
        ("dial", "a.1"),
        ("open", "a.1"),
        ("dial", "a.2"),
        ("open", "a.2"),
        ("frame-out", "a.2"),
        ("close", "a.1"),
        ("close", "a.2"),
    ]


async def test_a_peer_that_floods_and_never_answers_the_close_does_not_hold_us(
    agent: Agent, client: Client, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CLOSE_TIMEOUT_S", 0.1)

    async def flood(ws: web.WebSocketResponse, request: web.Request) -> None:
        while True:
            await ws.send_str("{}")
            await asyncio.sleep(0)

    agent.script = flood
    await client.connect(follow=False)
    await seen(recorder, "frame-in", 5)
    async with asyncio.timeout(2):
        assert await client.close()
    assert kinds(recorder)[-1] == "close"


async def test_a_peer_that_does_not_read_does_not_hold_a_send(
    agent: Agent, client: Client, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SEND_TIMEOUT_S", 0.2)

    async def deaf(ws: web.WebSocketResponse, request: web.Request) -> None:
        assert request.transport is not None
        request.transport.pause_reading()
        await asyncio.Event().wait()

    agent.script = deaf
    await client.connect(follow=False)
    assert not await client.send_text("x" * 20_000_000)
    assert kinds(recorder) == ["dial", "open", "frame-out"]
    monkeypatch.setattr(module, "_CLOSE_TIMEOUT_S", 0.1)
    async with asyncio.timeout(2):
        assert await client.close()


async def test_a_connection_that_cannot_be_opened_is_no_error(recorder: Recorder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # accepts, never answers
        url = f"http://127.0.0.1:{server.getsockname()[1]}{PATH}"
        client = Client("a", lambda: Endpoint(url), recorder, lambda: 1)
        assert not await client.connect(timeout_s=0.1)
        assert client.refusal == "no answer within 0.1 s"
    assert not await client.connect()
    assert "Connect" in client.refusal
    assert kinds(recorder) == ["dial", "dial"]
    assert not client.connected


async def test_a_refused_upgrade_is_told(agent: Agent, recorder: Recorder) -> None:
    client = Client("a", lambda: Endpoint(f"http://127.0.0.1:{agent.port}/nope"), recorder, lambda: 1)
    assert not await client.connect()
    assert client.refusal == "HTTP status 404"


async def test_a_redirect_is_not_followed(agent: Agent, recorder: Recorder) -> None:
    """It would lead past the proxy, with the token."""

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        location = f"http://127.0.0.1:{agent.port}{PATH}?_pk=a.1"
        writer.write(f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(elsewhere, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}"
        client = Client("a", lambda: Endpoint(url), recorder, lambda: 1)
        assert not await client.connect()
    assert client.refusal == "HTTP status 302, a redirect"
    assert agent.names == []


async def test_what_is_no_http_is_told_in_a_few_words(recorder: Recorder) -> None:
    async def greets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9\r\n")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(greets, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}"
        client = Client("a", lambda: Endpoint(url), recorder, lambda: 1)
        assert not await client.connect()
    assert client.refusal == "the answer is not HTTP"


@pytest.mark.parametrize(
    ("answer", "messages", "refusal"),
    [
        ({"text": '[{"id": "m", "parts": []}]'}, [{"id": "m", "parts": []}], ""),
        ({"text": "{}"}, None, "not an array"),
        ({"text": "[3]"}, None, "not an array"),
        ({"text": "<html>"}, None, "not JSON"),
        ({"text": "[]", "status": 500}, None, "status 500"),
        ({"text": "[" + " " * 2000 + "]"}, None, "more than 1000 bytes"),
    ],
)
async def test_the_transcript_is_read_over_http(
    agent: Agent,
    client: Client,
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    answer: dict[str, Any],
    messages: Any,
    refusal: str,
) -> None:
    monkeypatch.setattr(module, "MESSAGE_LIMIT", 1000)
    agent.transcript = web.Response(**answer)
    assert await client.get_messages() == messages
    assert refusal in client.refusal
    assert recorder.records == []


def answering(*answers: RpcResponse | None) -> Script:
    """Answers a call with frames; None closes the connection."""

    async def script(ws: web.WebSocketResponse, request: web.Request) -> None:
        async for message in ws:
            call = decode_client(message.data)
            assert isinstance(call, RpcRequest)
            await ws.send_str(encode(RpcResponse(id="another", success=True, result="wrong", done=True)))
            for answer in answers:
                if answer is None:
                    await ws.close(code=1012)
                    return
                answer.id = call.id
                await ws.send_str(encode(answer))

    return script


@pytest.mark.parametrize(
    ("answers", "result"),
    [
        ([RpcResponse(id="", success=True, result={"x": 1}, done=True)], {"x": 1}),
        ([RpcResponse(id="", success=True, done=True)], None),
        (
            [
                RpcResponse(id="", success=True, result="part", done=False),
                RpcResponse(id="", success=True, result="all", done=True),
            ],
            "all",
        ),
    ],
)
async def test_a_call_has_its_own_connection_and_leaves_no_record(
    agent: Agent, client: Client, recorder: Recorder, answers: list[RpcResponse], result: Any
) -> None:
    agent.script = answering(*answers)
    assert await client.rpc("configure", [{"a": 1}]) == result
    assert agent.names == ["ctl.a.1"]
    assert recorder.records == []


@pytest.mark.parametrize(
    ("script", "definite", "text"),
    [
        (
            answering(RpcResponse(id="", success=False, error="Method x does not exist")),
            True,
            "does not exist",
        ),
        (answering(None), False, "closed with code 1012"),
        (idle, False, "no answer within 0.2 s"),
    ],
)
async def test_a_call_without_a_good_answer_says_whether_it_may_have_happened(
    agent: Agent, client: Client, script: Script, definite: bool, text: str
) -> None:
    agent.script = script
    with pytest.raises(RpcFailed, match=text) as caught:
        await client.rpc("x", [], timeout_s=0.2)
    assert caught.value.definite is definite


async def test_a_call_that_reaches_nobody_certainly_had_no_effect(recorder: Recorder) -> None:
    client = Client("a", lambda: Endpoint("http://127.0.0.1:1/x"), recorder, lambda: 1)
    with pytest.raises(RpcFailed) as caught:
        await client.rpc("x", [])
    assert caught.value.definite


def test_an_endpoint_is_made_of_target_base_and_instance() -> None:
    target = Target(name="t", agent="ag", start=["x"], query={"k": "a b"}, headers={"h": "v"})
    made = Endpoint.of(target, "127.0.0.1:5", "n/1")
    assert str(made.at("/get-messages", _pk="a.1")) == (
        "http://127.0.0.1:5/agents/ag/n%2F1/get-messages?k=a+b&_pk=a.1"
    )
    assert made.headers == {"h": "v"}
    assert Endpoint.of(target, "https://h", "n").url == "https://h/agents/ag/n"


def test_tls_settings_become_what_is_needed_or_one_line() -> None:
    assert Endpoint("http://h", tls=Tls(ca="/none.pem")).ssl() is True
    strict, lax = Endpoint("https://h").ssl(), Endpoint("https://h", tls=Tls(verify=False)).ssl()
    assert isinstance(strict, ssl.SSLContext)
    assert isinstance(lax, ssl.SSLContext)
    assert (strict.verify_mode, strict.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert (lax.verify_mode, lax.check_hostname) == (ssl.CERT_NONE, False)
    with pytest.raises(UsageError, match=r"`tls\.ca` /none\.pem cannot be used"):
        Endpoint("https://h", tls=Tls(ca="/none.pem")).ssl()


async def test_a_client_stops_reading_when_the_history_is_full(
    agent: Agent, client: Client, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("think_conformance.shell.recorder.HISTORY_LIMIT", 20_000)

    async def flood(ws: web.WebSocketResponse, request: web.Request) -> None:
        while True:
            await ws.send_str("{}")
            await asyncio.sleep(0)

    agent.script = flood
    await client.connect(follow=False)
    await seen(recorder, "close")
    assert recorder.records[-1].payload["by"] == "self"
    assert len(recorder.records) < 60
