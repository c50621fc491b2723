"""The model's neutral pieces as UI stream chunks (wire protocol section 7)."""

from __future__ import annotations

from typing import Any

from think_reference.core.events import PartKind

Chunk = dict[str, Any]


class AnswerChunks:
    """Numbers the blocks of one model answer and closes each before the next one opens."""

    def __init__(self) -> None:
        self._blocks = 0
        self._open: tuple[PartKind, str] | None = None

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

    def closing(self, reason: str) -> list[Chunk]:
        """The chunks that end a whole answer."""
        return [*self._close(), {"type": "finish-step"}, {"type": "finish", "finishReason": reason}]

    def _close(self) -> list[Chunk]:
        if self._open is None:
            return []
        kind, block = self._open
        self._open = None
        return [{"type": f"{kind}-end", "id": block}]
