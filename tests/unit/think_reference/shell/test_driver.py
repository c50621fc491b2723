"""The driver with a journal and a model of its own: what a tool may give back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest

from reference_world import request, user
from think_conformance.wire.codec import decode_server, encode
from think_conformance.wire.frames import ChatResponse
from think_reference.agent import Think
from think_reference.core.agent import Agent
from think_reference.core.application import Storage, Tool
from think_reference.core.effects import CallModel
from think_reference.core.events import ModelEvent, ModelFinished, ModelToolCall
from think_reference.shell.driver import MAX_OUTPUT, Driver
from think_reference.shell.journal import Journal
from think_reference.shell.model import Model
from think_reference.shell.outbox import Outbox


class OneCall:
    """Asks for the tool once, then is content."""

    def __init__(self) -> None:
        self._asked = False

    async def answer(self, asked: CallModel) -> AsyncGenerator[ModelEvent, None]:
        """The events of one answer."""
        if not self._asked:
            self._asked = True
            yield ModelToolCall(asked.request_id, "c1", "give", "{}")
        yield ModelFinished(asked.request_id, "stop")


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

    journal = Journal(tmp_path / "x.sqlite3", "giving", "x")
    agent = Agent("x", "giving", Giving)
    driver = Driver(agent, journal, cast("Model", OneCall()), lambda wake_s: None, pytest.fail)
    driver.load()
    outbox = Outbox(send, lambda: None, lambda: None)
    writer = asyncio.ensure_future(outbox.run())
    driver.receive(driver.connect(outbox), encode(request("r1", user("u1"))))
    try:
        await asyncio.wait_for(ended.wait(), 5)
    finally:
        driver.stop()
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
    (part,) = [p for p in driver.messages[1]["parts"] if "toolCallId" in p]
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
