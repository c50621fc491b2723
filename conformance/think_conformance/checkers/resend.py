"""A request that is sent again: an answer for who sent it, and no second turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import judged, owes_until_the_end, unexplained_calls
from think_conformance.history.chains import Chain
from think_conformance.history.traffic import Connection, Passed
from think_conformance.history.views import View
from think_conformance.wire.frames import ChatRequest, ChatResponse, StreamPending, StreamResuming


@dataclass(frozen=True, slots=True)
class Resend:
    """A request that went out again on `connection`, in record `index`, after it was accepted."""

    chain: Chain
    connection: Connection
    index: int


@check("WIRE-58", needs_quiet=True)
def resend_runs_nothing(view: View) -> Finding:
    """No model call follows from a resend, and its connection is answered: with the replay while the
    turn runs, `pending` while it waits, its terminal when it has ended."""
    resends = list(_resends(view))
    found = [*_run_again(view, resends)]
    answered = 0
    for resend in resends:
        first = _answer(resend)
        answered += first is not None
        found += _wrong(view, resend, first)
    return finding(found, seen=answered > 0, nothing="no accepted request was sent again")


def _resends(view: View) -> Iterator[Resend]:
    for chain in judged(view):
        sends = [
            p for p in view.frames if p.sent and isinstance(p.frame, ChatRequest) and p.frame.id == chain.root
        ]
        for again in sends[1:]:
            crossed = any(sends[0].index < death < again.index for death in view.deaths)
            accepted = chain.accepted is not None and chain.accepted < again.index
            if accepted and chain.cleared is None and (view.case.facts or not crossed):
                yield Resend(chain, view.connections[again.connection], again.index)


def _run_again(view: View, resends: list[Resend]) -> Iterator[Breach]:
    for before, call, wrong in unexplained_calls(view):
        for resend in resends:
            if resend.chain.marker == call.marker and before.index < resend.index < call.index:
                yield Breach(f"{wrong}, behind a resend", (resend.index, call.index))
                break


def _answer(resend: Resend) -> Passed | None:
    """The first frame behind a resend that is no mere part of what the connection was owed anyway: the
    live stream, and one terminal unless it was told before."""
    ids = resend.chain.ids
    owed = resend.chain.ended is None or resend.chain.ended > resend.connection.opened
    for passed in resend.connection.honest():
        frame = passed.frame
        about = isinstance(frame, (ChatResponse, StreamPending, StreamResuming)) and frame.id in ids
        if not about or passed.sent:
            continue
        ends = isinstance(frame, ChatResponse) and frame.done
        if passed.index < resend.index:
            owed = owed and not ends
        elif not isinstance(frame, ChatResponse) or frame.replay or (ends and not owed):
            return passed
        elif ends:
            owed = False
    return None


def _wrong(view: View, resend: Resend, first: Passed | None) -> Iterator[Breach]:
    chain, name = resend.chain, resend.connection.name
    if first is None:
        if owes_until_the_end(view, resend.connection, resend.index):
            why = f"{name} sent {chain.root} again and got no answer"
            yield Breach(why, (resend.index, view.end or resend.index))
        return
    over = chain.ended is not None and chain.ended < resend.index
    if over and not (isinstance(first.frame, ChatResponse) and first.frame.replay | first.frame.done):
        yield Breach(
            f"{name} sent {chain.root} again after its end and was told to wait", (resend.index, first.index)
        )
