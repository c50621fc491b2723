"""Told to wait, told to come: what a client gets that asks before a stream or beside one."""

from __future__ import annotations

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import begun, judged, known_before, owes_until_the_end
from think_conformance.history.chains import Chain
from think_conformance.history.traffic import Connection, Passed, is_chunk
from think_conformance.history.views import View
from think_conformance.wire.frames import (
    ChatMessages,
    ChatRequest,
    ChatResponse,
    ResumeAck,
    ResumeNone,
    StreamPending,
    StreamResuming,
)


@check("WIRE-107")
def wrong_ack_is_ignored(view: View) -> Finding:
    """An ack of an id that was never used, while a stream is active, gets no answer before that stream
    has ended, and is not taken for an ack of that stream."""
    found: list[Breach] = []
    seen = 0
    for connection in view.connections.values():
        acks = {p.index: p.frame.id for p in connection.honest() if isinstance(p.frame, ResumeAck)}
        for index, wrong in acks.items():
            active = _active(view, index)
            if active is None or known_before(view, wrong, index):
                continue
            seen += 1
            why = f"{connection.name} acked {wrong} while {active.root} streamed and got"
            at = _answer_to_wrong(connection, index, wrong, active)
            found += [Breach(f"{why} an answer", (index, at))] if at is not None else []
    return finding(found, seen=seen > 0, nothing="nobody acked another id while a stream was active")


def _active(view: View, index: int) -> Chain | None:
    """The turn that certainly streamed when that record was made."""
    streaming = (
        chain
        for chain in judged(view)
        if any(call.open_at(index) for call in view.calls_for(chain))
        and any(chunk.index < index for chunk in view.chunks_of(chain))
    )
    return next(streaming, None)


def _answer_to_wrong(connection: Connection, ack: int, wrong: str, active: Chain) -> int | None:
    """The first frame that answers the ack of a wrong id: with that id, or with the active stream that
    this connection has not acked. None once that stream has ended: then an answer is due (WIRE-111)."""
    asked = False
    for passed in connection.honest():
        frame = passed.frame
        if passed.sent and isinstance(frame, (ResumeAck, ChatRequest)):
            asked = asked or frame.id in active.ids
        elif isinstance(frame, ChatResponse) and passed.index > ack:
            if frame.id == wrong or (frame.id in active.ids and frame.replay and not asked):
                return passed.index
            if frame.id in active.ids and frame.done:
                return None
    return None


@check("WIRE-98")
def pending_before_the_transcript(view: View) -> Finding:
    """Who connects while a turn is accepted and has not begun gets `pending`, then the transcript."""
    found: list[Breach] = []
    seen = 0
    for connection in view.connections.values():
        got = [passed for passed in connection.honest() if not passed.sent]
        at = next((p.index for p in got if isinstance(p.frame, ChatMessages) and p.frame.connect), None)
        waiting = [chain for chain in judged(view) if _waits(view, chain, connection.dialled, at)]
        if at is None or not waiting:
            continue
        seen += 1
        if not any(isinstance(p.frame, StreamPending) and p.index < at for p in got):
            why = f"{connection.name} connected while {waiting[0].root} waited and was not told"
            found.append(Breach(why, (waiting[0].accepted or 0, at)))
    return finding(
        found, seen=seen > 0, nothing="nobody connected between a turn's acceptance and its stream"
    )


def _waits(view: View, chain: Chain, dialled: int, at: int | None) -> bool:
    """Whether it was accepted when a connection was dialled, and had certainly not begun at record `at`."""
    return (
        at is not None
        and chain.accepted is not None
        and chain.accepted < dialled
        and not begun(view, chain, at)
        and bool(view.calls_for(chain))
        and not any(chain.accepted < death < at for death in view.deaths)
    )


@check("WIRE-103", needs_quiet=True)
def parked_is_called(view: View) -> Finding:
    """A connection whose probe was answered `pending` gets an offer before the stream, or is released."""
    found: list[Breach] = []
    seen = 0
    for connection in view.connections.values():
        parked: Passed | None = None
        for passed in connection.honest():
            frame = passed.frame
            if isinstance(frame, StreamPending) and frame.probe_id is not None and parked is None:
                parked = passed
            elif isinstance(frame, (StreamResuming, ResumeNone)) and parked is not None:
                parked = None
                seen += 1
            elif parked is not None and _streams_unasked(view, passed):
                why = f"{connection.name} was told to wait and then got the stream without an offer"
                found.append(Breach(why, (parked.index, passed.index)))
                break
        else:
            if parked is not None and owes_until_the_end(view, connection, parked.index):
                why = f"{connection.name} was told to wait and was never called"
                found.append(Breach(why, (parked.index, view.end or parked.index)))
    return finding(found, seen=seen > 0, nothing="no probe was answered with `pending`")


def _streams_unasked(view: View, passed: Passed) -> bool:
    """A live chunk on a connection that was told to wait and had not sent that request itself."""
    if not isinstance(passed.frame, ChatResponse) or not is_chunk(passed.frame) or passed.frame.replay:
        return False
    exchange = view.exchanges[passed.connection, passed.frame.id]
    return not any(isinstance(p.frame, ChatRequest) for p in exchange.frames)
