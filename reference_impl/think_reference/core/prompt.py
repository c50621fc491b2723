"""The transcript as the model is asked with it (TURN-54, WIRE-62)."""

from __future__ import annotations

from typing import Any

from think_conformance.wire.chunks import as_object
from think_conformance.wire.codec import dumps
from think_conformance.wire.frames import Message
from think_reference.core.repair import is_call
from think_reference.core.transcript import Transcript, text_of
from think_reference.core.turn import Turn

GO_ON = "Your answer was cut off. Go on exactly where it stopped, and do not repeat what you already said."

Asked = dict[str, Any]
"""One chat-completion message."""


def prompt_for(turn: Turn, transcript: Transcript, answer: Message) -> list[Asked]:
    """The history up to the turn's own user message, nothing that came later, then what the turn has
    answered so far. Where that ends in the assistant's words it also asks to go on, since providers
    refuse such a prompt."""
    history = [m for m in transcript.through(turn.anchor) if m["id"] != answer["id"]]
    asked = [a for message in (*history, answer) for a in _asked(message)]
    if asked and asked[-1]["role"] == "assistant":
        asked.append({"role": "user", "content": GO_ON})
    return asked


def _asked(message: Message) -> list[Asked]:
    """A message in the provider's words. Each step of an answer that called tools is followed by their
    results; steps that only spoke are one text."""
    if message["role"] != "assistant":
        return [{"role": message["role"], "content": text_of(message)}]
    asked: list[Asked] = []
    text, calls = "", list[dict[str, Any]]()
    for part in [*message["parts"], {"type": "step-start"}]:
        if is_call(part):
            calls.append(part)
        elif not isinstance(part, dict):
            continue
        elif part.get("type") == "text" and isinstance(part.get("text"), str):
            text += part["text"]
        elif part.get("type") == "step-start" and calls:
            asked += _step(text, calls)
            text, calls = "", []
    return asked + ([{"role": "assistant", "content": text}] if text else [])


def _step(text: str, calls: list[dict[str, Any]]) -> list[Asked]:
    asked = [{"id": c["toolCallId"], "type": "function", "function": _function(c)} for c in calls]
    results = [{"role": "tool", "tool_call_id": c["toolCallId"], "content": _result(c)} for c in calls]
    return [{"role": "assistant", "content": text or None, "tool_calls": asked}, *results]


def _function(call: dict[str, Any]) -> dict[str, str]:
    name = call["toolName"] if call["type"] == "dynamic-tool" else call["type"].removeprefix("tool-")
    return {"name": str(name), "arguments": dumps(as_object(call.get("input")))}


def _result(call: dict[str, Any]) -> str:
    if call.get("state") == "output-available":
        output = call.get("output")
        return output if isinstance(output, str) else dumps(output)
    error = call.get("errorText")
    return error if isinstance(error, str) else "The tool gave no result."
