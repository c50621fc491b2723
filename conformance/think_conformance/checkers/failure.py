"""A turn whose model failed: told as failed, with words, to whoever is there and to whoever comes later."""

from __future__ import annotations

from collections.abc import Iterator

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import judged, script_of
from think_conformance.history.chains import Chain
from think_conformance.history.traffic import Connection
from think_conformance.history.views import View
from think_conformance.wire.frames import (
    ChatClear,
    ChatResponse,
    ResumeAck,
    ResumeNone,
    ResumeRequest,
    StreamPending,
)

FATAL_STEPS = frozenset({"status", "error", "cut"})
"""Steps of a model script that no answer can come out of."""


@check("KIT-10", needs_quiet=True)
def failure_is_told(view: View) -> Finding:
    """A turn whose last model call certainly failed ends as `error`, and the failure has a text."""
    failed = [(chain, at) for chain in judged(view) if (at := _failed(view, chain)) is not None]
    told = [(chain, at) for chain, at in failed if chain.finals and not chain.cancels]

    def breaches() -> Iterator[Breach]:
        for chain, at in told:
            for kind, index in chain.finals.items():
                if kind != "error":
                    yield Breach(f"the model failed {chain.root}, it was told to be {kind}", (at, index))
            live = [t.index for t in chain.terminals if t.kind == "error" and not t.replay]
            if live and not any(_says_why(chain, p.frame) for p in view.frames):
                yield Breach(f"{chain.root} was told to have failed without a word why", (at, live[0]))

    return finding(breaches(), seen=bool(told), nothing="no turn is known to have failed by its model")


def _failed(view: View, chain: Chain) -> int | None:
    """The record that shows that its model failed for good: no later call made up for it."""
    calls = view.calls_for(chain)
    last = calls[-1].index if calls else chain.first
    hits = [
        index
        for fault in view.faults
        if fault.leg == "model" and fault.breaks
        for index, _ in fault.fired
        if index > last and chain.open_at(index)
    ]
    alone = sum(c.open_at(i) for c in judged(view) for i in hits[:1]) == 1
    if hits and alone:
        return hits[0]
    if calls and calls[-1].how == "error" and calls[-1].end is not None:
        steps = script_of(view, calls[-1])
        if any(isinstance(step, dict) and FATAL_STEPS & step.keys() for step in steps):
            return calls[-1].end
    return None


def _says_why(chain: Chain, frame: object) -> bool:
    return isinstance(frame, ChatResponse) and frame.id in chain.ids and frame.error and frame.body != ""


@check("WIRE-110", needs_quiet=True)
def failure_is_told_later(view: View) -> Finding:
    """While nothing newer was asked, whoever connects after a turn failed and probes is offered it,
    and whoever acks the offer gets the failure with its text."""
    found: list[Breach] = []
    seen = 0
    for chain in judged(view):
        if set(chain.finals) != {"error"} or not _nothing_newer(view, chain):
            continue
        for connection in view.connections.values():
            if connection.opened > chain.finals["error"] and connection.disturbed is None:
                told, breach = _told(view, chain, connection)
                seen += told
                found += [breach] if breach else []
    return finding(found, seen=seen > 0, nothing="nobody came after a failed turn")


def _nothing_newer(view: View, chain: Chain) -> bool:
    """It was the last turn that ran, and no chat was cleared."""
    begun = min((c.index for c in view.calls_for(chain)), default=chain.first)
    cleared = any(p.sent and isinstance(p.frame, ChatClear) for p in view.frames)
    return not cleared and all(
        c is chain or (c.ended is not None and c.ended < begun and c.first < chain.first) for c in view.chains
    )


def _told(view: View, chain: Chain, connection: Connection) -> tuple[bool, Breach | None]:
    """Whether a newcomer was told, and what was wrong with what it was told."""
    probe: int | None = None
    ack: int | None = None
    for passed in connection.honest():
        frame = passed.frame
        if isinstance(frame, ResumeRequest):
            probe = passed.index if probe is None else probe
        elif isinstance(frame, ResumeAck) and frame.id in chain.ids:
            ack = passed.index if ack is None else ack
        elif probe is not None and ack is None and isinstance(frame, (ResumeNone, StreamPending)):
            why = f"{connection.name} asked after {chain.root} had failed and was not offered it"
            return False, Breach(why, (chain.finals["error"], passed.index))
        elif ack is not None and _says_why(chain, frame):
            return True, None
    if ack is not None and view.end is not None and connection.lives_at(view.end):
        why = f"{connection.name} acked the failed turn {chain.root} and was not told its failure"
        return False, Breach(why, (ack, view.end))
    return False, None
