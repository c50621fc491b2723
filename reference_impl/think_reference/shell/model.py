"""The model provider: an OpenAI-compatible chat-completions endpoint, streamed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import aiohttp

from think_conformance.wire.codec import loads
from think_reference.core.effects import CallModel
from think_reference.core.events import (
    ModelDelta,
    ModelEvent,
    ModelFinished,
    ModelToolCall,
    ModelToolInput,
    PartKind,
)
from think_reference.core.sse import MAX_EVENT, EventTooLarge, SseParser

CONNECT_S = 10.0
MAX_ERROR_TEXT = 2000
MAX_ANSWER = 64 * 1024 * 1024
"""Bytes of one answer as it comes over the wire."""

MAX_CALLS = 128
"""Tool calls of one answer."""

REASONS = {"tool_calls": "tool-calls", "content_filter": "content-filter"}
"""Finish reasons whose chunk has another word for it (WIRE-226)."""


class ModelError(Exception):
    """No whole answer. `in_band`: what came, up to its end, says so by itself; no connection broke."""

    def __init__(self, text: str, *, in_band: bool = False) -> None:
        super().__init__(text[:MAX_ERROR_TEXT] or "the model failed and gave no reason")
        self.in_band = in_band


class Model:
    """A client of one endpoint. `url` is its base, such as http://127.0.0.1:4000/v1."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/") + "/chat/completions"
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            connector=aiohttp.TCPConnector(force_close=True, limit=0),
            headers={"Accept-Encoding": "identity"},
            auto_decompress=False,
        )

    async def close(self) -> None:
        """Hang up on everything."""
        await self._session.close()

    async def answer(self, asked: CallModel) -> AsyncGenerator[list[ModelEvent], None]:
        """The events of one answer, `ModelFinished` last; those that came together are given together,
        never none. Raises ModelError. Closing it hangs up."""
        body: dict[str, Any] = {"model": "think-reference", "stream": True, "messages": asked.messages}
        if asked.tools:
            body["tools"] = asked.tools
        try:
            async with self._session.post(self._url, json=body) as response:
                if response.status != 200:
                    raise ModelError(await _error_text(response), in_band=True)
                async for events in _events(asked.request_id, response):
                    yield events
        except EventTooLarge as error:
            raise ModelError(f"the model's stream holds {error}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ModelError(f"the model cannot be reached: {error or type(error).__name__}") from error


async def _events(
    request_id: str, response: aiohttp.ClientResponse
) -> AsyncGenerator[list[ModelEvent], None]:
    parser, completion, received = SseParser(), Completion(request_id), 0
    async for data in response.content.iter_any():
        received += len(data)
        if received > MAX_ANSWER:
            raise ModelError(f"the model's answer has more than {MAX_ANSWER} bytes")
        events: list[ModelEvent] = []
        try:
            for text in parser.feed(data):
                if text == "[DONE]":
                    yield events + completion.end()
                    return
                events += completion.read(text)
        except ModelError:
            if events:  # what was said before the failure was said
                yield events
            raise
        if events:
            yield events
    raise ModelError("the model's stream ended before its answer did", in_band=True)


class _Call:
    """A tool call as far as its pieces have come."""

    def __init__(self, index: int) -> None:
        self.id, self.tool, self.size = f"call-{index}", "", 0
        self.pieces: list[str] = []

    def take(self, piece: dict[str, Any]) -> str:
        """Add a piece; the part of the input in it."""
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        self.id = _text(piece.get("id")) or self.id
        self.tool = _text(function.get("name")) or self.tool
        text = _text(function.get("arguments")) or ""
        self.size += len(text)
        if self.size > MAX_EVENT:
            raise ModelError(f"the model's tool call has an input of more than {MAX_EVENT} characters")
        self.pieces.append(text)
        return text


class Completion:
    """Reads the events of one streamed chat completion; a tool call is whole when the answer ends."""

    def __init__(self, request_id: str) -> None:
        self._request_id = request_id
        self._reason = "other"
        self._calls: dict[int, _Call] = {}

    def read(self, event: str) -> list[ModelEvent]:
        """What one event says. Raises ModelError."""
        choice = _choice(event)
        reason = _text(choice.get("finish_reason"))
        self._reason = reason or self._reason
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        kinds: tuple[tuple[PartKind, str], ...] = (("reasoning", "reasoning_content"), ("text", "content"))
        said: list[ModelEvent] = [
            ModelDelta(self._request_id, kind, text)
            for kind, field in kinds
            if (text := _text(delta.get(field)))
        ]
        calls = delta.get("tool_calls")
        pieces = [c for c in calls if isinstance(c, dict)] if isinstance(calls, list) else []
        return said + [event for piece in pieces for event in self._tool_input(piece)]

    def end(self) -> list[ModelEvent]:
        """What the end of the answer makes whole."""
        whole: list[ModelEvent] = [
            ModelToolCall(self._request_id, call.id, call.tool, "".join(call.pieces))
            for call in self._calls.values()
        ]
        return [*whole, ModelFinished(self._request_id, REASONS.get(self._reason, self._reason))]

    def _tool_input(self, piece: dict[str, Any]) -> list[ModelEvent]:
        given = piece.get("index")
        index = given if isinstance(given, int) else 0
        if index not in self._calls and len(self._calls) >= MAX_CALLS:
            raise ModelError(f"the model's answer has more than {MAX_CALLS} tool calls")
        call = self._calls.setdefault(index, _Call(index))
        text = call.take(piece)
        return [ModelToolInput(self._request_id, call.id, call.tool, text)] if call.tool else []


def _choice(text: str) -> dict[str, Any]:
    try:
        value = loads(text)
    except ValueError as error:
        raise ModelError(f"the model's stream is {error}") from None
    if not isinstance(value, dict):
        raise ModelError("the model's stream holds an event that is no object")
    if value.get("error"):
        raise ModelError(_message_of(value["error"]), in_band=True)
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _message_of(error: Any) -> str:
    found = error.get("message") if isinstance(error, dict) else error
    return found if isinstance(found, str) else "the model reported an error"


async def _error_text(response: aiohttp.ClientResponse) -> str:
    """What an HTTP error says; only as much of it is read as can be shown."""
    shown = (await response.content.read(MAX_ERROR_TEXT)).decode("utf-8", "replace")
    try:
        value = loads(shown)
    except ValueError:
        value = None
    if isinstance(value, dict) and value.get("error"):
        shown = _message_of(value["error"])
    return f"the model answered {response.status}: {shown}".rstrip(": ")
