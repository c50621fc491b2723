"""Coming back: probes, offers, acks, and a replay that joins the live stream without a seam."""

from __future__ import annotations

from collections.abc import Iterator

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import (
    Blame,
    aborted_by_itself,
    judged,
    owes_until_the_end,
    resumes,
    unexplained_calls,
)
from think_conformance.checkers.sequence import Walk
from think_conformance.history.chains import Chain
from think_conformance.history.streams import runs, texts
from think_conformance.history.traffic import Exchange, is_chunk
from think_conformance.history.views import View
from think_conformance.wire.frames import (
    ChatRequest,
    ChatResponse,
    ResumeAck,
    ResumeNone,
    ResumeRequest,
    StreamPending,
    StreamResuming,
)

ANSWERS = (ResumeNone, StreamPending, StreamResuming)


# ---- resume frames change nothing -------------------------------------------------------------


@check("WIRE-59", needs_quiet=True)
def coming_back_starts_no_turn(view: View) -> Finding:
    """No unexplained model call follows a resume frame."""
    asked = resumes(view)
    breaches = list(_calls_after(view, asked))
    seen = bool(asked) and bool(view.calls)
    return finding(breaches, seen=seen, nothing="no client came back, or no model call was seen")


@check("WIRE-113", needs_quiet=True)
def resuming_changes_no_turn(view: View) -> Finding:
    """No unexplained model call and no unexplained live `aborted` follows a resume frame. What only an ack is
    answered may have happened before; where a connection was lost in between, WIRE-153 judges."""
    asked = resumes(view)
    running = [c for c in view.chains if any(c.open_at(index) for index in asked)]
    breaches = list(_calls_after(view, asked))
    for chain in running:
        at = aborted_by_itself(view, chain)
        before = max(index for index in asked if chain.open_at(index))
        live = any(t.index == at and not t.replay for t in chain.terminals)
        if at is not None and live and not _lost_between(view, before, at):
            breaches.append(Breach(f"{chain.root} was stopped while a client only came back", (before, at)))
    return finding(breaches, seen=bool(running), nothing="no client came back to a running turn")


def _lost_between(view: View, before: int, at: int) -> bool:
    ends = [i for c in view.connections.values() for i in (c.closed, c.disturbed) if i is not None]
    return any(before < index < at for index in ends)


def _calls_after(view: View, asked: list[int]) -> Iterator[Breach]:
    """A call that a resend may have caused is the resend's fault (WIRE-58), each resend's once."""
    blame = Blame(view)
    for before, call, wrong in sorted(unexplained_calls(view), key=lambda found: found[1].index):
        between = [index for index in asked if before.index < index < call.index]
        if not blame.of_a_resend(call) and between:
            yield Breach(f"{wrong}, behind a resume frame", (between[-1], call.index))


# ---- offers and answers -----------------------------------------------------------------------


@check("WIRE-102")
def one_answer_per_probe(view: View) -> Finding:
    """Each resume request with a `probeId` gets one frame that echoes it."""
    found: list[Breach] = []
    judged = 0
    for connection in view.connections.values():
        asked: dict[str, list[int]] = {}
        told: dict[str, list[int]] = {}
        for passed in connection.honest():
            if isinstance(passed.frame, ResumeRequest) and passed.frame.probe_id:
                asked.setdefault(passed.frame.probe_id, []).append(passed.index)
            elif isinstance(passed.frame, ANSWERS) and passed.frame.probe_id:
                told.setdefault(passed.frame.probe_id, []).append(passed.index)
        for probe, sent in asked.items():
            answers = told.get(probe, [])
            if len(answers) > len(sent):
                why = f"{connection.name} got {len(answers)} direct answers to the probe {probe}"
                found.append(Breach(why, (*sent, *answers)))
            elif len(answers) < len(sent) and owes_until_the_end(view, connection, sent[-1]):
                found.append(Breach(f"the probe {probe} of {connection.name} was not answered", tuple(sent)))
            judged += len(answers)
    return finding(found, seen=judged > 0, nothing="no probe was answered")


@check("WIRE-105")
def no_chunks_before_the_ack(view: View) -> Finding:
    """Between the first offer of a stream and its ack no live chunk of it arrives."""
    found: list[Breach] = []
    offers = 0
    for exchange in view.exchanges.values():
        offered: int | None = None
        for passed in exchange.frames:
            frame = passed.frame
            if isinstance(frame, StreamResuming) and offered is None:
                offered = passed.index
                offers += 1
            elif isinstance(frame, (ResumeAck, ChatRequest)):
                if offered is not None:
                    break
            elif offered is not None and isinstance(frame, ChatResponse) and is_chunk(frame):
                if not frame.replay:  # a replay answers an ack that crossed the offer
                    why = f"{exchange.connection.name} got a live chunk of {exchange.request} before its ack"
                    found.append(Breach(why, (offered, passed.index)))
                break
    return finding(found, seen=offers > 0, nothing="no stream was offered")


