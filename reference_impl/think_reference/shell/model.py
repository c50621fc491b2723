"""The model provider: an OpenAI-compatible chat-completions endpoint, streamed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
from msgspec import Struct

from think_conformance.wire.codec import loads
from think_reference.core.events import PartKind
from think_reference.core.sse import EventTooLarge, SseParser

CONNECT_S = 10.0
MAX_ERROR_TEXT = 2000
MAX_ANSWER = 64 * 1024 * 1024
"""Bytes of one answer as it comes over the wire."""

REASONS = {"tool_calls": "tool-calls", "content_filter": "content-filter"}
"""Finish reasons whose chunk has another word for it (WIRE-226)."""


class Said(Struct, frozen=True):
    """A piece of the answer."""

    kind: PartKind
    text: str


class Finished(Struct, frozen=True):
    """The answer is whole."""

    reason: str


class ModelError(Exception):
    """No whole answer. `in_band`: the model's own stream said so."""

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

    async def answer(self, messages: list[dict[str, str]]) -> AsyncGenerator[Said | Finished, None]:
        """The pieces of one answer, `Finished` last. Raises ModelError. Closing the iterator hangs up."""
        asked = {"model": "think-reference", "stream": True, "messages": messages}
        try:
            async with self._session.post(self._url, json=asked) as response:
                if response.status != 200:
                    raise ModelError(await _error_text(response))
                async for piece in _pieces(response):
                    yield piece
        except EventTooLarge as error:
            raise ModelError(f"the model's stream holds {error}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ModelError(f"the model cannot be reached: {error or type(error).__name__}") from error


async def _pieces(response: aiohttp.ClientResponse) -> AsyncGenerator[Said | Finished, None]:
    parser, reason, received = SseParser(), "other", 0
    async for data in response.content.iter_any():
        received += len(data)
        if received > MAX_ANSWER:
            raise ModelError(f"the model's answer has more than {MAX_ANSWER} bytes")
        for event in parser.feed(data):
            if event == "[DONE]":
                yield Finished(REASONS.get(reason, reason))
                return
            said, ended = _read(event)
            reason = ended or reason
            for piece in said:
                yield piece
    raise ModelError("the model's stream ended before its answer did")


def _read(event: str) -> tuple[list[Said], str | None]:
    """What one event says, and why the answer ended if it says that."""
    try:
        value = loads(event)
    except ValueError as error:
        raise ModelError(f"the model's stream is {error}") from None
    if not isinstance(value, dict):
        raise ModelError("the model's stream holds an event that is no object")
    if value.get("error"):
        raise ModelError(_message_of(value["error"]), in_band=True)
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return [], None
    delta = choice.get("delta")
    delta = delta if isinstance(delta, dict) else {}
    kinds: tuple[tuple[PartKind, str], ...] = (("reasoning", "reasoning_content"), ("text", "content"))
    said = [Said(kind, text) for kind, field in kinds if (text := _text(delta.get(field)))]
    return said, _text(choice.get("finish_reason"))


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
