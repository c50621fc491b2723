"""The life of an agent's turns: accepted, started, streaming with its steps and tools, ended.

Owns the stored turns and messages and the one turn that runs (turn lifecycle sections 2 to 4, 8 and
11). Everything is ordered through `Orders`; who is told what is the handshake's business.
"""

from __future__ import annotations

from think_conformance.wire.chunks import settled
from think_conformance.wire.frames import ChatMessages, ChatRecovering, Message, Outcome
from think_reference.core.application import Application
from think_reference.core.effects import (
    AbortWork,
    AddChunk,
    Broadcast,
    CallModel,
    CancelTimer,
    ClearChat,
    DropChunks,
    DropMeta,
    PutMeta,
    PutTurn,
    Rows,
    SetTimer,
    Write,
)
from think_reference.core.events import (
    ModelDelta,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    ModelToolCall,
    ModelToolInput,
    ToolEvent,
    ToolRaised,
    ToolReturned,
)
from think_reference.core.ids import answer_id
from think_reference.core.orders import Orders
from think_reference.core.policies import Policies
from think_reference.core.prompt import prompt_for
from think_reference.core.queue import Turns
from think_reference.core.recovery import Limits, put_back
from think_reference.core.resume import Handshake, Situation
from think_reference.core.stream import Failure, Stream, chunk_frame, error_frame, terminal_frame
from think_reference.core.tools import described
from think_reference.core.transcript import Transcript
from think_reference.core.turn import Turn

RECOVERING_FRESH_S = 900.0
"""A newcomer is not told of a recovery older than this (TURN-153)."""


