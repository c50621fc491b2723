"""The tools as they are offered to the model, and its calls, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from think_conformance.wire.codec import loads
from think_reference.core.application import Tool
from think_reference.core.bounds import MAX_DEPTH, too_deep


class BadCall(Exception):
    """The call cannot be run; the text tells the model why (WIRE-217)."""


def checked(tool: str, text: str, offered: Mapping[str, Tool]) -> dict[str, Any]:
    """The input of a call of `tool`, from its JSON text; empty text is no arguments. Raises BadCall."""
    if tool not in offered:
        raise BadCall(f"there is no tool `{tool}`")
    try:
        given = loads(text or "{}")
    except ValueError as error:
        raise BadCall(f"the input of `{tool}` is {error}") from None
    if not isinstance(given, dict):
        raise BadCall(f"the input of `{tool}` must be an object")
    if too_deep(given):
        raise BadCall(f"the input of `{tool}` is nested more than {MAX_DEPTH} deep")
    return given


def described(offered: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """The tools as a chat-completion request offers them."""
    return [
        {
            "type": "function",
            "function": {"name": name, "description": tool.description, "parameters": tool.parameters},
        }
        for name, tool in offered.items()
    ]
