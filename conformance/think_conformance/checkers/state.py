"""The state a careful client shows: running until it is told otherwise, over when it is told so, never
both, and `completed` only when the answer is stored."""

from __future__ import annotations

from collections.abc import Iterator

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import (
    aborted_first,
    judged,
    owes_until_the_end,
    own_words,
    released,
    replaced,
)
from think_conformance.history.chains import Chain, Terminal
from think_conformance.history.streams import Transcript
from think_conformance.history.traffic import Connection, Passed, is_chunk
from think_conformance.history.views import View
from think_conformance.wire.frames import (
    ChatClear,
    ChatRecovering,
    ChatRequest,
    ChatResponse,
    ResumeNone,
    StreamPending,
    StreamResuming,
)


@check("TURN-151", needs_quiet=True)
def one_true_state(view: View) -> Finding:
    """Who was told the end of a turn is not told afterwards that it runs; who was told `completed`
    finds the answer stored. That two ends contradict each other is for WIRE-206 to say."""
    told = [chain for chain in judged(view) if chain.finals]
    found = [breach for chain in told for breach in (*_runs_on(view, chain), *_not_stored(view, chain))]
    return finding(found, seen=bool(told), nothing="nobody was told the end of a turn")


def _runs_on(view: View, chain: Chain) -> Iterator[Breach]:
    if aborted_first(chain):
        return
    ends = [terminal for terminal in chain.terminals if terminal.final]
    sends = [p.index for p in view.frames if isinstance(p.frame, ChatRequest) and p.frame.id in chain.ids]
    for connection in view.connections.values():
        over = _over(connection, ends)
        if over is None:
            continue
        # what a resend brings back is WIRE-58's matter
        until = next((index for index in sends if index > over), len(view.history))
        for passed in connection.honest():
            if over < passed.index < until and _claims_to_run(chain, passed):
                why = f"{connection.name} was told the end of {chain.root}, then that it runs"
                yield Breach(why, (over, passed.index))
                break


def _over(connection: Connection, ends: list[Terminal]) -> int | None:
    """The record from which on a connection speaks of a turn that had certainly ended."""
    own = [t.index for t in ends if t.connection == connection.name]
    before = [t.index for t in ends if t.index < connection.dialled]
    return min([*own, *before], default=None)


def _claims_to_run(chain: Chain, passed: Passed) -> bool:
    frame = passed.frame
    if isinstance(frame, ChatResponse):
        return frame.id in chain.ids and is_chunk(frame) and not frame.replay
    if isinstance(frame, StreamResuming):  # a failed turn is told by an offer (WIRE-100)
        return frame.id in chain.ids and "error" not in chain.finals
    if isinstance(frame, StreamPending):
        return frame.id in chain.ids
    return isinstance(frame, ChatRecovering) and frame.recovering and frame.id in chain.ids


def _not_stored(view: View, chain: Chain) -> Iterator[Breach]:
    if set(chain.finals) != {"completed"} or replaced(view, chain):
        return
    told = chain.finals["completed"]
    broken = any(fault.leg == "model" and fault.fired for fault in view.faults)
    for call in view.calls_for(chain) if not broken else ():
        if call.gates and call.open_at(told) and min(call.gates.values()) < told < released(view, call):
            why = f"{chain.root} was told to be completed while its model was still answering"
            yield Breach(why, (call.index, told))
    if not own_words(view).get(chain.marker or ""):
        return
    for transcript in view.transcripts:
        if _read_after(view, transcript, chain) and not view.answered(chain, transcript):
            why = f"{chain.root} was told to be completed and its answer is not stored"
            yield Breach(why, (told, transcript.index))
            return


def _read_after(view: View, transcript: Transcript, chain: Chain) -> bool:
    """Whether a transcript was certainly made after the end of a turn had been told."""
    told = chain.finals["completed"]
    if transcript.connection is None:
        asked = (
            op.index
            for op in view.operations
            if op.kind == "invoke" and op.payload.get("do") == "get-messages" and op.index < transcript.index
        )
        return max(asked, default=-1) > told
    same = any(
        t.connection == transcript.connection and t.index < transcript.index
        for t in chain.terminals
        if t.kind == "completed"
    )
    return same or view.connections[transcript.connection].dialled > told


@check("KIT-12", needs_quiet=True)
def nobody_is_left_streaming(view: View) -> Finding:
    """A client that stayed connected, and was shown that a turn runs, is told that it is over."""
    idle = view.phases.get("idle")
    followed = [
        (chain, connection, began)
        for chain in judged(view)
        for connection in view.connections.values()
        if idle is not None and connection.lives_at(idle) and connection.disturbed is None
        if (began := _running(chain, connection, idle)) is not None
    ]
    breaches = (
        Breach(f"{connection.name} is left with {chain.root} running", (began, idle or began))
        for chain, connection, began in followed
        if not any(p.index > began and _ends(chain, p) for p in connection.frames)
    )
    return finding(breaches, seen=bool(followed), nothing="no client stayed connected to a running turn")


def _running(chain: Chain, connection: Connection, idle: int) -> int | None:
    """The last record that showed this client that a turn runs, before the server was done."""
    shows = [p.index for p in connection.frames if p.index < idle and _shows_running(chain, p)]
    return max(shows, default=None)


def _shows_running(chain: Chain, passed: Passed) -> bool:
    frame = passed.frame
    if isinstance(frame, ChatRequest):
        return passed.sent and frame.id == chain.root
    if isinstance(frame, ChatResponse):
        return frame.id in chain.ids and (is_chunk(frame) or frame.outcome == "recovering")
    return isinstance(frame, StreamPending) and frame.id in chain.ids


def _ends(chain: Chain, passed: Passed) -> bool:
    frame = passed.frame
    if isinstance(frame, ChatResponse):
        return frame.id in chain.ids and (frame.done or frame.error) and frame.outcome != "recovering"
    return isinstance(frame, ChatClear) or (isinstance(frame, ResumeNone) and frame.reason == "idle")


@check("WIRE-181", needs_quiet=True)
def notice_of_recovery_ends(view: View) -> Finding:
    """On no connection that stayed is the last notice of a turn that has ended that it is recovering."""
    found: list[Breach] = []
    seen = False
    for connection in view.connections.values():
        last: dict[str, Passed] = {}
        for passed in connection.honest():
            if isinstance(passed.frame, ChatRecovering) and passed.frame.id in view.chain_of:
                last[view.chain_of[passed.frame.id].root] = passed
        seen = seen or bool(last)
        for root, notice in last.items():
            chain = view.chain_of[root]
            recovering = isinstance(notice.frame, ChatRecovering) and notice.frame.recovering
            if recovering and chain.finals and owes_until_the_end(view, connection, notice.index):
                why = f"{connection.name} is told that {root} is recovering, and it has ended"
                found.append(Breach(why, (notice.index, min(chain.finals.values()))))
    if not seen:
        return Finding("void", "nobody was told that a turn is recovering")
    return finding(found, seen=True, nothing="")
