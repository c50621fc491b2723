"""The conversation as a client has seen it, for a request that repeats it (an echo). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from think_conformance.history.op import Record
from think_conformance.wire.chunks import MessageBuilder
from think_conformance.wire.codec import loads
from think_conformance.wire.frames import Message


def conversation(
    records: Sequence[Record], client: str, ids: Literal["server-ids", "own-ids"]
) -> list[Message]:
    """The client's own messages and the answers it was shown, streamed ones as far as they came.
    `own-ids`: answers under ids the client made up, as if it never learned the server's."""
    messages: dict[str, Message] = {}
    streams: dict[str, MessageBuilder] = {}
    for record in records:
        if record.ids.get("client") != client or not isinstance(record.payload, dict):
            continue
        if record.kind == "invoke" and record.payload.get("do") == "send":
            messages |= {m["id"]: m for m in record.payload["messages"]}
        frame = record.payload.get("frame") if record.kind == "frame-in" else None
        if not isinstance(frame, dict):
            continue
        if frame.get("type") == "cf_agent_chat_messages":
            messages |= {m["id"]: m for m in frame["messages"]}
        elif frame.get("type") == "cf_agent_use_chat_response" and not frame.get("error"):
            _stream(frame, streams, messages)
    answers = iter(range(1, len(messages) + 1))
    return [
        m if ids == "server-ids" or m["role"] == "user" else {**m, "id": f"own-{next(answers)}"}
        for m in messages.values()
    ]


def _stream(frame: Message, streams: dict[str, MessageBuilder], messages: dict[str, Message]) -> None:
    request = frame["id"]
    if frame["done"] or not frame["body"]:
        return
    chunk = loads(frame["body"])
    if chunk.get("type") == "start":
        streams[request] = MessageBuilder(chunk.get("messageId") or f"own-{request}")
    if builder := streams.get(request):
        builder.apply(chunk)
        if builder.has_content:
            message = builder.message
            messages[message["id"]] = message
