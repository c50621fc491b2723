"""The scripted model over real sockets: scripts, gates, failures, hang-ups, and what is recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from think_conformance.errors import UsageError
from think_conformance.shell.model_script import Scripts
from think_conformance.shell.model_server import ModelServer
from think_conformance.shell.recorder import Recorder

HOLD: Scripts = {"t1": [[{"text": "a"}, {"gate": "g"}, {"text": "b"}, "done"]]}


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    server = ModelServer()
    await server.start()
    yield server
    await server.close()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


class Caller:
    """Calls the model as a target does."""

    def __init__(self, model: ModelServer, http: aiohttp.ClientSession) -> None:
        self._url = f"{model.url}/chat/completions"
        self._http = http

    async def __call__(self, text: str, **more: Any) -> aiohttp.ClientResponse:
        prompt = {"messages": [{"role": "user", "content": text}], "stream": True, **more}
        return await self._http.post(self._url, json=prompt)

    async def read(self, text: str) -> str:
        return texts(await (await self(text)).read())


@pytest.fixture
def call(model: ModelServer, http: aiohttp.ClientSession) -> Caller:
    return Caller(model, http)


def texts(body: bytes) -> str:
    """The text a streamed answer says, [DONE] as a full stop."""
    said = ""
    for event in body.split(b"\n\n")[:-1]:
        data = event.removeprefix(b"data: ")
        if data == b"[DONE]":
            said += "."
        else:
            said += "".join(c["delta"].get("content", "") for c in json.loads(data)["choices"])
    return said


def loaded(model: ModelServer, scripts: Scripts, case: str = "c") -> Recorder:
    recorder = Recorder(None)
    model.load(case, scripts, recorder)
    return recorder


def told(recorder: Recorder) -> list[tuple[str, Any]]:
    """Kind and the decisive word of each record."""
    words = {"model-end": lambda r: r.payload["how"], "model-gate": lambda r: r.ids["gate"]}
    return [(r.kind, words.get(r.kind, lambda r: r.ids.get("call"))(r)) for r in recorder.records]


async def ended(recorder: Recorder, nth: int = 1) -> Any:
    record = await recorder.wait_for(lambda r: r.kind == "model-end", 5, nth)
    assert record is not None
    return record.payload["how"]


async def test_the_nth_call_gets_the_nth_script_and_later_ones_the_last(
    model: ModelServer, call: Caller
) -> None:
    recorder = loaded(model, {"t1": [[{"text": "one"}, "done"], [{"text": "two"}, "done"]], "t2": [["done"]]})
    assert [await call.read("[[c/t1]]") for _ in range(3)] == ["one.", "two.", "two."]
    assert await call.read("[[c/t2]]") == "."
    calls = [r for r in recorder.records if r.kind == "model-call"]
    assert [(r.ids["marker"], r.ids["call"]) for r in calls] == [
        ("c/t1", 1),
        ("c/t1", 2),
        ("c/t1", 3),
        ("c/t2", 1),
    ]
    assert calls[0].payload == {"messages": [{"role": "user", "content": "[[c/t1]]"}]}
    assert told(recorder)[-1] == ("model-end", "done")


async def test_the_prompt_is_recorded_with_its_tools(model: ModelServer, call: Caller) -> None:
    recorder = loaded(model, {"t1": [["done"]]})
    await (await call("[[c/t1]]", tools=[{"type": "function"}], temperature=1)).read()
    assert recorder.records[0].payload.keys() == {"messages", "tools"}


async def test_a_gate_holds_after_everything_before_it_was_written(model: ModelServer, call: Caller) -> None:
    recorder = loaded(model, HOLD)
    answer = await call("[[c/t1]]")
    gate = await recorder.wait_for(lambda r: r.kind == "model-gate", 5)
    assert gate is not None
    assert gate.ids == {"marker": "c/t1", "call": 1, "gate": "g"}
    assert texts(await answer.content.readuntil(b"\n\n")) == "a"
    assert model.open_calls("c") == 1
    model.open_gate("c", "g")
    assert texts(await answer.read()) == "b."
    assert await ended(recorder) == "done"
    await model.quiet("c")
    assert model.open_calls("c") == 0
    assert await call.read("[[c/t1]]") == "ab.", "a gate stays open"
    assert told(recorder)[:3] == [("model-call", 1), ("model-gate", "g"), ("model-end", "done")]


async def test_open_all_opens_gates_nobody_has_reached_yet(model: ModelServer, call: Caller) -> None:
    loaded(model, HOLD)
    model.open_all("c")
    assert await call.read("[[c/t1]]") == "ab."


async def test_gates_belong_to_their_case(model: ModelServer, call: Caller) -> None:
    loaded(model, HOLD, "other")
    recorder = loaded(model, HOLD)
    answer = await call("[[c/t1]]")
    await recorder.wait_for(lambda r: r.kind == "model-gate", 5)
    model.open_all("other")
    assert model.open_calls("c") == 1
    model.open_gate("c", "g")
    assert texts(await answer.read()) == "ab."


@pytest.mark.parametrize(
    "script",
    [
        [{"text": "a"}, {"gate": "g"}, "done"],
        [{"gate": "g"}, "done"],
        [{"silence": True}, "done"],
    ],
)
async def test_a_caller_that_hangs_up_while_the_model_holds_is_noticed(
    model: ModelServer, http: aiohttp.ClientSession, script: list[Any]
) -> None:
    recorder = loaded(model, {"t1": [script]})
    calling = asyncio.create_task(Caller(model, http)("[[c/t1]]"))
    await recorder.wait_for(lambda r: r.kind == "model-call", 5)
    if script[0] == {"gate": "g"}:
        calling.cancel()  # no headers yet: the request itself is given up
        await asyncio.wait([calling])
    else:
        (await calling).close()
    assert await ended(recorder) == "aborted"
    await asyncio.wait_for(model.quiet("c"), 5)


async def test_a_status_is_answered_also_after_a_gate(model: ModelServer, call: Caller) -> None:
    step = {"status": 429, "body": {"error": {"message": "slow"}}, "headers": {"Retry-After": "7"}}
    recorder = loaded(
        model, {"t1": [[{"gate": "g"}, step], [{"status": 500}], [{"status": 502, "body": "<html>"}]]}
    )
    model.open_gate("c", "g")
    answer = await call("[[c/t1]]")
    assert (answer.status, answer.headers["retry-after"]) == (429, "7")
    assert await answer.json() == {"error": {"message": "slow"}}
    plain = await call("[[c/t1]]")
    assert (plain.status, (await plain.json())["error"]["message"]) == (500, "scripted status 500")
    html = await call("[[c/t1]]")
    assert (html.status, await html.text(), html.content_type) == (502, "<html>", "text/plain")
    assert [word for kind, word in told(recorder) if kind == "model-end"] == ["error"] * 3


async def test_a_cut_is_no_proper_end_and_a_script_without_done_is_a_short_one(
    model: ModelServer, call: Caller
) -> None:
    recorder = loaded(model, {"t1": [[{"text": "a"}, {"cut": True}], [{"text": "a"}]]})
    answer = await call("[[c/t1]]")
    assert texts(await answer.content.readuntil(b"\n\n")) == "a"
    with pytest.raises(aiohttp.ClientPayloadError):
        await answer.read()
    assert await call.read("[[c/t1]]") == "a"
    assert (await ended(recorder), await ended(recorder, 2)) == ("error", "error")


async def test_an_error_in_the_stream_ends_it(model: ModelServer, call: Caller) -> None:
    recorder = loaded(model, {"t1": [[{"text": "a"}, {"error": "boom"}, "done"]]})
    events = (await (await call("[[c/t1]]")).read()).split(b"\n\n")
    assert json.loads(events[1].removeprefix(b"data: "))["error"]["message"] == "boom"
    assert events[2:] == [b""]
    assert await ended(recorder) == "error"


async def test_silence_sends_headers_and_lasts_until_everything_is_healed(
    model: ModelServer, call: Caller
) -> None:
    loaded(model, {"t1": [[{"silence": True}, {"text": "late"}, "done"]]})
    answer = await call("[[c/t1]]")
    assert answer.status == 200
    model.open_gate("c", "any")
    assert model.open_calls("c") == 1
    model.open_all("c")
    assert texts(await answer.read()) == "late."


@pytest.mark.parametrize(
    ("text", "more", "reason"),
    [
        ("no marker", {}, "a prompt without a marker"),
        ("[[c/t9]]", {}, "no script for `t9`"),
        ("[[c/t1]]", {"stream": False}, "a call without `stream`: true"),
    ],
)
async def test_a_call_that_no_script_is_for_is_an_error_of_the_kit(
    model: ModelServer, call: Caller, text: str, more: dict[str, Any], reason: str
) -> None:
    recorder = loaded(model, HOLD)
    answer = await call(text, **more)
    assert (answer.status, (await answer.json())["error"]["message"]) == (400, reason)
    assert [(r.source, r.kind, r.payload) for r in recorder.records] == [
        ("model", "fail", {"reason": reason})
    ]


async def test_a_prompt_that_is_no_json_is_an_error_of_the_kit(
    model: ModelServer, http: aiohttp.ClientSession
) -> None:
    recorder = loaded(model, HOLD)
    for body in (b"{", b"[]", b"\xff"):
        assert (await http.post(f"{model.url}/chat/completions", data=body)).status == 400
    assert [r.kind for r in recorder.records] == ["fail"] * 3


async def test_a_late_call_of_a_case_that_is_over_concerns_nobody(model: ModelServer, call: Caller) -> None:
    over, running = loaded(model, HOLD, "over"), loaded(model, HOLD)
    model.unload("over")
    assert (await call("[[over/t1]]")).status == 400
    assert over.records == running.records == []


async def test_unloading_hangs_up_and_records_nothing_more(model: ModelServer, call: Caller) -> None:
    recorder = loaded(model, HOLD)
    answer = await call("[[c/t1]]")
    await recorder.wait_for(lambda r: r.kind == "model-gate", 5)
    model.unload("c")
    with pytest.raises(aiohttp.ClientPayloadError):
        await answer.read()
    assert [r.kind for r in recorder.records] == ["model-call", "model-gate"]


async def test_a_wrong_script_is_refused_when_it_is_loaded(model: ModelServer) -> None:
    with pytest.raises(UsageError, match="`t1`"):
        loaded(model, {"t1": [[{"nonsense": 1}]]})


async def test_a_gate_waits_for_a_caller_that_does_not_read(model: ModelServer) -> None:
    """More than the sockets buffer: the gate is only reached once the caller took it."""
    big = "x" * 8_000_000
    recorder = loaded(model, {"t1": [[{"text": big}, {"gate": "g"}, "done"]]})
    port = int(model.url.rpartition(":")[2].removesuffix("/v1"))
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    body = json.dumps({"stream": True, "messages": [{"role": "user", "content": "[[c/t1]]"}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await reader.readline()
    assert await recorder.wait_for(lambda r: r.kind == "model-gate", 0.2) is None
    gate = asyncio.create_task(recorder.wait_for(lambda r: r.kind == "model-gate", 10))
    taken = 0
    while taken < len(big):
        taken += len(await reader.read(1_000_000))
    assert await gate is not None
    writer.close()


async def test_at_every_gate_nothing_waits_to_be_written(model: ModelServer) -> None:
    """Small events too, which would fit into buffers of the server."""
    unwritten: list[int] = []

    class Watching(Recorder):
        def append(self, source: Any, kind: Any, ids: Any = None, payload: Any = None) -> Any:
            if kind == "model-gate":
                (call,) = model._cases["c"].calls
                assert call._request.transport is not None
                unwritten.append(call._request.transport.get_write_buffer_size())
            return super().append(source, kind, ids, payload)

    steps: list[Any] = [{"text": "x" * 60_000}, {"gate": "g"}]
    recorder = Watching(None)
    model.load("c", {"t1": [[*(steps * 200), "done"]]}, recorder)
    model.open_gate("c", "g")
    async with aiohttp.ClientSession() as http:
        answer = await Caller(model, http)("[[c/t1]]")
        async for _ in answer.content.iter_chunked(200_000):
            await asyncio.sleep(0)
    assert await ended(recorder) == "done"
    assert unwritten == [0] * 200


class Shown:
    """Notes of what was told, as kinds and names."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, Any]] = []

    def append(self, source: str, kind: str, ids: Any = None, payload: Any = None, /) -> None:
        self.rows.append((kind, ids))


