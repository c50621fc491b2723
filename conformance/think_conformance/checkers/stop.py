"""Stop: it ends the turn it names, at every moment of it, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import (
    aborted_by_itself,
    answered_on,
    begun,
    judged,
    known_before,
    lost_in,
    open_in_vain,
    released,
    waits_in_vain,
)
from think_conformance.history.chains import Chain
from think_conformance.history.traffic import Passed
from think_conformance.history.views import View
from think_conformance.history.work import Call
from think_conformance.wire.frames import (
    CancelRequest,
    ChatRequest,
    ResumeNone,
    ResumeRequest,
    StreamPending,
    StreamResuming,
)

NO_STOP = "no stop reached a running turn for certain"


# ---- a running turn ---------------------------------------------------------------------------


@check("CANCEL-05", needs_quiet=True)
def stop_aborts(view: View) -> Finding:
    """A cancel that met a turn whose model is held at a gate ends the turn `aborted`, and the model's
    call with it, before the gate is opened."""
    return finding(stops_without_effect(view), seen=bool(stopped(view)), nothing=NO_STOP)


def stopped(view: View) -> list[Chain]:
    """The turns that a client stopped, that were told to be aborted, and whose model was hung up on."""
    return [
        chain
        for chain in judged(view)
        if chain.cancels and (told := chain.finals.get("aborted")) is not None
        if not any(answered_on(call, told) for call in view.calls_for(chain))
    ]


def stops_without_effect(view: View) -> Iterator[Breach]:
    """Stops of turns that no crash had interrupted, and what was wrong after them."""
    for chain in judged(view):
        for cancel in chain.cancels if not view.deaths_in(chain) else []:
            yield from _without_effect(view, chain, cancel)


def _without_effect(view: View, chain: Chain, cancel: Passed) -> Iterator[Breach]:
    call = _held(view, chain, cancel)
    if call is None:
        return
    until = released(view, call)
    told = [(at, kind) for kind, at in chain.finals.items() if cancel.index < at < until]
    for at, kind in told:
        if kind != "aborted":
            yield Breach(f"{chain.root} was stopped and told to be {kind}", (cancel.index, at))
    since = max(cancel.index, call.index)
    gave_up = next((index for index in waits_in_vain(view, since) if index < until), None)
    if not told and gave_up is not None and view.connections[cancel.connection].lives_at(gave_up):
        yield Breach(f"{chain.root} was stopped and did not end", (cancel.index, gave_up))
    runs_on = open_in_vain(view, call, told[0][0]) if told else None
    if runs_on is not None:
        yield Breach(f"{chain.root} was stopped and its model call goes on", (call.index, runs_on))


def _held(view: View, chain: Chain, cancel: Passed) -> Call | None:
    """The call that cannot end by itself while a cancel that surely arrived takes effect: it held at a
    gate already, or it was made although the turn had been stopped, and holds."""
    connection = view.connections[cancel.connection]
    heard = (
        chain.accepted is not None
        and chain.accepted < cancel.index
        and chain.open_at(cancel.index)
        and connection.disturbed is None
        and not any(cancel.index < death for death in view.deaths_in(chain))
        and connection.lives_at(chain.ended or cancel.index)
    )
    for call in view.calls_for(chain) if heard else []:
        held_before = call.open_at(cancel.index) and any(at < cancel.index for at in call.gates.values())
        if held_before or (call.index > cancel.index and call.gates):
            return call
    return None


# ---- a recovered turn -------------------------------------------------------------------------


@check("CANCEL-09", needs_quiet=True)
def stop_reaches_the_recovery(view: View) -> Finding:
    """A cancel that names the id a client sent stops the turn's recovery too, whenever it comes."""
    return _recovery_stopped(view, [(c, p) for c, p in _late_cancels(view) if _named(p) == c.root])


@check("WIRE-155", needs_quiet=True)
def stop_by_either_id(view: View) -> Finding:
    """While a recovered turn streams, a cancel of its first or of its present id stops it."""
    return _recovery_stopped(
        view,
        [
            (chain, cancel)
            for chain, cancel in _late_cancels(view)
            if any(_back(view, chain, cancel) < call.index < cancel.index for call in view.calls_for(chain))
        ],
    )


@check("WIRE-156", needs_quiet=True)
def one_end_of_a_stopped_recovery(view: View) -> Finding:
    """Who is connected is told once that a recovered turn was stopped, whatever ids it had."""
    found: list[Breach] = []
    ended = [chain for chain, _ in _late_cancels(view) if "aborted" in chain.finals]
    for chain in ended:
        told: dict[str, list[int]] = {}
        for terminal in chain.terminals:
            if terminal.kind == "aborted" and not terminal.replay:
                told.setdefault(terminal.connection, []).append(terminal.index)
        for name, indexes in told.items():
            if len(indexes) > 1 and not _asked_again(view, name, chain):
                found.append(
                    Breach(
                        f"{name} was told {len(indexes)} times that {chain.root} was stopped", tuple(indexes)
                    )
                )
    return finding(found, seen=bool(ended), nothing="no recovered turn was stopped")


def _late_cancels(view: View) -> list[tuple[Chain, Passed]]:
    """Each stop of a turn after a crash had interrupted it, on a connection to the new process."""
    return [
        (chain, cancel)
        for chain in judged(view)
        for cancel in chain.cancels
        if chain.open_at(cancel.index) and any(death < cancel.index for death in view.deaths_in(chain))
    ]


