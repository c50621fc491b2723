"""The model's neutral pieces as UI stream chunks (wire protocol section 7)."""

from __future__ import annotations

from typing import Any

from think_reference.core.events import PartKind

Chunk = dict[str, Any]


class AnswerChunks:
    """Numbers the text blocks of one answer and closes each before anything else opens."""

    def __init__(self) -> None:
        self._blocks = 0
        self._open: tuple[PartKind, str] | None = None
        self._inputs: set[str] = set()

    def opening(self, message_id: str | None) -> list[Chunk]:
        """The chunks that open a stream; a continuation names no message (WIRE-84)."""
        named = {"messageId": message_id} if message_id is not None else {}
        return [{"type": "start", **named}, {"type": "start-step"}]

    def delta(self, kind: PartKind, text: str) -> list[Chunk]:
        """The chunks of a piece of text or reasoning."""
        chunks: list[Chunk] = []
        if self._open is None or self._open[0] != kind:
            chunks += self._close()
            self._blocks += 1
            self._open = (kind, f"{kind}-{self._blocks}")
            chunks.append({"type": f"{kind}-start", "id": self._open[1]})
        chunks.append({"type": f"{kind}-delta", "id": self._open[1], "delta": text})
        return chunks

    def tool_input(self, call_id: str, tool: str, text: str) -> list[Chunk]:
        """The chunks of a piece of a tool's input."""
        chunks = self._close()
        if call_id not in self._inputs:
            self._inputs.add(call_id)
            chunks.append({"type": "tool-input-start", "toolCallId": call_id, "toolName": tool})
        if text:
            chunks.append({"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": text})
        return chunks

    def tool_call(self, call_id: str, tool: str, given: dict[str, Any]) -> list[Chunk]:
        """The chunks of a tool call whose input is whole."""
        named = {"toolCallId": call_id, "toolName": tool}
        return [*self._close(), {"type": "tool-input-available", **named, "input": given}]

    def bad_call(self, call_id: str, tool: str, text: str, why: str) -> list[Chunk]:
        """The chunks of a tool call that cannot be run; `text` is its input as it came."""
        named = {"toolCallId": call_id, "toolName": tool}
        return [*self._close(), {"type": "tool-input-error", **named, "input": text, "errorText": why}]

    def next_step(self) -> list[Chunk]:
        """The chunks between two steps."""
        return [*self._close(), {"type": "finish-step"}, {"type": "start-step"}]

    def closing(self, reason: str) -> list[Chunk]:
        """The chunks that end a whole answer."""
        return [*self._close(), {"type": "finish-step"}, {"type": "finish", "finishReason": reason}]

    def _close(self) -> list[Chunk]:
        if self._open is None:
            return []
        kind, block = self._open
        self._open = None
        return [{"type": f"{kind}-end", "id": block}]
