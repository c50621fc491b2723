"""One agent: every event of its life goes through `handle`, which answers with effects.

Owns the life of a turn: accepted, started, streaming, ended (turn lifecycle sections 2, 3 and 11).
Deterministic: the same rows and events at the same times give the same effects.
"""

from __future__ import annotations

from collections.abc import Callable

from think_conformance.wire.chunks import settled
from think_conformance.wire.codec import Unreadable
from think_conformance.wire.frames import (
    AgentState,
    CancelRequest,
    ChatClear,
    ChatMessages,
    ChatRecovering,
    ChatRequest,
    ChatResponse,
    ClientFrame,
    Message,
    Outcome,
    ResumeAck,
    ResumeRequest,
    RpcRequest,
)
from think_reference.core.application import Aborted, Application, Storage
from think_reference.core.base import Base
from think_reference.core.effects import (
    AbortModel,
    AddChunk,
    Broadcast,
    CallModel,
    CancelTimer,
    ClearChat,
    DropChunks,
    DropMeta,
    Effect,
    Evict,
    Persist,
    PutMeta,
    PutTurn,
    Rows,
    Send,
    SetTimer,
    Write,
)
from think_reference.core.events import (
    Connected,
    Disconnected,
    Event,
    ModelDelta,
    ModelFailed,
    ModelFinished,
    Received,
    TimerFired,
)
from think_reference.core.ids import answer_id
from think_reference.core.policies import Policies
from think_reference.core.prompt import prompt_for
from think_reference.core.queue import Turns
from think_reference.core.recovery import Limits, put_back
from think_reference.core.request import BadRequest, ChatBody, parse
from think_reference.core.resume import Handshake, Situation
from think_reference.core.rpc import call
from think_reference.core.stream import Failure, Stream, chunk_frame, error_frame, terminal_frame
from think_reference.core.transcript import Transcript
from think_reference.core.turn import Turn

RECOVERING_FRESH_S = 900.0
"""A newcomer is not told of a recovery older than this (TURN-153)."""


