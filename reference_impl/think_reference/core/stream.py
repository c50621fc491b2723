"""The chunk log of the running turn, and the frames that carry it.

`seq` is the index in the log, live and replayed alike (WIRE-81); the log is in the journal before a
chunk is shown.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from think_conformance.wire.chunks import MessageBuilder
from think_conformance.wire.codec import dumps, loads
from think_conformance.wire.frames import ChatResponse, Message
from think_reference.core.answer import AnswerChunks, Chunk
from think_reference.core.effects import AddChunk, Replay
from think_reference.core.events import PartKind
from think_reference.core.turn import Turn


class Stream:
    """One run's open stream. `base`: the stored partial that a continuation extends."""

    def __init__(self, turn: Turn, base: Message | None) -> None:
        assert turn.message_id is not None, "a stream belongs to a started turn"
        self.turn = turn
        self.log: list[str] = []
        self._message_id = turn.message_id
        self._chunks = AnswerChunks()
        self._builder = MessageBuilder(turn.message_id, base)

    @property
    def has_content(self) -> bool:
        """Whether this run has said anything."""
        return self._builder.has_content

    @property
    def message(self) -> Message:
        """The answer so far."""
        return self._builder.message

    def open(self) -> list[AddChunk]:
        """Begin the stream."""
        return self._append(self._chunks.opening(None if self.turn.continuation else self._message_id))

    def say(self, kind: PartKind, text: str) -> list[AddChunk]:
        """Append what the model said."""
        return self._append(self._chunks.delta(kind, text))

    def finish(self, reason: str) -> list[AddChunk]:
        """Append the end of a whole answer."""
        return self._append(self._chunks.closing(reason))

    def _append(self, chunks: Iterable[Chunk]) -> list[AddChunk]:
        added = []
        for chunk in chunks:
            self._builder.apply(chunk)
            added.append(AddChunk(self.turn.id, len(self.log), dumps(chunk)))
            self.log.append(added[-1].body)
        return added


class Failure(Struct, frozen=True):
    """The terminal record: the last failed turn, kept with its chunks until a newer turn is
    accepted or one completes (WIRE-110, TURN-152)."""

    turn: Turn
    chunks: tuple[str, ...]


def rebuilt(turn: Turn, chunks: Iterable[str], base: Message | None) -> MessageBuilder:
    """The message that a dead run had built, from its stored chunks."""
    assert turn.message_id is not None, "a run with chunks has started"
    builder = MessageBuilder(turn.message_id, base)
    for body in chunks:
        builder.apply(loads(body))
    return builder


def chunk_frame(chunk: AddChunk, *, continuation: bool) -> ChatResponse:
    """A live chunk (WIRE-80)."""
    return ChatResponse(
        id=chunk.request_id, body=chunk.body, done=False, continuation=continuation, seq=chunk.seq
    )


def replay_frame(replay: Replay, seq: int) -> ChatResponse:
    """The replayed chunk with this `seq` (WIRE-104)."""
    return ChatResponse(
        id=replay.request_id,
        body=replay.chunks[seq],
        done=False,
        continuation=replay.continuation,
        replay=True,
        seq=seq,
    )


def replay_complete(turn: Turn) -> ChatResponse:
    """Between the replay and the live tail (WIRE-104)."""
    return ChatResponse(
        id=turn.id, body="", done=False, continuation=turn.continuation, replay=True, replay_complete=True
    )


def error_frame(turn: Turn) -> ChatResponse:
    """The first frame of error shape A (WIRE-89)."""
    return ChatResponse(
        id=turn.id,
        body=turn.error,
        done=False,
        error=True,
        continuation=turn.continuation,
        message_ids=_message_ids(turn),
    )


def terminal_frame(turn: Turn, *, told: bool = False) -> ChatResponse:
    """The one terminal of an ended run (WIRE-85). An error carries its text (shape B, WIRE-90)
    unless an error frame has `told` it already."""
    failed = turn.outcome == "error" and not told
    return ChatResponse(
        id=turn.id,
        body=turn.error if failed else "",
        done=True,
        error=failed,
        continuation=turn.continuation,
        message_ids=_message_ids(turn),
        outcome=turn.outcome,
    )


def late_terminal(asked: Turn, newest: Turn) -> ChatResponse:
    """The answer to a late ack or a resend of an ended id: how its whole chain stands, of which
    `newest` is the last run (WIRE-111)."""
    failed = newest.outcome == "error"
    return ChatResponse(
        id=asked.id,
        body=newest.error if failed else "",
        done=True,
        error=failed,
        continuation=asked.continuation,
        replay=True,
        message_ids=_message_ids(asked),
        outcome=newest.outcome or "recovering",
    )


def empty_terminal(request_id: str) -> ChatResponse:
    """The answer to an ack of an id that nobody knows; it claims nothing (WIRE-87)."""
    return ChatResponse(id=request_id, body="", done=True, replay=True)


def _message_ids(turn: Turn) -> list[str] | None:
    return list(turn.message_ids) or None
