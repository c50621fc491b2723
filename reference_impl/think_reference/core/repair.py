"""Tool calls that nobody will answer any more, given a result before the model reads them
(turn lifecycle section 8)."""

from __future__ import annotations

from typing import Any

from think_conformance.wire.chunks import TERMINAL, as_object
from think_conformance.wire.frames import Message

INTERRUPTED = "The tool call was interrupted before a result was recorded."


def repaired(message: Message) -> Message | None:
    """The message with each unsettled tool call as an error (TURN-121); None if all are settled.
    The given one is not changed."""
    if message["role"] != "assistant":
        return None
    parts = [_repaired(part) if is_call(part) and not settled(part) else part for part in message["parts"]]
    return None if parts == message["parts"] else {**message, "parts": parts}


def is_call(part: Any) -> bool:
    """Whether this part of a message is a tool call."""
    if not isinstance(part, dict) or not isinstance(part.get("toolCallId"), str):
        return False
    kind = part.get("type")
    return isinstance(kind, str) and (kind.startswith("tool-") or kind == "dynamic-tool")


def settled(call: dict[str, Any]) -> bool:
    """Whether the call has a result: never to be run or repaired again (TURN-123)."""
    return "output" in call or "result" in call or call.get("state") in TERMINAL


def _repaired(call: dict[str, Any]) -> dict[str, Any]:
    return {**call, "state": "output-error", "input": as_object(call.get("input")), "errorText": INTERRUPTED}
