"""The model client against an endpoint that answers, breaks, and misbehaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager

import pytest
from aiohttp import web

from think_reference.core.effects import CallModel
from think_reference.core.events import (
    ModelDelta,
    ModelEvent,
    ModelFinished,
    ModelToolCall,
    ModelToolInput,
)
from think_reference.shell import model as module
from think_reference.shell.model import Model, ModelError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ASKED = CallModel("r", [{"role": "user", "content": "hi"}])


@asynccontextmanager
async def endpoint(handler: Handler) -> AsyncIterator[Model]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    model = Model(f"http://127.0.0.1:{runner.addresses[0][1]}/v1/")
    try:
        yield model
    finally:
        await model.close()
        await runner.cleanup()


def says(*pieces: bytes, status: int = 200) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status)
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        return response

    return handler


async def heard(handler: Handler) -> list[ModelEvent]:
    async with endpoint(handler) as model, aclosing(model.answer(ASKED)) as answer:
        return [event async for together in answer for event in together]


async def test_an_answer_is_read_piece_by_piece_wherever_it_is_cut() -> None:
    pieces = (
        b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\nda',
        b'ta: {"choices":[{"delta":{"reasoning_content":"hm","content":"a"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\xc3',
        b'\xa9"}}]}\n\n: note\n\ndata: {"choices":[],"usage":{}}\n\n',
        b'data: {"choices":[{"delta":{},"finish_reason":"content_filter"}]}\n\ndata: [DONE]\n\n',
    )
    assert await heard(says(*pieces)) == [
        ModelDelta("r", "reasoning", "hm"),
        ModelDelta("r", "text", "a"),
        ModelDelta("r", "text", "é"),
        ModelFinished("r", "content-filter"),
    ]


async def test_what_comes_together_is_given_together_and_before_the_failure_behind_it() -> None:
    said = b"".join(b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % n for n in range(3))
    handler = says(said + b'data: {"error":"busy"}\n\n')
    async with endpoint(handler) as model, aclosing(model.answer(ASKED)) as answer:
        assert await anext(answer) == [ModelDelta("r", "text", str(n)) for n in range(3)]
        with pytest.raises(ModelError, match="busy"):
            await anext(answer)


def asks(*pieces: str) -> bytes:
    return b"".join(b'data: {"choices":[{"delta":{"tool_calls":[%s]}}]}\n\n' % p.encode() for p in pieces)


async def test_tool_calls_are_put_together_from_their_pieces() -> None:
    said = asks(
        '{"index":0,"id":"c1","function":{"name":"look","arguments":"{\\"at\\""}}',
        '{"index":1,"id":"c2","function":{"name":"go"}}',
        '{"index":0,"function":{"arguments":":1}"}},7',
        '{"function":{"arguments":""}}',
    )
    end = b'data: {"choices":[{"delta":{"tool_calls":3},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
    assert await heard(says(said, end)) == [
        ModelToolInput("r", "c1", "look", '{"at"'),
        ModelToolInput("r", "c2", "go", ""),
        ModelToolInput("r", "c1", "look", ":1}"),
        ModelToolInput("r", "c1", "look", ""),
        ModelToolCall("r", "c1", "look", '{"at":1}'),
        ModelToolCall("r", "c2", "go", ""),
        ModelFinished("r", "tool-calls"),
    ]


async def test_a_call_without_an_id_gets_one_and_without_a_name_is_no_tool() -> None:
    said = asks('{"index":3,"function":{"arguments":"{}"}}') + b"data: [DONE]\n\n"
    assert await heard(says(said)) == [
        ModelToolCall("r", "call-3", "", "{}"),
        ModelFinished("r", "other"),
    ]


async def test_tools_are_offered_only_if_there_are_any() -> None:
    asked = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(await request.json())
        return web.Response(text="data: [DONE]\n\n")

    with_tools = CallModel("r", ASKED.messages, [{"type": "function"}])
    async with endpoint(handler) as model, aclosing(model.answer(with_tools)) as answer:
        assert [events async for events in answer] == [[ModelFinished("r", "other")]]
    assert asked[0]["tools"] == [{"type": "function"}]


async def test_the_question_is_a_streamed_chat_completion() -> None:
    asked = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(await request.json())
        return web.Response(text="data: [DONE]\n\n")

    await heard(handler)
    assert asked == [{"model": "think-reference", "stream": True, "messages": ASKED.messages}]


@pytest.mark.parametrize(
    ("handler", "text", "in_band"),
    [
        (says(b'data: {"error":{"message":"overloaded"}}\n\n'), "overloaded", True),
        (says(b'data: {"error":"busy"}\n\n'), "busy", True),
        (says(b'data: {"error":{"code":7}}\n\n'), "the model reported an error", True),
        (says(b'{"error":{"message":"no key"}}', status=401), "the model answered 401: no key", True),
        (says(b"oops", status=500), "the model answered 500: oops", True),
        (says(status=503), "the model answered 503", True),
        (says(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'), "ended before its answer did", True),
        (says(b"data: what\n\n"), "not JSON", False),
        (says(b"data: 7\n\n"), "no object", False),
        (says(b"data: " + b"x" * 1_100_000), "more than 1048576 bytes", False),
        (
            says(asks('{"function":{"arguments":"%s"}}' % ("x" * 1_000_000)) * 2),
            "input of more than 1048576 characters",
            False,
        ),
        (says(asks(*(f'{{"index":{n}}}' for n in range(129)))), "more than 128 tool calls", False),
    ],
)
async def test_what_is_no_whole_answer_is_an_error(handler: Handler, text: str, in_band: bool) -> None:
    with pytest.raises(ModelError, match=text) as caught:
        await heard(handler)
    assert caught.value.in_band == in_band


async def test_an_error_text_is_never_long() -> None:
    with pytest.raises(ModelError) as caught:
        await heard(says(b"x" * 100_000, status=500))
    assert len(str(caught.value)) <= module.MAX_ERROR_TEXT


async def test_an_answer_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ANSWER", 1000)
    with pytest.raises(ModelError, match="more than 1000 bytes"):
        await heard(says(*[b'data: {"choices":[]}\n\n'] * 100))


async def test_nobody_there_is_an_error_too() -> None:
    model = Model("http://127.0.0.1:1/v1")
    with pytest.raises(ModelError, match="cannot be reached"):
        async with aclosing(model.answer(ASKED)) as pieces:
            await anext(pieces)
    await model.close()


async def test_closing_the_answer_hangs_up() -> None:
    hung_up = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n')
        try:
            while True:
                await response.write(b": still here\n\n")
                await asyncio.sleep(0.005)
        except ConnectionError:
            hung_up.set()
        return response

    async with endpoint(handler) as model:
        async with aclosing(model.answer(ASKED)) as pieces:
            assert await anext(pieces) == [ModelDelta("r", "text", "a")]
        async with asyncio.timeout(5):
            await hung_up.wait()
