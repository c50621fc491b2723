"""The driver with a journal and a model of its own: what a tool may give back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from reference_world import request, user
from think_conformance.wire.codec import decode_server, encode, loads
from think_conformance.wire.frames import ChatResponse
from think_reference.agent import Think
from think_reference.core.agent import Agent
from think_reference.core.application import Storage, Tool
from think_reference.core.effects import CallModel, Write
from think_reference.core.events import ModelDelta, ModelEvent, ModelFinished, ModelToolCall
from think_reference.shell.driver import MAX_OUTPUT, Driver
from think_reference.shell.journal import Journal, path_of
from think_reference.shell.model import Model
from think_reference.shell.outbox import Outbox


class OneCall:
    """Asks for the tool once, then is content."""

    def __init__(self) -> None:
        self._asked = False

    async def answer(self, asked: CallModel) -> AsyncGenerator[list[ModelEvent], None]:
        """The events of one answer."""
        if not self._asked:
            self._asked = True
            yield [ModelToolCall(asked.request_id, "c1", "give", "{}")]
        yield [ModelFinished(asked.request_id, "stop")]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


async def part_after(tmp_path: Path, output: Any) -> dict[str, Any]:
    """The tool part of an answer whose tool gives (or raises) this."""

    async def give(call_id: str, given: dict[str, Any]) -> Any:
        if isinstance(output, Exception):
            raise output
        return output

    class Giving(Think):
        """Offers the tool."""

        def __init__(self, storage: Storage) -> None:
            super().__init__(storage)
            self.tools = {"give": Tool("Gives.", {}, give)}

    ended = asyncio.Event()

    async def send(text: str) -> None:
        frame = decode_server(text)
        if isinstance(frame, ChatResponse) and frame.done:
            ended.set()

    driver = Driver(
        "giving/x",
        partial(Agent, "x", "giving", Giving),
        partial(Journal, path_of(tmp_path, "giving", "x"), "giving", "x"),
        cast("Model", OneCall()),
        lambda wake_s: None,
    )
    outbox = Outbox(send, lambda why: None, lambda: None)
    writer = asyncio.ensure_future(outbox.run())
    driver.receive(driver.connect(outbox), encode(request("r1", user("u1"))))
    try:
        await asyncio.wait_for(ended.wait(), 5)
        (part,) = [p for p in driver.messages[1]["parts"] if "toolCallId" in p]
    finally:
        driver.stop()
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
    return cast("dict[str, Any]", part)


@pytest.mark.parametrize("output", [None, {"a": [1]}, nested(90), "x" * (MAX_OUTPUT - 2)])
async def test_any_json_value_is_a_result(tmp_path: Path, output: Any) -> None:
    part = await part_after(tmp_path, output)
    assert (part["state"], part["output"]) == ("output-available", output)


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (nested(101), "nested too deep"),
        ("x" * MAX_OUTPUT, f"more than {MAX_OUTPUT} characters"),
        (object(), "object"),
        (ValueError("broken"), "broken"),
        (ValueError(), "ValueError()"),
    ],
)
async def test_what_is_no_result_is_an_error_that_the_model_reads(
    tmp_path: Path, output: Any, error: str
) -> None:
    part = await part_after(tmp_path, output)
    assert part["state"] == "output-error"
    assert error in part["errorText"]


class Together:
    """Says all it has to say at once."""

    async def answer(self, asked: CallModel) -> AsyncGenerator[list[ModelEvent], None]:
        """The events of one answer."""
        said: list[ModelEvent] = [ModelDelta(asked.request_id, "text", str(n)) for n in range(3)]
        yield [*said, ModelFinished(asked.request_id, "stop")]


async def test_what_comes_together_is_committed_at_once_and_before_any_of_it_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    ended = asyncio.Event()
    write = Journal.write

    def writing(self: Journal, writes: Sequence[Write]) -> None:
        write(self, writes)
        log.append("commit")

    class Noting:
        """An outbox that sends nothing."""

        def put(self, text: str) -> None:
            """Note what it is."""
            frame = decode_server(text)
            if isinstance(frame, ChatResponse):
                log.append(loads(frame.body)["type"] if frame.body else str(frame.outcome))
                if frame.done:
                    ended.set()

    monkeypatch.setattr(Journal, "write", writing)
    driver = Driver(
        "k/x",
        partial(Agent, "x", "k", Think),
        partial(Journal, path_of(tmp_path, "k", "x"), "k", "x"),
        cast("Model", Together()),
        lambda wake_s: None,
    )
    driver.receive(driver.connect(cast("Outbox", Noting())), encode(request("r1", user("u1"))))
    try:
        await asyncio.wait_for(ended.wait(), 5)
    finally:
        driver.stop()
    opening = ["commit", "start", "start-step"]
    answer = ["commit", "text-start", *["text-delta"] * 3, "text-end", "finish-step", "finish", "completed"]
    assert log == opening + answer
