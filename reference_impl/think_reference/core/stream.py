"""The chunk log of the running turn with its steps and tool calls, and the frames that carry it.

`seq` is the index in the log, live and replayed alike (WIRE-81); the log is in the journal before a
chunk is shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from think_conformance.wire.chunks import MessageBuilder
from think_conformance.wire.codec import dumps, loads
from think_conformance.wire.frames import ChatResponse, Message
from think_reference.core.answer import AnswerChunks, Chunk
from think_reference.core.application import Tool
from think_reference.core.effects import AddChunk, Replay, RunTool
from think_reference.core.events import PartKind
from think_reference.core.tools import BadCall, checked
from think_reference.core.turn import Turn


class Stream:
    """One run's open stream. base: the stored partial that a continuation extends. taken: tool call
    ids of the transcript; a model may use one again, and what has a result must not get another."""

    def __init__(self, turn: Turn, base: Message | None, taken: Iterable[str] = ()) -> None:
        assert turn.message_id is not None, "a stream belongs to a started turn"
        self.turn = turn
        self.log: list[str] = []
        self.steps = 0
        self.called_tools = False
        self._message_id = turn.message_id
        self._reason = "other"
        self._waiting: deque[RunTool] = deque()
        self._taken = set(taken)
        self._call_ids: dict[str, str] = {}
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
        """Begin the stream, and its first step."""
        self.steps = 1
        return self._append(self._chunks.opening(None if self.turn.continuation else self._message_id))

    def say(self, kind: PartKind, text: str) -> list[AddChunk]:
        """Append what the model said."""
        return self._append(self._chunks.delta(kind, text))

    def tool_input(self, call_id: str, tool: str, text: str) -> list[AddChunk]:
        """Append a piece of a tool call's input, under the model's name for the call."""
        return self._append(self._chunks.tool_input(self._own_id(call_id), tool, text))

    def tool_call(self, call_id: str, tool: str, text: str, offered: Mapping[str, Tool]) -> list[AddChunk]:
        """Append a tool call with its whole input; it waits to be run, unless it cannot be."""
        own_id, self.called_tools = self._own_id(call_id), True
        try:
            given = checked(tool, text, offered)
        except BadCall as bad:
            return self._append(self._chunks.bad_call(own_id, tool, text, str(bad)))
        self._waiting.append(RunTool(self.turn.id, own_id, tool, given))
        return self._append(self._chunks.tool_call(own_id, tool, given))

    def next_tool(self) -> RunTool | None:
        """The next call of this step to run: one at a time, in the order in which the model asked."""
        return self._waiting.popleft() if self._waiting else None

    def tool_returned(self, call_id: str, output: Any) -> list[AddChunk]:
        """Append a tool's result."""
        return self._append([{"type": "tool-output-available", "toolCallId": call_id, "output": output}])

    def tool_raised(self, call_id: str, error: str) -> list[AddChunk]:
        """Append a tool's failure."""
        return self._append([{"type": "tool-output-error", "toolCallId": call_id, "errorText": error}])

    def answered(self, reason: str) -> None:
        """The model has ended this step's answer."""
        self._reason = reason

    def next_step(self) -> list[AddChunk]:
        """Append the end of this step and the start of the next."""
        self.steps += 1
        self.called_tools = False
        self._call_ids.clear()
        return self._append(self._chunks.next_step())

    def finish(self) -> list[AddChunk]:
        """Append the end of a whole answer."""
        return self._append(self._chunks.closing(self._reason))

    def _own_id(self, call_id: str) -> str:
        if call_id not in self._call_ids:
            own_id, clash = call_id, 1
            while own_id in self._taken:
                clash += 1
                own_id = f"{call_id}-{clash}"
            self._taken.add(own_id)
            self._call_ids[call_id] = own_id
        return self._call_ids[call_id]

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