async def test_without_a_run_anybody_is_served_and_told(model: ModelServer, call: Caller) -> None:
    shown = Shown()
    model.serve_anybody(
        {
            "default": [[{"text": "hello"}, "done"]],
            "t1": [[{"text": "one"}, "done"], [{"text": "two"}, "done"]],
        },
        shown,
    )
    assert await call.read("no marker") == "hello."
    assert await call.read("[[any/t1]]") == "one."
    assert await call.read("[[other/t1]]") == "two."
    assert await call.read("[[other/t1]]") == "two."
    assert await call.read("[[any/t9]]") == "hello."
    assert shown.rows[:2] == [
        ("model-call", {"marker": "default/default", "call": 1}),
        ("model-end", {"marker": "default/default", "call": 1}),
    ]
    assert (await call("[[any/t1]]", stream=False)).status == 400
    assert shown.rows[-1] == ("fail", {})


@pytest.mark.parametrize(
    ("scripts", "told"),
    [
        ({"t1": [["done"]]}, "no script for the turn `default`"),
        ({"default": [[{"gate": "g"}, "done"]]}, "nobody opens it"),
        ({"default": [[{"txt": "a"}]]}, "is no step"),
    ],
)
def test_without_a_run_scripts_that_cannot_be_served_are_refused(scripts: Scripts, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        ModelServer().serve_anybody(scripts, Shown())
