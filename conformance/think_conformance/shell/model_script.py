"""What the scripted model says: checks scripts, and turns steps into server-sent events. Pure.

The events are those of a streamed OpenAI-compatible chat completion.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from think_conformance.errors import UsageError, suggest
from think_conformance.plan import Step
from think_conformance.wire.codec import dumps

Scripts = dict[str, list[list[Step]]]
"""Per turn, per call, the steps."""

_MARKER = re.compile(r"\[\[([^\[\]]{1,200})/([^\[\]/]{1,100})\]\]")

# Per step: the type of its value, and the keys that may stand beside it.
_STEPS: dict[str, tuple[type, dict[str, type]]] = {
    "text": (str, {}),
    "reasoning": (str, {}),
    "gate": (str, {}),
    "tool": (str, {"args": dict, "id": str}),
    "usage": (dict, {}),
    "status": (int, {"body": object, "headers": dict}),
    "error": (str, {}),
    "silence": (bool, {}),
    "cut": (bool, {}),
}

_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def find_marker(messages: Any) -> tuple[str, str] | None:
    """(case, turn) of the last `[[case/turn]]` in a user message of the prompt."""
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            found = _MARKER.findall(_text(message.get("content")))
            if found:
                case, turn = found[-1]
                return case, turn
    return None


def check_scripts(scripts: Scripts) -> None:
    """UsageError at the first step that the model cannot say."""
    for turn, calls in scripts.items():
        if not calls:
            raise UsageError(f"model script of `{turn}`: no calls; give at least one list of steps")
        for call, steps in enumerate(calls, start=1):
            for position, step in enumerate(steps, start=1):
                problem = _problem(
                    step, first=position == 1 or all(_is_gate(s) for s in steps[: position - 1])
                )
                if problem:
                    raise UsageError(f"model script of `{turn}`, call {call}, step {position}: {problem}")


class Completion:
    """The events of one call, in order; knows what a finish has to say about those before it."""

    def __init__(self, ident: str) -> None:
        self._id = ident
        self._tools = 0
        self._usage: dict[str, Any] = _USAGE

    def events(self, step: Step) -> list[bytes]:
        """What to write for a step that says something; empty for `usage`, which the finish tells."""
        if isinstance(step, str):
            reason = "tool_calls" if self._tools else "stop"
            ending = {**self._chunk({}), "choices": [], "usage": self._usage}
            return [_event(self._chunk({}, reason)), _event(ending), b"data: [DONE]\n\n"]
        if "text" in step:
            return [_event(self._chunk({"role": "assistant", "content": step["text"]}))]
        if "reasoning" in step:
            return [_event(self._chunk({"role": "assistant", "reasoning_content": step["reasoning"]}))]
        if "tool" in step:
            return [_event(self._chunk(self._tool(step)))]
        if "error" in step:
            return [_event({"error": {"message": step["error"], "type": "server_error", "code": None}})]
        self._usage = step["usage"]
        return []

    def _tool(self, step: Mapping[str, Any]) -> dict[str, Any]:
        index = self._tools
        self._tools += 1
        ident = step.get("id", f"{self._id}-tool-{index}")
        function = {"name": step["tool"], "arguments": dumps(step.get("args", {}))}
        call = {"index": index, "id": ident, "type": "function", "function": function}
        return {"role": "assistant", "tool_calls": [call]}

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "scripted",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }


def error_body(message: str) -> dict[str, Any]:
    """The body of an answer with an error status."""
    return {"error": {"message": message, "type": "scripted_error", "code": None}}


def _event(value: dict[str, Any]) -> bytes:
    return f"data: {dumps(value)}\n\n".encode()


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(p["text"] for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str))


def _is_gate(step: Step) -> bool:
    return isinstance(step, dict) and "gate" in step


def _problem(step: Step, *, first: bool) -> str | None:
    if step == "done":
        return None
    if not isinstance(step, dict):
        return f"`{step}` is no step{suggest(str(step), ['done', *_STEPS])}"
    name = next((key for key in step if key in _STEPS), None)
    if name is None:
        return f"{dumps(step)} is no step; known: done, {', '.join(_STEPS)}"
    kind, beside = _STEPS[name]
    types = {name: kind, **beside}
    for key, value in step.items():
        if key not in types:
            return f"`{key}` cannot stand beside `{name}`{suggest(key, list(beside))}"
        if not isinstance(value, types[key]):
            return f"`{key}` is to be a {types[key].__name__}"
    if kind is bool and step[name] is not True:
        return f"`{name}` is to be true, or left out"
    if name == "status" and not 400 <= step[name] <= 599:
        return f"`status` is {step[name]}; give an error status, 400 to 599"
    if name == "status" and not first:
        return "`status` comes after the answer has begun; only gates may stand before it"
    return None