class Agent:
    """The agent `name` of the class that is `kind` in a URL. `load` comes first, then any number of
    `handle`; both take `now` in epoch seconds and return what must be done, in order."""

    def __init__(
        self,
        name: str,
        kind: str,
        application: Callable[[Storage], Application],
        policies: Policies | None = None,
    ) -> None:
        self._name, self._kind = name, kind
        self._make_application = application
        self._policies = policies or Policies()
        self._handshake = Handshake()
        self._now = 0.0
        self._out: list[Effect] = []
        self._restore(Rows())

    @property
    def messages(self) -> list[Message]:
        """The stored transcript (WIRE-14)."""
        return self._transcript.messages

    @property
    def idle(self) -> bool:
        """Whether no turn is open: nothing is lost when the agent is unloaded."""
        return not self._turns.unended()

    def load(self, rows: Rows, now: float) -> list[Effect]:
        """Take over what a journal holds: interrupted turns are put back, then the queue goes on."""
        self._begin(now)
        self._restore(rows)
        for turn in self._policies.interrupted(rows.turns):
            self._put_back(turn, rows.chunks.get(turn.id, []))
        self._advance()
        return self._out

    def handle(self, event: Event, now: float) -> list[Effect]:
        """React to one event."""
        self._begin(now)
        match event:
            case Connected(conn):
                self._on_connected(conn)
            case Disconnected(conn):
                self._handshake.leave(conn)
            case Received(conn, frame) if conn in self._handshake:
                self._on_frame(conn, frame)
            case ModelDelta(request_id, kind, text) if (stream := self._streaming(request_id)) and text:
                self._show(stream.say(kind, text))
            case ModelFinished(request_id, reason) if stream := self._streaming(request_id):
                self._end("completed", last=stream.finish(reason))
            case ModelFailed(request_id, error, in_band) if self._streaming(request_id):
                self._end("error", error=error, in_band=in_band)
            case TimerFired(key) if (
                self._running is not None and self._running.id == key and not self._stream
            ):
                self._open()
        return self._out

    # ---- state -------------------------------------------------------------------------------

    def _begin(self, now: float) -> None:
        self._now, self._out = now, []

    def _restore(self, rows: Rows) -> None:
        self._turns = Turns(rows.turns)
        self._transcript = Transcript(rows.messages)
        self._storage = Storage(rows.meta)
        self._application = self._make_application(self._storage)
        self._base = Base(self._name, self._kind, rows.meta)
        failed = self._turns.get(rows.meta.get("failure", ""))
        self._failure = Failure(failed, tuple(rows.chunks.get(failed.id, ()))) if failed else None
        self._running: Turn | None = None
        self._stream: Stream | None = None

    def _streaming(self, request_id: str) -> Stream | None:
        stream = self._stream
        return stream if stream is not None and stream.turn.id == request_id else None

    def _situation(self) -> Situation:
        pending = self._running if self._stream is None else None
        return Situation(self._turns, self._stream, pending, self._failure)

    def _do(self, *effects: Effect) -> None:
        self._out += effects

    def _persist(self, *writes: Write) -> None:
        self._out.append(Persist(writes))

    def _tell_all(self, *frames: ChatResponse | ChatRecovering | ChatMessages) -> None:
        self._out += [Broadcast(frame) for frame in frames]

    def _transcript_frame(self) -> ChatMessages:
        return ChatMessages(messages=self._transcript.messages)

    # ---- connections -------------------------------------------------------------------------

    def _on_connected(self, conn: int) -> None:
        recovering = self._recovering_root()
        self._do(*self._handshake.join(conn, self._situation(), self._transcript.messages, recovering))
        self._do(*self._base.greet(conn))

    def _recovering_root(self) -> str | None:
        for turn in self._turns.unended():
            if turn.run and self._now - turn.evaluated_at < RECOVERING_FRESH_S:
                return turn.root
        return None

    def _on_frame(self, conn: int, frame: ClientFrame | Unreadable) -> None:
        match frame:
            case ChatRequest():
                self._on_request(conn, frame)
            case Unreadable(type="cf_agent_use_chat_request", id=str(request_id)):
                self._refuse(conn, request_id, frame.detail)
            case CancelRequest(id=request_id):
                self._on_cancel(request_id)
            case ResumeRequest(probe_id=probe_id):
                self._do(*self._handshake.probe(conn, probe_id, self._situation()))
            case ResumeAck(id=request_id):
                self._do(*self._handshake.ack(conn, request_id, self._situation()))
            case ChatClear():
                self._on_clear(conn)
            case AgentState(state=state):
                self._do(*self._base.set_state(conn, state))
            case RpcRequest():
                self._on_rpc(conn, frame)

    def _on_rpc(self, conn: int, frame: RpcRequest) -> None:
        try:
            answer = call(self._application, frame)
        except Aborted:
            self._do(
                Evict(None if self.idle else self._now + self._application.keep_alive_interval_ms / 1000)
            )
            return
        if written := self._storage.drain():
            self._persist(*written)
        self._do(Send(conn, answer))

    # ---- admission ---------------------------------------------------------------------------

    def _on_request(self, conn: int, frame: ChatRequest) -> None:
        if frame.id in self._turns:
            self._do(*self._handshake.resend(conn, frame.id, self._situation()))
            return
        try:
            body = parse(frame.init)
            self._check(body)
        except BadRequest as bad:
            self._refuse(conn, frame.id, str(bad))
            return
        self._accept(conn, frame.id, body)

    def _check(self, body: ChatBody) -> None:
        if self._turns.full:
            raise BadRequest("too many requests are waiting")
        if clash := self._transcript.conflict(body.messages, self._answers_to_come()):
            raise BadRequest(clash)

    def _refuse(self, conn: int, request_id: str, why: str) -> None:
        """Tell the sender that nothing runs; a known id is a resend, whatever its body (WIRE-51)."""
        if request_id in self._turns:
            self._do(*self._handshake.resend(conn, request_id, self._situation()))
            return
        text = f"Bad request: {why}"
        self._do(Send(conn, ChatResponse(id=request_id, body=text, done=True, error=True, outcome="error")))

    def _accept(self, conn: int, request_id: str, body: ChatBody) -> None:
        unanswered = {m for t in self._turns.unended() for m in t.message_ids}
        stored = self._transcript.reconcile(body.messages, unanswered, self._answers_to_come())
        turn = Turn(
            id=request_id,
            root=request_id,
            order=self._turns.next_order,
            kind="regenerate" if body.regenerate else "submit",
            message_ids=body.message_ids,
            anchor=body.last_user or self._transcript.last_user(),
            body=body.custom,
        )
        self._turns.put(turn)
        self._persist(*stored, PutTurn(turn), *self._forget_failure())
        if stored:
            self._do(Broadcast(self._transcript_frame(), frozenset({conn})))
        self._advance()

    def _answers_to_come(self) -> set[str]:
        return {t.message_id for t in self._turns.unended() if t.message_id is not None}

    def _forget_failure(self) -> list[Write]:
        if self._failure is None:
            return []
        failed, self._failure = self._failure, None
        return [DropChunks(failed.turn.id), DropMeta("failure")]

    # ---- a turn's life -----------------------------------------------------------------------

    def _advance(self) -> None:
        """Start the next turn, if none runs."""
        turn = self._turns.next
        if self._running is not None or turn is None:
            return
        turn = turn.started(turn.message_id or self._fresh_answer_id(turn))
        replaced = self._transcript.drop_answers(turn.anchor) if turn.kind == "regenerate" else []
        self._running = turn
        self._turns.put(turn)
        self._persist(PutTurn(turn), *replaced)
        if replaced:
            self._tell_all(self._transcript_frame())
        if delay := self._application.prepare_delay_ms:
            self._do(SetTimer(turn.id, self._now + delay / 1000))
        else:
            self._open()

    def _fresh_answer_id(self, turn: Turn) -> str:
        clash = 0
        while self._transcript.get(answer_id(self._name, turn.root, turn.run, clash)):
            clash += 1
        return answer_id(self._name, turn.root, turn.run, clash)

    def _open(self) -> None:
        turn = self._running
        assert turn is not None, "only a running turn opens a stream"
        base = self._transcript.get(turn.message_id) if turn.continuation else None
        self._stream = Stream(turn, base)
        self._do(*self._handshake.opened(turn.id))
        self._show(self._stream.open())
        self._do(CallModel(turn.id, prompt_for(turn, self._transcript)))

    def _show(self, chunks: list[AddChunk]) -> None:
        """Store chunks, then send them (TURN-26)."""
        assert self._running is not None, "only a running turn says something"
        self._persist(*chunks)
        self._send_chunks(self._running, chunks)

    def _send_chunks(self, turn: Turn, chunks: list[AddChunk]) -> None:
        withheld = self._handshake.withheld
        for chunk in chunks:
            self._do(Broadcast(chunk_frame(chunk, continuation=turn.continuation), withheld))

    def _end(
        self, outcome: Outcome, *, error: str = "", in_band: bool = False, last: list[AddChunk] | None = None
    ) -> None:
        """End the running turn: answer, outcome and record in one transaction, then the frames in
        the order of WIRE-93. `last` chunks are stored as part of the answer, not of a log."""
        assert self._running is not None, "only a running turn ends here"
        turn = self._running.ended(outcome, error)
        stream = self._stream
        answered = stream is not None and (stream.has_content or outcome == "completed")
        writes: list[Write] = [PutTurn(turn)]
        if stream is not None and answered:
            writes.append(self._transcript.store_answer(settled(stream.message), turn.anchor))
        self._turns.put(turn)
        self._persist(*writes, *self._record(turn, tuple(stream.log) if stream else ()))
        self._send_chunks(turn, last or [])
        if in_band:
            self._tell_all(error_frame(turn))
        if answered:
            self._tell_all(self._transcript_frame())
        self._running = self._stream = None
        self._tell_end(turn, terminal_frame(turn, told=in_band))
        self._do(*self._handshake.settled())
        self._advance()

    def _record(self, turn: Turn, log: tuple[str, ...]) -> list[Write]:
        """Keep the chunks of a failed turn as the terminal record; drop those of any other (TURN-152)."""
        forgotten = self._forget_failure()
        if turn.outcome != "error":
            return [DropChunks(turn.id), *forgotten]
        self._failure = Failure(turn, log)
        return [*forgotten, PutMeta("failure", turn.id)]

    def _tell_end(self, turn: Turn, terminal: ChatResponse) -> None:
        self._tell_all(*self._policies.terminals(terminal))
        if turn.run:
            self._tell_all(ChatRecovering(recovering=False, id=turn.root))

    # ---- stop and clear ----------------------------------------------------------------------

    def _on_cancel(self, request_id: str) -> None:
        named = self._turns.get(request_id)
        turn = self._turns.newest_run(named) if named is not None else None  # WIRE-155
        if turn is None or turn.state == "ended":
            return
        if self._running is not None and turn.id == self._running.id:
            self._stop_work()
            self._end("aborted")
            return
        turn = turn.ended("aborted")
        self._turns.put(turn)
        self._persist(PutTurn(turn), *self._forget_failure())
        self._tell_end(turn, terminal_frame(turn))

    def _stop_work(self) -> None:
        if self._stream is not None:
            self._do(AbortModel(self._stream.turn.id))
        elif self._running is not None:
            self._do(CancelTimer(self._running.id))

    def _on_clear(self, conn: int) -> None:
        """Forget the chat; whoever waits is told how its turn ended (WIRE-190)."""
        self._stop_work()
        running, waiting = self._running, self._turns.waiting
        self._running = self._stream = self._failure = None
        self._turns, self._transcript = Turns(), Transcript()
        self._persist(ClearChat(), DropMeta("failure"))
        self._do(Broadcast(ChatClear(), frozenset({conn})))
        ended = [running.ended("aborted")] if running is not None else []
        for turn in [*ended, *(t.ended("skipped") for t in waiting)]:
            self._tell_end(turn, terminal_frame(turn))
        self._do(*self._handshake.settled())

    # ---- after a crash -----------------------------------------------------------------------

    def _put_back(self, turn: Turn, chunks: list[str]) -> None:
        """Put an interrupted turn back in one transaction (TURN-41 ... TURN-55)."""
        limits = Limits(self._application.max_attempts, self._application.terminal_message)
        moved_on = any(t.order > turn.order and t.message_id is not None for t in self._turns)
        base = self._transcript.get(turn.message_id)
        decided = put_back(self._name, turn, chunks, base, limits, moved_on=moved_on, now=self._now)
        writes: list[Write] = [PutTurn(decided.ended)]
        self._turns.put(decided.ended)
        if decided.partial is not None:
            writes.append(self._transcript.store_answer(decided.partial, turn.anchor))
        if decided.successor is not None:
            self._turns.put(decided.successor)
            writes.append(PutTurn(decided.successor))
        self._persist(*writes, *self._record(decided.ended, tuple(chunks)))
