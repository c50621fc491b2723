"""A frame as a label: what it is and what tells it apart, never what only chance decides.

Ids become names, texts and packing are left out. The content of a frame comes from a target and is
bounded here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from think_conformance.history.plain import plain
from think_conformance.wire.codec import loads

Frame = dict[str, Any]

RESPONSE = "cf_agent_use_chat_response"
OFFERS = {
    "cf_agent_stream_resuming": "offer",
    "cf_agent_stream_pending": "pending",
    "cf_agent_stream_resume_none": "none",
}
"""Frames that tell a client whether there is a stream for it; with `probeId` they answer a probe."""
PIECES = frozenset({"text-delta", "reasoning-delta", "tool-input-delta"})
"""Chunk types of which any number in a row say the same as one."""
SUCCESSOR = "successor-"
CONTINUED = ", continuation"
WORD = 80
"""Characters of one word that a target chose."""


@dataclass(frozen=True, slots=True)
class Label:
    """`text` is the same in every case, `request` the name of the request in this case; `chunk`: it is a
    stream chunk. `record` is the index of the record that shows it, and tells no two labels apart."""

    text: str
    request: str = ""
    chunk: bool = False
    record: int = field(default=-1, compare=False)

    @property
    def piece(self) -> bool:
        """Whether another one like it adds nothing."""
        return self.chunk and self.text.removesuffix(CONTINUED) in PIECES

    def __str__(self) -> str:
        return f"{self.text} of a successor" if self.request.startswith(SUCCESSOR) else self.text


def label(frame: Frame | None, request: str, record: int) -> Label:
    """The label of a frame that a target sent about a request; None is what was no JSON object."""
    return Label(told(frame), request, frame is not None and chunk_of(frame) is not None, record)


def told(frame: Frame | None) -> str:
    """What a frame is, in words."""
    if frame is None:
        return "no JSON object"
    kind = word(frame.get("type"))
    if kind == RESPONSE:
        return _response(frame)
    if kind in OFFERS:
        return f"{OFFERS[kind]} {word(frame['reason'])}" if "reason" in frame else OFFERS[kind]
    if kind == "cf_agent_chat_messages":
        roles = [word(m.get("role")) for m in listed(frame.get("messages")) if isinstance(m, dict)]
        last = f"transcript up to {roles[-1]}" if roles else "empty transcript"
        return f"{last}, connect" if frame.get("connect") else last
    if kind == "cf_agent_chat_recovering":
        return f"recovering {str(frame.get('recovering') is True).lower()}"
    if kind == "rpc":
        return "rpc result" if frame.get("success") else "rpc error"
    return kind.removeprefix("cf_agent_")


def _response(frame: Frame) -> str:
    chunk = chunk_of(frame)
    if chunk is not None:
        what = word(chunk.get("type"))
    elif frame.get("done"):
        what = f"terminal {word(frame['outcome'])}" if "outcome" in frame else "terminal without outcome"
        what += "".join(f", {flag}" for flag in ("error", "replay") if frame.get(flag))
    elif frame.get("error"):
        what = "error text"
    else:
        what = "replay complete" if frame.get("replayComplete") else "unreadable chunk"
    return what + (CONTINUED if frame.get("continuation") else "")


def chunk_of(frame: Frame) -> Frame | None:
    """The stream chunk that a response carries; None for a terminal, an error and all else."""
    if frame.get("type") != RESPONSE or frame.get("done") or frame.get("error") or not frame.get("body"):
        return None
    try:
        chunk = loads(frame["body"])
    except (TypeError, ValueError, RecursionError):
        return None
    return chunk if isinstance(chunk, dict) else None


def part(value: object) -> str:
    """What a part of a message is: its type, whatever the tool, and its state."""
    if not isinstance(value, dict):
        return "no part"
    kind = word(value.get("type"))
    kind = "tool" if kind.startswith("tool-") else kind
    return f"{kind} ({word(value['state'])})" if "state" in value else kind


def word(value: object) -> str:
    """A word that a target chose."""
    return plain(value, WORD) if isinstance(value, str) else f"a {type(value).__name__}"


def listed(value: object) -> list[Any]:
    """A list that a target sent; nothing, where it is none."""
    return value if isinstance(value, list) else []
