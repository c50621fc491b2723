"""What a client has seen of the conversation, for what it sends next: an echo, a stop. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from think_conformance.history.op import Record, frame_of
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
        frame = frame_of(record) if record.kind == "frame-in" else None
        if frame is None:
            continue
        if frame.get("type") == "cf_agent_chat_messages":
            listed = frame.get("messages")
            well_formed = (m for m in listed if _is_message(m)) if isinstance(listed, list) else ()
            messages |= {m["id"]: m for m in well_formed}
        elif frame.get("type") == "cf_agent_use_chat_response" and not frame.get("error"):
            _stream(frame, streams, messages)
    answers = iter(range(1, len(messages) + 1))
    return [
        m if ids == "server-ids" or m["role"] == "user" else {**m, "id": f"own-{next(answers)}"}
        for m in messages.values()
    ]


def newest_stream(records: Sequence[Record], client: str) -> str | None:
    """The request id of the stream that this client was offered or shown last; None: of none."""
    for record in reversed(records):
        if record.kind != "frame-in" or record.ids.get("client") != client:
            continue
        frame = frame_of(record) or {}
        if frame.get("type") in _STREAMS and isinstance(frame.get("id"), str):
            return str(frame["id"])
    return None


_STREAMS = ("cf_agent_stream_resuming", "cf_agent_use_chat_response")


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("id"), str) and isinstance(value.get("role"), str)


def _stream(frame: Message, streams: dict[str, MessageBuilder], messages: dict[str, Message]) -> None:
    request = frame.get("id")
    try:
        chunk = loads(frame.get("body") or "")
    except (ValueError, TypeError):
        return
    if not isinstance(request, str) or not isinstance(chunk, dict):
        return
    if chunk.get("type") == "start":
        streams[request] = MessageBuilder(str(chunk.get("messageId") or f"own-{request}"))
    if builder := streams.get(request):
        builder.apply(chunk)
        if builder.has_content:
            message = builder.message
            messages[message["id"]] = message
