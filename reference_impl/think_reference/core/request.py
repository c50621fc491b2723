"""A chat request, read and checked (wire protocol section 4.1).

The one door of what clients say: behind it, ids can be stored and every field of a message that is ever
read has its type.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from think_conformance.wire.codec import loads
from think_conformance.wire.frames import ChatRequest, ChatResponse, Message
from think_reference.core.bounds import MAX_DEPTH, too_deep

ROLES = ("user", "assistant", "system")
KNOWN = ("messages", "trigger", "clientTools")

NEEDED = {"text": ("text",), "reasoning": ("text",), "dynamic-tool": ("toolCallId", "toolName")}
"""Part type -> the texts it must have. One of a type that is not read has only its type."""

TOOL_NEEDED = ("toolCallId",)
"""The same for every type `tool-<name>`."""

OPTIONAL = ("state", "errorText")
"""What is a text in a part of these types, if it is there (section 7.1)."""


class BadRequest(Exception):
    """Nothing is run for this request; the text says why (WIRE-50)."""


class ChatBody(Struct, frozen=True):
    """What a client asks for. custom: its own fields (WIRE-56)."""

    messages: list[Message]
    regenerate: bool
    custom: dict[str, Any]

    @property
    def message_ids(self) -> tuple[str, ...]:
        """The ids of the trailing run of user messages (WIRE-60)."""
        ids: list[str] = []
        for message in reversed(self.messages):
            if message["role"] != "user":
                break
            ids.append(message["id"])
        return tuple(reversed(ids))

    @property
    def last_user(self) -> str | None:
        """The id of the last user message in the list."""
        return next((m["id"] for m in reversed(self.messages) if m["role"] == "user"), None)


def parse(request: ChatRequest) -> ChatBody:
    """The body of a request; raises BadRequest."""
    if not _is_id(request.id):
        raise BadRequest("`id` must be a text of Unicode characters")
    init = request.init
    if init.method != "POST":
        raise BadRequest("`init.method` must be POST")
    if init.body is None:
        raise BadRequest("`init.body` is missing")
    try:
        body = loads(init.body)
    except ValueError as error:
        raise BadRequest(f"`init.body` is {error}") from None
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list):
        raise BadRequest("`messages` must be an array")
    if too_deep(body):
        raise BadRequest(f"`init.body` is nested more than {MAX_DEPTH} deep")
    for index, message in enumerate(messages):
        _check_message(f"messages[{index}]", message)
    custom = {k: v for k, v in body.items() if k not in KNOWN}
    return ChatBody(messages, body.get("trigger") == "regenerate-message", custom)


def refusal(request_id: str, why: str) -> ChatResponse:
    """What the sender of a request is told of which nothing is stored and nothing runs (WIRE-50)."""
    return ChatResponse(id=request_id, body=why, done=True, error=True, outcome="error")


def _check_message(where: str, message: Any) -> None:
    good = (
        isinstance(message, dict)
        and _is_id(message.get("id"))
        and message.get("role") in ROLES
        and isinstance(message.get("parts"), list)
    )
    if not good:
        raise BadRequest(f"`{where}` must be an object with id, role and parts")
    for index, part in enumerate(message["parts"]):
        if problem := _problem(part):
            raise BadRequest(f"`{where}.parts[{index}]` {problem}")


def _problem(part: Any) -> str | None:
    """What is wrong with a part; None for a good one and for one of an unknown type (WIRE-120)."""
    if not isinstance(part, dict):
        return "must be an object"
    kind = part.get("type")
    if not isinstance(kind, str):
        return "needs a text `type`"
    needed = TOOL_NEEDED if kind.startswith("tool-") else NEEDED.get(kind)
    if needed is None:
        return None
    for field in needed:
        if not isinstance(part.get(field), str):
            return f"needs a text `{field}`"
    for field in OPTIONAL:
        if not isinstance(part.get(field), str | None):
            return f"has a `{field}` that is no text"
    return None


def _is_id(value: object) -> bool:
    """Whether it can name a row: what a split emoji leaves may stand in a text, never in a name."""
    if not isinstance(value, str) or value == "":
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