def _recovery_stopped(view: View, cancels: list[tuple[Chain, Passed]]) -> Finding:
    breaches = (b for chain, cancel in cancels for b in _without_effect(view, chain, cancel))
    seen = any("aborted" in chain.finals for chain, _ in cancels)
    return finding(breaches, seen=seen, nothing="no stop reached a recovered turn for certain")


def _back(view: View, chain: Chain, cancel: Passed) -> int:
    """The last death before a cancel."""
    return max(death for death in view.deaths_in(chain) if death < cancel.index)


def _named(passed: Passed) -> str | None:
    return getattr(passed.frame, "id", None)


def _asked_again(view: View, name: str, chain: Chain) -> bool:
    """Whether a connection sent the request again, which is answered with its end (WIRE-58)."""
    return any(
        p.sent and p.connection == name and isinstance(p.frame, ChatRequest) and p.frame.id in chain.ids
        for p in view.frames
    )


# ---- a turn that waits, and one that is not there ---------------------------------------------


@check("WIRE-150", needs_quiet=True)
def queued_turn_is_stopped(view: View) -> Finding:
    """A cancel that certainly met a turn that waited behind a held one ends it `aborted`, without a model
    call; its user message stays."""
    found: list[Breach] = []
    seen = 0
    for chain in judged(view):
        cancel = next((c for c in chain.cancels if _met_while_waiting(view, chain, c)), None)
        if cancel is None or chain.cleared is not None:
            continue
        seen += "aborted" in chain.finals
        called = next((c.index for c in view.calls_for(chain) if c.index > cancel.index), None)
        if called is not None:
            why = f"{chain.root} was stopped while it waited, and its model was called"
            found.append(Breach(why, (cancel.index, called)))
        for kind, at in chain.finals.items():
            if kind != "aborted":
                why = f"{chain.root} was stopped while it waited and told to be {kind}"
                found.append(Breach(why, (cancel.index, at)))
        kept = {str(m.get("id")) for m in view.final.messages} if view.final else None
        if kept is not None and not kept.issuperset(view.own_message_ids(chain)):
            why = f"the user message of {chain.root}, stopped while it waited, is gone"
            found.append(Breach(why, (cancel.index, view.final.index if view.final else cancel.index)))
    return finding(found, seen=seen > 0, nothing="no waiting turn was stopped for certain")


def _met_while_waiting(view: View, chain: Chain, cancel: Passed) -> bool:
    """Whether the target met the cancel while another turn's model was held: it answered a probe that
    the same connection sent behind the cancel, and the gate was closed until then."""
    if (
        begun(view, chain, cancel.index)
        or view.deaths_in(chain)
        or (chain.accepted or cancel.index) >= cancel.index
    ):
        return False
    met = _met(view, cancel)
    return met is not None and any(
        call.open_at(cancel.index)
        and call.gates
        and min(call.gates.values()) < cancel.index
        and met < released(view, call)
        for other in judged(view)
        if other is not chain and other.first < chain.first and not other.cancels
        for call in view.calls_for(other)
    )


def _met(view: View, sent: Passed) -> int | None:
    """The first record that shows that the target has met what a connection sent: frames of one
    connection are met in order, and it answered a probe that was sent behind it."""
    probes = set()
    for passed in view.connections[sent.connection].honest():
        frame = passed.frame
        if passed.index > sent.index and isinstance(frame, ResumeRequest) and frame.probe_id:
            probes.add(frame.probe_id)
        elif isinstance(frame, (ResumeNone, StreamPending, StreamResuming)) and frame.probe_id in probes:
            return passed.index
    return None


@check("WIRE-41", needs_quiet=True)
def stop_of_nothing_is_ignored(view: View) -> Finding:
    """A cancel of an id that was never used, or whose end this connection was told, gets no answer; nor
    does it end a turn that it does not name."""
    found: list[Breach] = []
    seen = 0
    for connection in view.connections.values():
        for passed in connection.honest():
            if not isinstance(passed.frame, CancelRequest) or not _names_nothing(view, passed):
                continue
            seen += _met(view, passed) is not None
            request = passed.frame.id
            answer = _answer(view, passed, request)
            if answer is not None:
                why = f"{connection.name} stopped {request}, which is no running turn, and got an answer"
                found.append(Breach(why, (passed.index, answer)))
            for chain, told in _aborted_without(view, passed):
                why = f"{connection.name} stopped {request}, and {chain.root} was aborted"
                found.append(Breach(why, (passed.index, told)))
    return finding(found, seen=seen > 0, nothing="nobody stopped an id that names no running turn")


def _names_nothing(view: View, cancel: Passed) -> bool:
    request = _named(cancel) or ""
    chain = view.chain_of.get(request)
    over = chain is not None and any(
        t.connection == cancel.connection
        and t.final
        and t.done
        and t.index < cancel.index
        and t.request == request
        for t in chain.terminals
    )
    return over or not known_before(view, request, cancel.index)


def _answer(view: View, cancel: Passed, request: str) -> int | None:
    """The first frame about that id behind the cancel, on a connection that never asked for it again."""
    exchange = view.exchanges.get((cancel.connection, request))
    if exchange is None or exchange.asked > 0:
        return None
    return next((index for index, _ in exchange.replies if index > cancel.index), None)


def _aborted_without(view: View, cancel: Passed) -> Iterator[tuple[Chain, int]]:
    """The turns that ran at a cancel, were aborted, and had no cancel of their own and no loss (which is
    for WIRE-153 to judge)."""
    for chain in judged(view):
        told = aborted_by_itself(view, chain)
        if told is not None and chain.open_at(cancel.index) and lost_in(view, chain) is None:
            yield chain, told
