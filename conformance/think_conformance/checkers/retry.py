"""After a crash the work goes on by itself: the turn that had shown nothing is tried again, and an agent
that nobody calls wakes up."""

from __future__ import annotations

from collections.abc import Iterator

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import begun, judged, replaced
from think_conformance.history.chains import Chain
from think_conformance.history.views import View
from think_conformance.history.work import Crash

MARGIN_S = 5.0
"""What a busy machine may cost on top of the heartbeat."""

OPENING = frozenset({"start", "start-step", "message-metadata"})
"""Chunks that open a stream and hold nothing of an answer."""


@check("TURN-41", needs_quiet=True)
def retried_before_the_stream(view: View) -> Finding:
    """A turn that was next, and had not asked the model when the target died, asks it afterwards."""
    struck = [(chain, crash) for chain, crash in _struck(view) if _next_in_line(view, chain, crash.death)]
    return _retried(view, struck, "no turn was struck before its model was asked")


@check("TURN-42", needs_quiet=True)
def retried_before_the_answer(view: View) -> Finding:
    """A turn whose model was asked and had said nothing when the target died asks it again."""
    struck = [
        (chain, crash)
        for chain, crash in _struck(view)
        if any(call.open_at(crash.death) for call in view.calls_for(chain))
        and sum(call.index < crash.death for call in view.calls_for(chain)) == 1
        and not any(
            chunk.index < crash.death and chunk.body.get("type") not in OPENING
            for chunk in view.chunks_of(chain)
        )
    ]
    return _retried(view, struck, "no turn was struck between its model call and the first token")


def _struck(view: View) -> Iterator[tuple[Chain, Crash]]:
    """Each accepted turn that a crash interrupted, and that nobody stopped or replaced. A target that did
    not come back at all is the invariant's matter (TURN-150), or nobody's."""
    for chain in judged(view):
        if chain.cancels or replaced(view, chain):
            continue
        for crash in view.crashes_in(chain):
            accepted = chain.accepted is not None and chain.accepted < crash.death
            if accepted and crash.ready is not None:
                yield chain, crash


def _next_in_line(view: View, chain: Chain, death: int) -> bool:
    """It had not begun, and no turn was before it."""
    return not begun(view, chain, death) and not any(
        other.first < chain.first and other.open_at(death) for other in view.chains
    )


def _retried(view: View, struck: list[tuple[Chain, Crash]], nothing: str) -> Finding:
    breaches = (
        Breach(f"{chain.root} was interrupted and not tried again", (crash.death, view.end or crash.death))
        for chain, crash in struck
        if not any(_made_by(crash, call.index) for call in view.calls_for(chain))
    )
    return finding(breaches, seen=bool(struck), nothing=nothing)


def _made_by(crash: Crash, index: int) -> bool:
    """Whether that record was made by what came back after a crash."""
    return crash.back is not None and index > crash.back


@check("TURN-29")
def wakes_by_itself(view: View) -> Finding:
    """While no client is connected, the model is asked within the heartbeat after the target is back."""
    found: list[Breach] = []
    seen = 0
    for crash in view.crashes:
        calls = [call.index for chain in _owed(view, crash) for call in view.calls_for(chain)]
        if crash.ready is None or not calls:
            continue
        woken = min((index for index in calls if _made_by(crash, index)), default=len(view.history))
        visited = _visited(view, crash)
        took = view.history[min(woken, visited)].at - view.history[crash.ready].at
        if took > view.case.heartbeat_s + MARGIN_S:
            why = f"nobody connected, and for {took:.1f} s after the target was back no turn went on"
            found.append(Breach(why, (crash.ready, min(woken, visited))))
        seen += woken < visited
    return finding(found, seen=seen > 0, nothing="no turn went on before a client came")


def _owed(view: View, crash: Crash) -> list[Chain]:
    """The turns that have to ask the model after a crash."""
    return [
        chain
        for chain, struck in _struck(view)
        if struck is crash
        and (
            not begun(view, chain, crash.death)
            or any(call.open_at(crash.death) for call in view.calls_for(chain))
        )
    ]


def _visited(view: View, crash: Crash) -> int:
    """The first record after a crash in which anybody called the agent or the next crash came, else the
    last of the history."""
    calls = [
        op.index
        for op in view.operations
        if op.kind == "invoke" and op.payload.get("do") in ("connect", "get-messages", "rpc")
    ]
    dialled = [connection.dialled for connection in view.connections.values()]
    later = [index for index in (*calls, *dialled, *view.deaths) if _made_by(crash, index)]
    return min(later, default=len(view.history) - 1)
