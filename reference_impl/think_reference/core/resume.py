"""What each connection is owed: the resume handshake (wire protocol sections 5.2 and 6).

Nothing here starts, stops or changes a turn (WIRE-113).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from think_conformance.wire.frames import (
    ChatMessages,
    ChatRecovering,
    Message,
    ResumeNone,
    StreamPending,
    StreamResuming,
)
from think_reference.core.effects import Effect, Replay, Send
from think_reference.core.policies import Policies
from think_reference.core.queue import Turns
from think_reference.core.stream import (
    Failure,
    Stream,
    empty_terminal,
    late_terminal,
    replay_complete,
    terminal_frame,
)
from think_reference.core.turn import Turn

Standing = Literal["attached", "offered", "parked"]
"""attached: gets live chunks. offered: was offered the stream and has not acked, gets none
(WIRE-105). parked: asked before the stream opened, waits for the offer (WIRE-103)."""


class Situation(Struct, frozen=True):
    """The agent as the handshake sees it. pending: a turn that is accepted and not streaming."""

    turns: Turns
    stream: Stream | None
    pending: Turn | None
    failure: Failure | None


class Handshake:
    """The connections of one agent and where each stands."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self._standing: dict[int, Standing] = {}

    def __contains__(self, conn: object) -> bool:
        return conn in self._standing

    @property
    def withheld(self) -> frozenset[int]:
        """The connections that get no live chunks now."""
        offered = (c for c, standing in self._standing.items() if standing == "offered")
        return self._policies.withheld(offered)

    def stay(self, conn: int) -> None:
        """Take over a connection that has been greeted and waits for nothing."""
        self._standing[conn] = "attached"

    def leave(self, conn: int) -> None:
        """Forget a connection."""
        self._standing.pop(conn, None)

    def join(
        self, conn: int, now: Situation, transcript: list[Message], recovering: str | None
    ) -> list[Effect]:
        """What a newcomer is told of the chat (WIRE-97 ... WIRE-100)."""
        self._standing[conn] = "attached"
        greeting: list[Effect]
        if now.stream is not None:
            greeting = [self._offer(conn, now.stream.turn.id)]
        else:
            pending = [Send(conn, StreamPending(id=now.pending.id))] if now.pending else []
            greeting = [*pending, Send(conn, ChatMessages(messages=transcript, connect=True))]
        if recovering is not None:
            greeting.append(Send(conn, ChatRecovering(recovering=True, id=recovering)))
        return self._policies.greeting(greeting)

    def probe(self, conn: int, probe_id: str | None, now: Situation) -> list[Effect]:
        """The one direct answer to a resume request, in the order of WIRE-101."""
        return self._policies.answers([self._answer(conn, probe_id, now)])

    def _answer(self, conn: int, probe_id: str | None, now: Situation) -> Send:
        if now.stream is not None:
            return self._offer(conn, now.stream.turn.id, probe_id)
        if now.failure is not None:
            return Send(conn, StreamResuming(id=now.failure.turn.id, probe_id=probe_id))
        if now.pending is not None:
            return self._park(conn, now.pending.id, probe_id)
        return Send(conn, ResumeNone(reason="idle", probe_id=probe_id))

    def ack(self, conn: int, request_id: str, now: Situation) -> list[Effect]:
        """Replay what was acked, or tell how it ended (WIRE-104 ... WIRE-111)."""
        if now.stream is not None and now.stream.turn.id != request_id:
            turn = now.turns.get(request_id)
            if turn is None or turn.root != now.stream.turn.root:
                return self._policies.stray_ack(conn, request_id)
        return self.resend(conn, request_id, now)

    def resend(self, conn: int, request_id: str, now: Situation) -> list[Effect]:
        """Answer a request id that is already known: never a second turn (WIRE-58)."""
        if now.stream is not None and now.stream.turn.id == request_id:
            self._standing[conn] = "attached"
            replay = self._replay(conn, now.stream.turn, now.stream.log)
            return [*replay, Send(conn, replay_complete(now.stream.turn))]
        if now.failure is not None and now.failure.turn.id == request_id:
            failed = now.failure
            replay = self._replay(conn, failed.turn, failed.chunks)
            return [*replay, Send(conn, terminal_frame(failed.turn))]
        turn = now.turns.get(request_id)
        if turn is None:
            return [Send(conn, empty_terminal(request_id))]
        if turn.state != "ended":
            return [self._wait(conn, turn, now)]
        newest = now.turns.newest_run(turn)
        told = Send(conn, late_terminal(turn, newest))
        return [told] if newest.state == "ended" else [told, self._wait(conn, newest, now)]

    def opened(self, request_id: str) -> list[Effect]:
        """A stream opened: offer it to those that wait for it (WIRE-103)."""
        waiting = [c for c, standing in self._standing.items() if standing == "parked"]
        return self._policies.calls([self._offer(c, request_id) for c in waiting])

    def settled(self) -> list[Effect]:
        """The turn ended: nothing is offered any more, and who still waits is released (WIRE-103)."""
        released: list[Effect] = []
        for conn, standing in self._standing.items():
            if standing == "parked":
                released.append(Send(conn, ResumeNone()))
            self._standing[conn] = "attached"
        return released

    def _wait(self, conn: int, turn: Turn, now: Situation) -> Send:
        """Point a connection at a turn that has not ended. One that did not probe is not parked:
        it gets the stream live, from its first chunk."""
        if now.stream is not None and now.stream.turn.id == turn.id:
            return self._offer(conn, turn.id)
        return Send(conn, StreamPending(id=turn.id))

    def _offer(self, conn: int, request_id: str, probe_id: str | None = None) -> Send:
        self._standing[conn] = "offered"
        return Send(conn, StreamResuming(id=request_id, probe_id=probe_id))

    def _park(self, conn: int, request_id: str, probe_id: str | None) -> Send:
        self._standing[conn] = "parked"
        return Send(conn, StreamPending(id=request_id, probe_id=probe_id))

    def _replay(self, conn: int, turn: Turn, chunks: Iterable[str]) -> list[Effect]:
        return self._policies.replays(Replay(conn, turn.id, tuple(chunks), turn.continuation))
