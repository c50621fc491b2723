"""One agent: every event of its life goes through `handle`, which answers with effects.

Owns the front: connections, what clients send, admission (wire protocol section 4). Deterministic: the
same rows and events at the same times give the same effects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from think_conformance.wire.codec import Unreadable
from think_conformance.wire.frames import (
    AgentState,
    CancelRequest,
    ChatClear,
    ChatRequest,
    ClientFrame,
    Message,
    ResumeAck,
    ResumeRequest,
    RpcRequest,
)
from think_reference.core.application import Aborted, Application, Storage, Tool
from think_reference.core.base import Base
from think_reference.core.effects import Broadcast, Effect, Evict, Rows, Send
from think_reference.core.events import Connected, Disconnected, Event, Received, TimerFired
from think_reference.core.life import Life
from think_reference.core.orders import Orders
from think_reference.core.policies import Policies
from think_reference.core.request import BadRequest, ChatBody, parse, refusal
from think_reference.core.resume import Handshake
from think_reference.core.rpc import call
from think_reference.core.turn import Turn


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
        self._handshake = Handshake(self._policies)
        self._orders = Orders()
        self._restore(Rows())

    @property
    def label(self) -> str:
        """What a log calls it."""
        return f"{self._kind}/{self._name}"

    @property
    def messages(self) -> list[Message]:
        """The stored transcript (WIRE-14)."""
        return self._life.transcript.messages

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that `RunTool` names."""
        return self._application.tools

    @property
    def idle(self) -> bool:
        """Whether no turn is open: nothing is lost when the agent is unloaded."""
        return not self._life.turns.unended()

    def load(self, rows: Rows, now: float, conns: Iterable[int] = ()) -> list[Effect]:
        """Take over what a journal holds: interrupted turns are put back, then the queue goes on. `conns`:
        connections that stayed while an agent that was idle was not in memory."""
        self._orders.begin(now)
        self._restore(rows)
        for conn in conns:
            self._handshake.stay(conn)
        for turn in self._policies.interrupted(rows.turns):
            self._life.put_back(turn, rows.chunks.get(turn.id, []))
        self._life.advance()
        return self._orders.effects

    def handle(self, event: Event, now: float) -> list[Effect]:
        """React to one event."""
        self._orders.begin(now)
        match event:
            case Connected(conn):
                self._on_connected(conn)
            case Disconnected(conn):
                self._handshake.leave(conn)
                self._life.lost()
            case Received(conn, frame):
                if conn in self._handshake:
                    self._on_frame(conn, frame)
            case TimerFired(key):
                self._life.on_timer(key)
            case _:
                self._life.on_work(event)
        return self._orders.effects

    def _restore(self, rows: Rows) -> None:
        self._storage = Storage(rows.meta)
        self._application = self._make_application(self._storage)
        self._base = Base(self._name, self._kind, rows.meta)
        self._life = Life(
            self._name,
            Rows(self._policies.restored(rows.turns), rows.chunks, rows.messages, rows.meta),
            self._application,
            self._policies,
            self._handshake,
            self._orders,
        )

    # ---- connections -------------------------------------------------------------------------

    def _on_connected(self, conn: int) -> None:
        situation, messages = self._life.situation, self.messages
        self._orders.do(*self._handshake.join(conn, situation, messages, self._life.recovering_root))
        self._orders.do(*self._base.greet(conn))

    def _on_frame(self, conn: int, frame: ClientFrame | Unreadable) -> None:
        match frame:
            case ChatRequest():
                self._on_request(conn, frame)
            case Unreadable(type="cf_agent_use_chat_request", id=str(request_id)):
                self._refuse(conn, request_id, frame.detail)
            case CancelRequest(id=request_id):
                self._life.cancel(conn, request_id)
            case ResumeRequest(probe_id=probe_id):
                self._orders.do(*self._handshake.probe(conn, probe_id, self._life.situation))
                self._life.revive()
            case ResumeAck(id=request_id):
                self._orders.do(*self._handshake.ack(conn, request_id, self._life.situation))
            case ChatClear():
                self._life.clear(conn)
            case AgentState(state=state):
                self._orders.do(*self._base.set_state(conn, state))
            case RpcRequest():
                self._on_rpc(conn, frame)

    def _on_rpc(self, conn: int, frame: RpcRequest) -> None:
        try:
            answer = call(self._application, frame)
        except Aborted:
            wake_at = self._orders.now + self._application.keep_alive_interval_ms / 1000
            self._orders.do(Evict(None if self.idle else wake_at))
            return
        self._orders.persist(*self._storage.drain())
        self._orders.do(Send(conn, answer))

    # ---- admission ---------------------------------------------------------------------------

    def _on_request(self, conn: int, frame: ChatRequest) -> None:
        request_id = frame.id
        if request_id in self._life.turns:
            self._resend(conn, request_id)
            again = self._policies.again(self._life.turns[request_id])
            if again is None or again in self._life.turns:
                return
            request_id = again
        try:
            body = parse(frame)
            self._check(body)
        except BadRequest as bad:
            self._refuse(conn, request_id, str(bad))
            return
        self._accept(conn, request_id, body)

    def _check(self, body: ChatBody) -> None:
        if self._life.turns.full:
            raise BadRequest("too many requests are waiting")
        if clash := self._life.transcript.conflict(body.messages, self._life.answers_to_come):
            raise BadRequest(clash)

    def _refuse(self, conn: int, request_id: str, why: str) -> None:
        """Tell the sender that nothing runs; a known id is a resend, whatever its body (WIRE-51)."""
        if request_id in self._life.turns:
            self._resend(conn, request_id)
            return
        self._orders.do(Send(conn, refusal(request_id, f"Bad request: {why}")))

    def _resend(self, conn: int, request_id: str) -> None:
        self._orders.do(*self._handshake.resend(conn, request_id, self._life.situation))

    def _accept(self, conn: int, request_id: str, body: ChatBody) -> None:
        turns, transcript = self._life.turns, self._life.transcript
        unanswered = {m for t in turns.unended() for m in t.message_ids}
        stored = transcript.reconcile(
            body.messages, unanswered, self._life.answers_to_come, self._life.streaming
        )
        turn = Turn(
            id=request_id,
            root=request_id,
            order=turns.next_order,
            kind="regenerate" if body.regenerate else "submit",
            message_ids=body.message_ids,
            anchor=body.last_user or transcript.last_user(),
            body=body.custom,
        )
        self._life.accept(turn, stored)
        if stored:
            self._orders.do(Broadcast(self._life.transcript_frame(), frozenset({conn})))
        self._life.advance()
