"""A request that is sent again: an answer for who sent it, and no second turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import Blame, judged, owes_until_the_end, unexplained_calls
from think_conformance.history.chains import Chain
from think_conformance.history.traffic import Connection, Passed, is_chunk
from think_conformance.history.views import View
from think_conformance.wire.frames import ChatRequest, ChatResponse, StreamPending, StreamResuming


@dataclass(frozen=True, slots=True)
class Resend:
    """A request that went out again on `connection`, in record `index`, when the target had it already."""

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
        answers = list(_answers(resend))
        if any(_is_due(resend, answer) for answer in answers):
            answered += 1
        elif owes_until_the_end(view, resend.connection, resend.index):
            found.append(_unanswered(view, resend, answers))
    return finding(found, seen=answered > 0, nothing="no accepted request was sent again")


def _resends(view: View) -> Iterator[Resend]:
    for chain in judged(view):
        sends = [
            p for p in view.frames if p.sent and isinstance(p.frame, ChatRequest) and p.frame.id == chain.root
        ]
        for again in sends[1:]:
            crossed = any(sends[0].index < death < again.index for death in view.deaths)
            # what one connection carries arrives in order: the first send cannot have been lost there
            behind = again.connection == sends[0].connection
            accepted = chain.accepted is not None and (behind or chain.accepted < again.index)
            if accepted and chain.cleared is None and (view.case.facts or not crossed):
                yield Resend(chain, view.connections[again.connection], again.index)


def _run_again(view: View, resends: list[Resend]) -> Iterator[Breach]:
    blame = Blame(view)
    for _, call, wrong in sorted(unexplained_calls(view), key=lambda found: found[1].index):
        own = [r for r in resends if r.chain.marker == call.marker and r.index < call.index]
        if blame.of_a_resend(call) and own:
            yield Breach(f"{wrong}, behind a resend", (own[0].index, call.index))


def _answers(resend: Resend) -> Iterator[Passed]:
    """The frames behind a resend that may answer it: none that answers a probe, and none that the
    connection was owed anyway, which are the live stream and, where it followed the stream, the first
    terminal of each id."""
    ids = resend.chain.ids
    owed: set[str] = set()
    told: set[str] = set()
    for passed in resend.connection.honest():
        frame, behind = passed.frame, passed.index > resend.index
        if isinstance(frame, (StreamPending, StreamResuming)):
            if frame.id in ids and frame.probe_id is None and behind:
                yield passed
        elif isinstance(frame, ChatRequest) and passed.index == resend.chain.first:
            owed.add(frame.id)
        elif isinstance(frame, ChatResponse) and frame.id in ids:
            live = is_chunk(frame) and not frame.replay
            if live or frame.replay_complete:
                owed.add(frame.id)
            if behind and (frame.replay or (frame.done and frame.id not in owed - told)):
                yield passed
            if frame.done:
                told.add(frame.id)


def _is_due(resend: Resend, answer: Passed) -> bool:
    """Whether it is the right answer. Behind the end a call to wait may have been on its way already,
    an answer to what was sent before, and says nothing."""
    ended = resend.chain.ended is not None and resend.chain.ended < resend.index
    return not ended or isinstance(answer.frame, ChatResponse)


def _unanswered(view: View, resend: Resend, answers: list[Passed]) -> Breach:
    again = f"{resend.connection.name} sent {resend.chain.root} again"
    if answers:
        why = f"{again} after its end and was only told to wait"
        return Breach(why, (resend.index, answers[0].index))
    return Breach(f"{again} and got no answer", (resend.index, view.end or resend.index))