class Life:
    """`rows`: what the journal holds. `put_back` comes first, for each interrupted turn."""

    def __init__(
        self,
        name: str,
        rows: Rows,
        application: Application,
        policies: Policies,
        handshake: Handshake,
        orders: Orders,
    ) -> None:
        self._name, self._application, self._policies = name, application, policies
        self._handshake, self._orders = handshake, orders
        self.turns = Turns(rows.turns)
        self.transcript = Transcript(rows.messages)
        failed = self.turns.get(rows.meta.get("failure", ""))
        self._failure = Failure(failed, tuple(rows.chunks.get(failed.id, ()))) if failed else None
        self._running: Turn | None = None
        self._stream: Stream | None = None

    # ---- what is so --------------------------------------------------------------------------

    @property
    def situation(self) -> Situation:
        """What the handshake has to know."""
        pending = self._running if self._stream is None else None
        return Situation(self.turns, self._stream, pending, self._failure)

    @property
    def recovering_root(self) -> str | None:
        """The turn that newcomers are told is recovering (WIRE-99)."""
        for turn in self._policies.recovering(self.turns):
            if turn.run and self._orders.now - turn.evaluated_at < RECOVERING_FRESH_S:
                return turn.root
        return None

    @property
    def answers_to_come(self) -> set[str]:
        """The message ids of answers that are not final yet."""
        return {t.message_id for t in self.turns.unended() if t.message_id is not None}

    @property
    def streaming(self) -> Message | None:
        """The answer that streams, so far."""
        return self._stream.message if self._stream is not None else None

    def transcript_frame(self) -> ChatMessages:
        """All messages, as every client gets them (WIRE-70)."""
        return ChatMessages(messages=self.transcript.messages)

    # ---- from the queue to the model ---------------------------------------------------------

    def accept(self, turn: Turn, stored: list[Write]) -> None:
        """Admit a turn together with its `stored` messages, in one transaction; `advance` is next."""
        self.turns.put(turn)
        self._orders.persist(*stored, PutTurn(turn), *self._forget_failure())

    def advance(self) -> None:
        """Start the next turn, if none runs."""
        turn = self.turns.next
        if self._running is not None or turn is None:
            return
        turn = turn.started(turn.message_id or self._fresh_answer_id(turn))
        replaced = self.transcript.drop_answers(turn.anchor) if turn.kind == "regenerate" else []
        self._running = turn
        self.turns.put(turn)
        self._orders.persist(PutTurn(turn), *replaced)
        if replaced:
            self._orders.tell_all(self.transcript_frame())
        if delay := self._application.prepare_delay_ms:
            self._orders.do(SetTimer(turn.id, self._orders.now + delay / 1000))
        else:
            self._open(turn)

    def on_timer(self, key: str) -> None:
        """The preparation of a turn is over."""
        if self._running is not None and self._running.id == key and self._stream is None:
            self._open(self._running)

    def _fresh_answer_id(self, turn: Turn) -> str:
        clash = 0
        while self.transcript.get(answer_id(self._name, turn.root, turn.run, clash)):
            clash += 1
        return answer_id(self._name, turn.root, turn.run, clash)

    def _open(self, turn: Turn) -> None:
        if repaired := self.transcript.repair():
            self._orders.persist(*repaired)
            self._orders.tell_all(self.transcript_frame())
        base = self.transcript.get(turn.message_id) if turn.continuation else None
        self._stream = Stream(turn, base, self.transcript.call_ids)
        self._orders.do(*self._handshake.opened(turn.id))
        self._show(turn, self._stream.open())
        if repeated := self._policies.repeats(base):
            self._show(turn, self._stream.say("text", repeated))
        self._ask(self._stream)

    def _ask(self, stream: Stream) -> None:
        prompt = prompt_for(stream.turn, self.transcript, stream.message)
        asked = self._policies.prompt(prompt)
        self._orders.do(CallModel(stream.turn.id, asked, described(self._application.tools)))

    # ---- an answer, step by step -------------------------------------------------------------

    def on_work(self, event: ModelEvent | ToolEvent) -> None:
        """The model or a tool of the running turn said something."""
        stream = self._stream
        if stream is None or stream.turn.id != event.request_id:
            return
        match event:
            case ModelFinished(_, reason):
                stream.answered(reason)
                self._go_on(stream)
            case ModelFailed(_, error, in_band):
                self._end("error", error=error, in_band=in_band)
            case ToolReturned(_, call_id, output):
                self._show(stream.turn, stream.tool_returned(call_id, output))
                self._go_on(stream)
            case ToolRaised(_, call_id, error):
                self._show(stream.turn, stream.tool_raised(call_id, error))
                self._go_on(stream)
            case ModelDelta() | ModelToolInput() | ModelToolCall():
                self._show(stream.turn, self._said(stream, event))
                if isinstance(event, ModelDelta) and self._policies.obeys(event.text):
                    self._stop()

    def _said(self, stream: Stream, event: ModelDelta | ModelToolInput | ModelToolCall) -> list[AddChunk]:
        match event:
            case ModelDelta(_, kind, text):
                return stream.say(kind, text) if text else []
            case ModelToolInput(_, call_id, tool, text):
                return stream.tool_input(call_id, tool, text)
            case ModelToolCall(_, call_id, tool, text):
                return stream.tool_call(call_id, tool, text, self._application.tools)

    def _go_on(self, stream: Stream) -> None:
        """The model has answered, or a tool: run the next tool, begin the next step, or end."""
        if (tool := stream.next_tool()) is not None:
            self._orders.do(tool)
        elif stream.called_tools and stream.steps < self._application.max_steps:
            self._show(stream.turn, stream.next_step())
            self._ask(stream)
        else:
            self._end("completed", last=stream.finish())

    def _show(self, turn: Turn, chunks: list[AddChunk]) -> None:
        """Store chunks, then send them (TURN-26)."""
        self._orders.persist(*chunks)
        self._send_chunks(turn, chunks)

    def _send_chunks(self, turn: Turn, chunks: list[AddChunk]) -> None:
        withheld = self._handshake.withheld
        for chunk in chunks:
            for frame in self._policies.live(chunk_frame(chunk, continuation=turn.continuation)):
                self._orders.do(Broadcast(frame, withheld))

    # ---- ends --------------------------------------------------------------------------------

    def _end(
        self, outcome: Outcome, *, error: str = "", in_band: bool = False, last: list[AddChunk] | None = None
    ) -> None:
        """End the running turn: answer, outcome and record in one transaction, then the frames in
        the order of WIRE-93. `last` chunks are stored as part of the answer, not of a log."""
        assert self._running is not None, "only a running turn ends here"
        outcome = self._policies.outcome(outcome)
        in_band = in_band and outcome == "error"
        turn = self._running.ended(outcome, error)
        stream = self._stream
        answered = stream is not None and (stream.has_content or outcome == "completed")
        writes: list[Write] = [PutTurn(turn)]
        if stream is not None and answered:
            writes += self._policies.stores(self.transcript, settled(stream.message), turn.anchor)
        self.turns.put(turn)
        self._orders.persist(*writes, *self._record(turn, tuple(stream.log) if stream else ()))
        self._send_chunks(turn, last or [])
        if in_band:
            self._orders.tell_all(error_frame(turn))
        self._running = self._stream = None
        self._tell_end(turn, self.transcript_frame() if answered else None, told=in_band)
        self._orders.do(*self._handshake.settled())
        self.advance()

    def _tell_end(self, turn: Turn, answer: ChatMessages | None = None, *, told: bool = False) -> None:
        terminals = self._policies.terminals(terminal_frame(turn, told=told))
        self._orders.tell_all(*self._policies.closing([*([answer] if answer else []), *terminals]))
        if turn.run:
            self._orders.tell_all(ChatRecovering(recovering=False, id=turn.root))

    def _record(self, turn: Turn, log: tuple[str, ...]) -> list[Write]:
        """Keep the chunks of a failed turn as the terminal record; drop those of any other (TURN-152)."""
        forgotten = self._forget_failure()
        if not self._policies.recorded(turn):
            return [DropChunks(turn.id), *forgotten]
        self._failure = Failure(turn, log)
        return [*forgotten, PutMeta("failure", turn.id)]

    def _forget_failure(self) -> list[Write]:
        if self._failure is None:
            return []
        failed, self._failure = self._failure, None
        return [DropChunks(failed.turn.id), DropMeta("failure")]

    def cancel(self, conn: int, request_id: str) -> None:
        """Stop the turn of this request, whichever of its runs is named (WIRE-155)."""
        named = self.turns.get(request_id)
        if named is None:
            self._orders.do(*self._policies.stray_cancel(conn, request_id))
            return
        turn = self.turns.newest_run(named)
        if turn.state == "ended" or not self._policies.stops(named):
            return
        if self._running is not None and turn.id == self._running.id:
            self._stop()
            return
        turn = turn.ended("aborted")
        self.turns.put(turn)
        self._orders.persist(PutTurn(turn), *self._forget_failure())
        self._tell_end(turn)

    def clear(self, conn: int) -> None:
        """Forget the chat; whoever waits is told how its turn ended (WIRE-190)."""
        self._stop_work()
        running, waiting = self._running, self.turns.waiting
        self._running = self._stream = self._failure = None
        self.turns, self.transcript = Turns(), self._policies.cleared(self.transcript)
        self._orders.persist(ClearChat(), DropMeta("failure"))
        self._orders.do(*self._policies.clears(conn))
        ended = [running.ended("aborted")] if running is not None else []
        for turn in [*ended, *(t.ended("skipped") for t in waiting)]:
            self._tell_end(turn)
        self._orders.do(*self._handshake.settled())

    def lost(self) -> None:
        """A connection was lost; the turn goes on (TURN-17)."""
        if self._running is not None and self._policies.loss(self._running):
            self._stop()

    def revive(self) -> None:
        """Somebody asked for a stream; nothing starts by that (WIRE-113)."""
        if (turn := self._policies.revived(self.turns)) is not None:
            self.accept(turn, [])
            self.advance()

    def _stop(self) -> None:
        self._stop_work()
        self._end("aborted")

    def _stop_work(self) -> None:
        if self._stream is not None:
            self._orders.do(AbortWork(self._stream.turn.id))
        elif self._running is not None:
            self._orders.do(CancelTimer(self._running.id))

    # ---- after a crash -----------------------------------------------------------------------

    def put_back(self, turn: Turn, chunks: list[str]) -> None:
        """Put an interrupted turn back in one transaction (TURN-41 ... TURN-55)."""
        limits = Limits(self._application.max_attempts, self._application.terminal_message)
        moved_on = any(t.order > turn.order and t.message_id is not None for t in self.turns)
        base = self.transcript.get(turn.message_id)
        decided = put_back(
            self._name,
            turn,
            chunks,
            base,
            limits,
            taken=self.turns,
            moved_on=moved_on,
            now=self._orders.now,
        )
        decided = self._policies.handover(decided)
        writes: list[Write] = [PutTurn(decided.ended)]
        self.turns.put(decided.ended)
        if decided.partial is not None:
            writes.append(self.transcript.store_answer(decided.partial, turn.anchor))
        if decided.successor is not None:
            self.turns.put(decided.successor)
            writes.append(PutTurn(decided.successor))
        self._orders.persist(*writes, *self._record(decided.ended, tuple(chunks)))
