"""The transcript as the model is asked with it (TURN-54, WIRE-62)."""

from __future__ import annotations

from think_conformance.wire.frames import Message
from think_reference.core.transcript import Transcript, text_of
from think_reference.core.turn import Turn

GO_ON = "Your answer was cut off. Go on exactly where it stopped, and do not repeat what you already said."


def prompt_for(turn: Turn, transcript: Transcript) -> list[dict[str, str]]:
    """Chat-completion messages [{role, content}]: the history up to the turn's own user message,
    nothing that came later; for a continuation also its own partial and a request to go on, since
    providers refuse a prompt that ends in the assistant's words."""
    asked = _history(transcript.through(turn.anchor))
    partial = transcript.get(turn.message_id) if turn.continuation else None
    if partial is not None and text_of(partial):
        asked.append(_asked(partial))
    if asked and asked[-1]["role"] == "assistant":
        asked.append({"role": "user", "content": GO_ON})
    return asked


def _history(messages: list[Message]) -> list[dict[str, str]]:
    return [_asked(m) for m in messages if m["role"] != "assistant" or text_of(m)]


def _asked(message: Message) -> dict[str, str]:
    return {"role": message["role"], "content": text_of(message)}
