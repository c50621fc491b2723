"""Which fields the frames of a run have, and of which kind their values are: judged over the whole run,
so that it does not matter in which case a field shows first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from think_conformance.differences.labels import Frame, chunk_of, listed, part, told, word
from think_conformance.history.op import History, frame_of

WORDS = frozenset({"finishReason"})
"""Fields whose values are words of the protocol: the word is the kind."""
DEEPEST = 3
"""Levels of objects that are looked into."""
OPEN = frozenset({"input", "output", "mcp", "result", "state", "data"})
"""Fields whose content is the application's."""

Shapes = dict[str, dict[str, tuple[str, int]]]
"""What has fields -> a field and the kind of its value -> the first case and record that show it."""


def shapes(cases: Iterable[tuple[str, History]]) -> Shapes:
    """All that the frames of a run show."""
    found: Shapes = {}
    for case, history in cases:
        for record in history:
            frame = frame_of(record) if record.kind == "frame-in" else None
            for heading, fields in _things(frame) if frame is not None else ():
                seen = found.setdefault(heading, {})
                for text in _fields(fields):
                    seen.setdefault(text, (case, record.index))
    return found


def _things(frame: Frame) -> Iterator[tuple[str, Frame]]:
    """A frame and what it carries, each with its heading."""
    chunk = chunk_of(frame)
    if chunk is None:
        yield told(frame), {key: value for key, value in frame.items() if key not in ("messages", "message")}
    else:
        yield "replayed chunk" if frame.get("replay") else "live chunk", frame
        yield f"{word(chunk.get('type'))} chunk", chunk
    for message in [*listed(frame.get("messages")), frame.get("message")]:
        if isinstance(message, dict):
            yield f"{word(message.get('role'))} message", {**message, "parts": []}
            for piece in listed(message.get("parts")):
                if isinstance(piece, dict):
                    yield f"{part(piece)} part", piece


def _fields(fields: Frame, prefix: str = "", depth: int = DEEPEST) -> Iterator[str]:
    for key, value in fields.items():
        name = f"{prefix}{word(key)}"
        yield f"{name} ({_kind(key, value)})"
        if isinstance(value, dict) and depth and key not in OPEN:
            yield from _fields(value, f"{name}.", depth - 1)


def _kind(key: str, value: Any) -> str:
    if isinstance(value, str):
        return word(value) if key in WORDS else "text"
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int | float):
        return "number"
    if value is None:
        return "null"
    return "list" if isinstance(value, list) else "object"