@check("WIRE-112", needs_quiet=True)
def cut_replay_changes_nothing(view: View) -> Finding:
    """A turn whose replay met a closed socket is not `aborted` for it, and whoever comes and acks
    afterwards is replayed every chunk that had been shown before."""
    found: list[Breach] = []
    seen = 0
    for chain in judged(view):
        cuts = [cut for exchange in _exchanges(view, chain) if (cut := _replay_cut(chain, exchange))]
        first, told = min(cuts, default=None), aborted_by_itself(view, chain)
        if first is None or view.deaths:
            continue
        if told is not None and told > first:
            found.append(Breach(f"a replay of {chain.root} was cut, and the turn was aborted", (first, told)))
        for exchange in _exchanges(view, chain):
            if exchange.connection.dialled > first and any(r.replay_complete for _, r in exchange.replies):
                seen += 1
                found += _replayed_less(view, exchange, first)
    return finding(found, seen=seen > 0, nothing="nobody came back after a replay that was cut")


def _exchanges(view: View, chain: Chain) -> list[Exchange]:
    return [exchange for (_, request), exchange in view.exchanges.items() if request in chain.ids]


def _replay_cut(chain: Chain, exchange: Exchange) -> int | None:
    """The record in which a connection broke that had acked a running turn and had not got its replay."""
    ends = (exchange.connection.closed, exchange.connection.disturbed)
    broke = min((index for index in ends if index is not None), default=None)
    acks = [p.index for p in exchange.frames if p.sent and isinstance(p.frame, ResumeAck)]
    whole = [index for index, reply in exchange.replies if reply.replay_complete]
    cut = broke is not None and acks and max(whole, default=-1) < acks[-1] < broke
    return broke if cut and broke is not None and chain.open_at(broke) else None


def _replayed_less(view: View, exchange: Exchange, cut: int) -> Iterator[Breach]:
    """Where chunks have a `seq`: one that was shown before a newcomer dialled is not replayed to it."""
    dialled, request = exchange.connection.dialled, exchange.request
    chunks = [c for (_, ident), some in view.streams.items() if ident == request for c in some]
    before = {c.seq for c in chunks if c.index < dialled and c.seq is not None}
    own = view.streams.get((exchange.connection.name, request), [])
    lost = before - {c.seq for c in own if c.replay}
    if lost and any(c.seq is not None for c in own):
        why = f"{exchange.connection.name}, {request}: seq {min(lost)} was shown before and is not replayed"
        yield Breach(why, (cut, own[-1].index))


# ---- order of chunks --------------------------------------------------------------------------


@check("WIRE-83")
def live_seq_has_no_gap(view: View) -> Finding:
    """From live chunk to live chunk of a request `seq` grows by one, for its sender from 0."""
    found: list[Breach] = []
    seen = False
    for exchange in view.exchanges.values():
        walk = Walk(exchange)
        seen = seen or walk.live_chunks > 0
        found += walk.live
        if not walk.replays:
            found += _cut_short(view, walk)
    return finding(found, seen=seen, nothing="no live chunk with a seq was seen")


@check("WIRE-104")
def replay_joins_live(view: View) -> Finding:
    """After an ack: the stored stream from its start, then the live tail; no gap, no overlap."""
    found: list[Breach] = []
    seen = False
    for exchange in view.exchanges.values():
        walk = Walk(exchange)
        seen = seen or any(reply.replay and is_chunk(reply) for _, reply in exchange.replies)
        found += walk.resumed
        if walk.replays:
            found += _cut_short(view, walk)
        found += _reads_otherwise(view, walk)
    return finding(found, seen=seen, nothing="no replay was seen")


def _cut_short(view: View, walk: Walk) -> Iterator[Breach]:
    """It was owed the live stream and got the end of the request, but not the last chunks that
    another connection got."""
    end, due = walk.end or (0, None)
    if view.deaths or due is None or walk.exchange.connection.disturbed is not None:
        return
    request = walk.exchange.request
    others = [chunks for (_, ident), chunks in view.streams.items() if ident == request]
    last, at = max((c.seq, c.index) for chunks in others for c in chunks if c.seq is not None)
    if last >= due:
        why = f"{walk.exchange.connection.name}, {request}: the end came where seq {due} is due"
        yield Breach(why, (at, end))


def _reads_otherwise(view: View, walk: Walk) -> Iterator[Breach]:
    """Without `seq`: replay and live tail together must read like the stream its sender saw."""
    exchange = walk.exchange
    read = _whole(view, walk)
    if read is None or not any(reply.replay_complete for _, reply in exchange.replies):
        return
    for other in view.exchanges.values():
        if other.request == exchange.request and other.sender and not other.asked:
            text = _whole(view, Walk(other))
            if text is not None and text != read:
                why = f"{exchange.connection.name} read {exchange.request} otherwise than its sender did"
                yield Breach(why, (exchange.frames[-1].index,))


def _whole(view: View, walk: Walk) -> str | None:
    """The text of a stream without `seq` that a connection followed to its end, unharmed."""
    exchange = walk.exchange
    chunks = view.streams.get((exchange.connection.name, exchange.request), [])
    harmed = bool(view.deaths) or exchange.connection.disturbed is not None
    if harmed or walk.end is None or not chunks or any(chunk.seq is not None for chunk in chunks):
        return None
    return "".join(texts(runs(chunks)[-1]))
