"""Stop and loss, told apart: a stop ends a turn as aborted, a lost socket ends nothing."""

from __future__ import annotations

from collections.abc import Iterator

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import (
    aborted_by_itself,
    judged,
    released,
    script_of,
    stopped_by_nobody,
)
from think_conformance.history.chains import Chain
from think_conformance.history.traffic import Passed
from think_conformance.history.views import View
from think_conformance.history.work import Call

NO_STOP = "no stop reached a running turn for certain"
NO_LOSS = "no connection was lost while a turn ran"


# ---- stop -------------------------------------------------------------------------------------


@check("CANCEL-05", needs_quiet=True)
def stop_aborts(view: View) -> Finding:
    """A cancel that met a model call held at a gate ends the turn `aborted` and the call with it."""
    return finding(_stops_without_effect(view), seen=bool(_stopped(view)), nothing=NO_STOP)


def _stopped(view: View) -> list[Chain]:
    return [c for c in judged(view) if c.cancels and "aborted" in c.finals]


def _stops_without_effect(view: View) -> Iterator[Breach]:
    for chain in judged(view):
        for cancel in chain.cancels:
            call = _held(view, chain, cancel)
            if call is None:
                continue
            until = released(view, call)
            told = [(at, kind) for kind, at in chain.finals.items() if cancel.index < at < until]
            for at, kind in told:
                if kind != "aborted":
                    yield Breach(f"{chain.root} was stopped and told to be {kind}", (cancel.index, at))
            gave_up = next((i for i in _waits_in_vain(view) if cancel.index < i < until), None)
            if not told and gave_up is not None and view.connections[cancel.connection].lives_at(gave_up):
                yield Breach(f"{chain.root} was stopped and did not end", (cancel.index, gave_up))
            if told and call.end is None and view.end is not None:
                yield Breach(
                    f"{chain.root} was stopped and its model call goes on", (cancel.index, call.index)
                )


def _held(view: View, chain: Chain, cancel: Passed) -> Call | None:
    """The call that could not go on by itself when a cancel went out that surely arrived."""
    connection = view.connections[cancel.connection]
    heard = (
        chain.accepted is not None
        and chain.accepted < cancel.index
        and chain.open_at(cancel.index)
        and connection.disturbed is None
        and not view.deaths_in(chain)
        and connection.lives_at(chain.ended or cancel.index)
    )
    for call in view.calls_for(chain) if heard else []:
        gates = [at for at in call.gates.values() if at < cancel.index]
        if gates and call.open_at(cancel.index):
            return call
    return None


def _waits_in_vain(view: View) -> list[int]:
    """The records in which the run gave up waiting for something."""
    return [op.index for op in view.operations if op.kind == "info" and op.number is None]


# ---- loss -------------------------------------------------------------------------------------


@check("WIRE-153", "CANCEL-01", needs_quiet=True)
def loss_is_no_cancel(view: View) -> Finding:
    """A turn whose connections broke, and which nobody stopped, is not `aborted`."""
    return finding(_aborted_by_loss(view), seen=bool(_lost(view)), nothing=NO_LOSS)


@check("TURN-17", needs_quiet=True)
def loss_leaves_the_turn(view: View) -> Finding:
    """Nor is its model call hung up on."""
    return finding(
        [*_aborted_by_loss(view), *_hung_up(view)],
        seen=any(view.calls_for(chain) for chain, _ in _lost(view)),
        nothing=NO_LOSS,
    )


@check("CANCEL-13", needs_quiet=True)
def stop_and_loss_differ(view: View) -> Finding:
    """A stop can be told from a loss by the outcome."""
    return finding(
        [*_stops_without_effect(view), *_aborted_by_loss(view)],
        seen=bool(_stopped(view) or _lost(view)),
        nothing=f"{NO_STOP}, {NO_LOSS}",
    )


def _lost(view: View) -> list[tuple[Chain, int]]:
    """Each turn that a connection was closed on, whoever closed it, and nobody stopped; with the
    record of the first such closing."""
    found = []
    closings = sorted(c.closed for c in view.connections.values() if c.closed is not None)
    for chain in judged(view):
        at = next((i for i in closings if chain.open_at(i)), None)
        if at is not None and stopped_by_nobody(view, chain) and at < (view.end or at + 1):
            found.append((chain, at))
    return found


def _aborted_by_loss(view: View) -> Iterator[Breach]:
    for chain, lost in _lost(view):
        told = aborted_by_itself(view, chain)
        if told is not None:
            yield Breach(f"nobody stopped {chain.root}, a connection was lost, it was aborted", (lost, told))


def _hung_up(view: View) -> Iterator[Breach]:
    """A model call that the target hung up on after the loss, with nothing else to explain it: no
    fault, no option of the case, and not made again (as a stalled call would be)."""
    if any(fault.leg == "model" and fault.fired for fault in view.faults) or view.case.plan.get("configure"):
        return
    for chain, lost in _lost(view):
        for call in view.calls_for(chain)[-1:]:
            aborted = call.how == "aborted" and call.end is not None and lost < call.end
            silent = any(isinstance(step, dict) and "silence" in step for step in script_of(view, call))
            if aborted and call.open_at(lost) and not silent and (call.end or 0) < (view.end or 0):
                yield Breach(
                    f"a connection was lost and the model call of {chain.root} was hung up on",
                    (lost, call.end or lost),
                )
