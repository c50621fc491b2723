"""The body of a chat request, read and checked (wire protocol section 4.1)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from think_conformance.wire.codec import loads
from think_conformance.wire.frames import Message, RequestInit
from think_reference.core.bounds import MAX_DEPTH, too_deep

ROLES = ("user", "assistant", "system")
KNOWN = ("messages", "trigger", "clientTools")


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


def parse(init: RequestInit) -> ChatBody:
    """The body of a request; raises BadRequest."""
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
        if not _is_message(message):
            raise BadRequest(f"`messages[{index}]` must be an object with id, role and parts")
    custom = {k: v for k, v in body.items() if k not in KNOWN}
    return ChatBody(messages, body.get("trigger") == "regenerate-message", custom)


def _is_message(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("id"), str)
        and value["id"] != ""
        and value.get("role") in ROLES
        and isinstance(value.get("parts"), list)
    )
