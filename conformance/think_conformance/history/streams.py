"""Texts: what a connection showed of a request's stream, and what a transcript stores.

A client drops repeats by (request id, seq) and builds a message anew when a replay restarts it
(WIRE-83, WIRE-115). Builds that send no seq are read by the order of arrival (WIRE-208).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from think_conformance.history.traffic import Connection, is_chunk
from think_conformance.wire.codec import loads
from think_conformance.wire.frames import ChatRequest, ChatResponse, Message, ResumeAck

MAX_TEXTS = 200
"""Bounds the comparing of texts: more parts than this in one stream are not looked at."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One stream chunk as a connection received it. `asked` counts the acks and sends of the
    request on that connection before it: a replay belongs to one of them."""

    index: int
    seq: int | None
    replay: bool
    asked: int
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Transcript:
    """The full transcript as it was seen in record `index`; `connection` None: read over HTTP."""

    index: int
    connection: str | None
    messages: list[Message]


def streams_of(connection: Connection) -> dict[str, list[Chunk]]:
    """The chunks a connection received, by request id, up to the first tampering."""
    found: dict[str, list[Chunk]] = {}
    asked: dict[str, int] = {}
    for passed in connection.honest():
        frame = passed.frame
        if isinstance(frame, (ResumeAck, ChatRequest)):
            asked[frame.id] = asked.get(frame.id, 0) + 1
        elif isinstance(frame, ChatResponse) and is_chunk(frame):
            body = _object(frame.body)
            chunk = Chunk(passed.index, frame.seq, frame.replay, asked.get(frame.id, 0), body)
            found.setdefault(frame.id, []).append(chunk)
    return found


def runs(chunks: list[Chunk]) -> list[list[dict[str, Any]]]:
    """The bodies of a request's chunks as unbroken runs: a gap in `seq` ends one, each pass of a
    stream without `seq` is one, and a stream that starts anew forgets what came before."""
    if any(chunk.seq is not None for chunk in chunks):
        return _runs_by_seq(chunks)
    found: list[list[dict[str, Any]]] = []
    before: Chunk | None = None
    for chunk in chunks:
        fresh = before is None or (chunk.replay and (not before.replay or chunk.asked != before.asked))
        if fresh:
            found.append([])
        elif chunk.body.get("type") == "start":
            found[-1].clear()
        found[-1].append(chunk.body)
        before = chunk
    return found


def _runs_by_seq(chunks: list[Chunk]) -> list[list[dict[str, Any]]]:
    bodies: dict[int, dict[str, Any]] = {}
    breaks: set[int] = set()  # a chunk too large to store has no seq (WIRE-82)
    for chunk in chunks:
        if chunk.seq is None:
            breaks.add(max(bodies, default=-1) + 1)
        else:
            bodies.setdefault(chunk.seq, chunk.body)
    found: list[list[dict[str, Any]]] = []
    for seq in sorted(bodies):
        if bodies[seq].get("type") == "start":
            found = []
        if not found or seq - 1 not in bodies or seq in breaks:
            found.append([])
        found[-1].append(bodies[seq])
    return found


def texts(run: list[dict[str, Any]]) -> list[str]:
    """The text parts a run of chunks builds, in order of their opening, empty ones left out; at
    most MAX_TEXTS of them."""
    parts: list[list[str]] = []
    current: dict[Any, list[str]] = {}
    for body in run:
        kind, ident = body.get("type"), str(body.get("id"))
        if kind not in ("text-start", "text-delta"):
            continue
        if kind == "text-start" or ident not in current:
            current[ident] = []
            parts.append(current[ident])
        if kind == "text-delta" and isinstance(body.get("delta"), str):
            current[ident].append(body["delta"])
    return [text for part in parts[:MAX_TEXTS] if (text := "".join(part))]


def shown(chunks: list[Chunk]) -> list[str]:
    """Every text a client saw of a request."""
    return [text for run in runs(chunks) for text in texts(run)]


def message_text(message: Message) -> str:
    """The text of a stored message, its text parts joined."""
    parts = message.get("parts")
    return "".join(
        part["text"]
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    )


def answers(messages: list[Message]) -> list[str]:
    """The texts of the assistant's messages, empty ones left out."""
    return [text for m in messages if m.get("role") == "assistant" and (text := message_text(m))]


def _object(text: str) -> dict[str, Any]:
    try:
        value = loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
