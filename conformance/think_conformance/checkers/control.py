"""How a turn ends, told apart: a stop ends it as aborted, a lost socket ends nothing, nor does what the
model says."""

from __future__ import annotations

import re
from collections.abc import Iterator

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import (
    aborted_by_itself,
    judged,
    lost_in,
    script_of,
    stopped_by_nobody,
)
from think_conformance.checkers.stop import NO_STOP, stopped, stops_without_effect
from think_conformance.history.chains import Chain
from think_conformance.history.views import View

NO_LOSS = "no connection was lost while a turn ran"

CLAIMS = re.compile(r"cancel|abort|complet|exhaust|budget|outcome|\[DONE\]", re.IGNORECASE)
"""What a model may say that sounds like the end of a turn."""


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
        [*stops_without_effect(view), *_aborted_by_loss(view)],
        seen=bool(stopped(view) or _lost(view)),
        nothing=f"{NO_STOP}, {NO_LOSS}",
    )


@check("CANCEL-15", needs_quiet=True)
def each_client_keeps_its_setting(view: View) -> Finding:
    """Where one client stopped its turn and another only left, the first turn is aborted and the second
    goes on."""
    return finding(
        [*stops_without_effect(view), *_aborted_by_loss(view), *_hung_up(view)],
        seen=bool(stopped(view) and _lost(view)),
        nothing="no client stopped its turn in a conversation that another one only left",
    )


def _lost(view: View) -> list[tuple[Chain, int]]:
    """Each turn that a connection was closed on, whoever closed it, and nobody stopped; with the
    record of the first such closing."""
    found = []
    for chain in judged(view):
        at = lost_in(view, chain)
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


# ---- words ------------------------------------------------------------------------------------


@check("CANCEL-14", needs_quiet=True)
def words_decide_nothing(view: View) -> Finding:
    """A turn that nobody stopped, and whose model said to its end that it is over, is `completed`."""
    claimed = [chain for chain in judged(view) if _claims(view, chain) and stopped_by_nobody(view, chain)]
    harmed = any(fault.fired for fault in view.faults)
    told = [chain for chain in claimed if chain.finals and not harmed]
    breaches = (
        Breach(
            f"the model of {chain.root} only said that it is over, it was told to be {kind}",
            (chain.first, at),
        )
        for chain in told
        for kind, at in chain.finals.items()
        if kind != "completed"
    )
    return finding(breaches, seen=bool(told), nothing="no model spoke of the end of a turn")


def _claims(view: View, chain: Chain) -> bool:
    """Whether its model speaks of the end of a turn, and does nothing but speak."""
    steps = [step for call in view.calls_for(chain) for step in script_of(view, call)]
    spoken = [step.get("text") for step in steps if isinstance(step, dict)]
    plain = all(
        step == "done" or (isinstance(step, dict) and {"text", "gate"} & step.keys()) for step in steps
    )
    return plain and any(isinstance(text, str) and CLAIMS.search(text) for text in spoken)
