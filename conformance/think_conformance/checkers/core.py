"""The invariant: every accepted turn reaches exactly one final outcome, told alike to everyone,
and nothing of it disappears or happens twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import (
    NO_END,
    accepted,
    judged,
    replaced,
    unexplained_calls,
    untold,
    without_outcome,
)
from think_conformance.history.chains import Chain, Request, Terminal
from think_conformance.history.streams import Transcript, answers, message_text, shown
from think_conformance.history.traffic import Exchange, is_chunk
from think_conformance.history.views import View
from think_conformance.wire.frames import ChatMessages, ChatResponse, Message

NO_TURN = "no turn was seen to be accepted"


# ---- outcomes -------------------------------------------------------------------------------


@check("TURN-150", needs_quiet=True)
def one_final_outcome(view: View) -> Finding:
    """Accepted and none = broken, two kinds = broken; judged when the epilogue is over."""
    chains = accepted(view)

    def breaches() -> Iterator[Breach]:
        for chain in chains:
            if len(chain.finals) > 1:
                yield _two_outcomes(chain)
            elif view.lost is not None and untold(view, chain):
                yield Breach(
                    f"the turn {chain.root} was accepted, the target did not come back, and no final outcome"
                    " of it is known",
                    (chain.accepted or chain.first, view.lost),
                )
            elif without_outcome(view, chain):
                yield Breach(
                    f"the turn {chain.root} was accepted and no final outcome of it is known",
                    (chain.accepted or chain.first, view.end or 0),
                )

    return finding(breaches(), seen=bool(chains) and view.end is not None, nothing=NO_TURN)


@check("WIRE-206", needs_quiet=True)
def same_outcome_for_all(view: View) -> Finding:
    """No two final outcomes of different kind for one turn, whoever was told."""
    told = [chain for chain in view.chains if chain.finals]
    breaches = (_two_outcomes(chain) for chain in told if len(chain.finals) > 1)
    return finding(breaches, seen=bool(told), nothing="no final outcome was told")


@check("WIRE-85", needs_quiet=True)
def one_terminal_per_attached_connection(view: View) -> Finding:
    """A connection that follows a request to the end gets its terminal, once."""
    followed = [exchange for exchange in view.exchanges.values() if _follows(view, exchange)]

    def breaches() -> Iterator[Breach]:
        for exchange in followed:
            if view.quiet and _never_ended(view, exchange):
                why = f"{exchange.connection.name} followed {exchange.request} and got no terminal frame"
                yield Breach(why, (exchange.frames[-1].index, view.phases["idle"]))
            yield from _surplus(exchange)

    seen = any(_done(exchange) for exchange in followed)
    return finding(breaches(), seen=seen, nothing="no connection followed a request to its end")


@check("WIRE-209", needs_quiet=True)
def bounded_terminals(view: View) -> Finding:
    """No more terminals of an id on a connection than it asked for, all final ones of one kind."""

    def breaches() -> Iterator[Breach]:
        for (connection, request), exchange in view.exchanges.items():
            yield from _surplus(exchange)
            kinds = {t.kind: t.index for t in _terminals(view, exchange) if t.final}
            if len(kinds) > 1:
                names = " and ".join(str(kind) for kind in kinds)
                yield Breach(f"{connection} was told {names} for {request}", tuple(sorted(kinds.values())))

    seen = any(chain.terminals for chain in view.chains)
    return finding(breaches(), seen=seen, nothing="no terminal frame was seen")


def _two_outcomes(chain: Chain) -> Breach:
    kinds = " and ".join(sorted(chain.finals))
    return Breach(f"the turn {chain.root} was told to be {kinds}", tuple(chain.finals.values()))


def _terminals(view: View, exchange: Exchange) -> list[Terminal]:
    chain, name = view.chain_of.get(exchange.request), exchange.connection.name
    seen = {passed.index for passed in exchange.frames}
    return [t for t in chain.terminals if t.connection == name and t.index in seen] if chain else []


def _done(exchange: Exchange) -> list[int]:
    return [index for index, reply in exchange.replies if reply.done]


def _surplus(exchange: Exchange) -> Iterator[Breach]:
    """More `done` frames than one, the acks and the resends account for. An ack that was answered by
    a replay before the end accounts for none."""
    done = _done(exchange)
    replays = (
        sum(reply.replay_complete and index < done[0] for index, reply in exchange.replies) if done else 0
    )
    asked = max(exchange.asked - replays, 0)
    if len(done) > 1 + asked:
        yield Breach(
            f"{exchange.connection.name} got {len(done)} terminal frames for {exchange.request}"
            f" and had asked for it again {asked} times",
            tuple(done),
        )


def _follows(view: View, exchange: Exchange) -> bool:
    """It sent the request and it was taken, or it got live chunks or the end of a replay."""
    chain = view.chain_of.get(exchange.request)
    if chain is None or chain.accepted is None or exchange.connection.disturbed is not None:
        return False
    if exchange.sender and (chain.request is None or chain.request.valid):
        return True
    return any(
        reply.replay_complete or (is_chunk(reply) and not reply.replay) for _, reply in exchange.replies
    )


def _never_ended(view: View, exchange: Exchange) -> bool:
    """It is still open at the end, and neither the id nor, after a crash, its turn ended there."""
    if not exchange.connection.lives_at(view.phases["idle"]) or _done(exchange):
        return False
    last, name = exchange.frames[-1].index, exchange.connection.name
    told = view.chain_of[exchange.request].terminals
    return not any(t.connection == name and t.final and t.index > last for t in told)


@check("WIRE-93")
def transcript_before_terminal(view: View) -> Finding:
    """Between the last live chunk and a live `completed` stands the stored answer."""
    completed = {t.index for c in view.chains for t in c.terminals if t.kind == "completed" and not t.replay}
    ends = 0
    found: list[Breach] = []
    for connection in view.connections.values():
        last_chunk: dict[str, int] = {}
        transcript = -1
        for passed in connection.honest():
            frame = passed.frame
            if isinstance(frame, ChatMessages) and not passed.sent:
                transcript = passed.index
            if not isinstance(frame, ChatResponse):
                continue
            if is_chunk(frame) and not frame.replay:
                last_chunk[frame.id] = passed.index
            elif passed.index in completed and frame.id in last_chunk:
                ends += 1
                if transcript < last_chunk[frame.id]:
                    why = f"{connection.name} was told the end of {frame.id} before it got the stored answer"
                    found.append(Breach(why, (last_chunk[frame.id], passed.index)))
    return finding(found, seen=ends > 0, nothing="no streamed turn was seen to complete")


# ---- nothing disappears, nothing happens twice ------------------------------------------------


@check("KIT-01", needs_quiet=True)
def user_messages_stay(view: View) -> Finding:
    """An accepted user message is in the final transcript."""
    final = view.final
    if final is None:
        return Finding("nothing", NO_END)
    kept = [(c, c.request) for c in accepted(view) if c.request and not _may_be_gone(view, c)]
    ids = {str(m.get("id")) for m in final.messages}
    said = {message_text(m) for m in final.messages if m.get("role") == "user"}

    def breaches() -> Iterator[Breach]:
        for chain, request in kept:
            for message in _own(view, chain, request):
                if message.get("id") not in ids and message_text(message) not in said:
                    yield Breach(
                        f"the user message {message.get('id')} of the accepted turn {chain.root}"
                        " is not in the transcript",
                        (chain.accepted or chain.first, final.index),
                    )

    return finding(breaches(), seen=bool(kept), nothing=NO_TURN)


def _own(view: View, chain: Chain, request: Request) -> list[Message]:
    own = set(view.own_message_ids(chain))
    return [m for m in request.messages if m.get("id") in own]


def _may_be_gone(view: View, chain: Chain) -> bool:
    """Cleared, skipped, or refused with an error before anything was done for it."""
    own = set(view.own_message_ids(chain))
    untouched = not (
        view.chunks_of(chain)
        or view.calls_for(chain)
        or any(own & {str(m.get("id")) for m in t.messages} for t in view.transcripts)
    )
    return (
        chain.cleared is not None
        or "skipped" in chain.finals
        or (untouched and set(chain.finals) == {"error"})
    )


@check("KIT-02", needs_quiet=True)
def no_call_without_cause(view: View) -> Finding:
    """One model call per turn, and one more for each thing that explains it."""
    breaches = (Breach(wrong, (a.index, b.index)) for a, b, wrong in unexplained_calls(view))
    return finding(breaches, seen=bool(view.calls), nothing="no model call was seen")


@check("KIT-03", needs_quiet=True)
def stored_once(view: View) -> Finding:
    """No transcript holds a message twice, by id or by content."""
    sent: dict[str, set[str]] = {}
    for chain in view.chains:
        for message in chain.request.messages if chain.request else []:
            sent.setdefault(message_text(message), set()).add(str(message.get("id")))
    most = len(view.chains) + len(view.started_by_others())

    def breaches() -> Iterator[Breach]:
        for transcript in view.transcripts:
            counted = Counter(str(m.get("id")) for m in transcript.messages)
            yield from _twice(transcript, counted, dict.fromkeys(counted, 1), "holds the message")
            asked = Counter(message_text(m) for m in transcript.messages if m.get("role") == "user")
            yield from _twice(
                transcript, asked, {t: len(ids) for t, ids in sent.items()}, "holds the question"
            )
            told = Counter(answers(transcript.messages))
            yield from _twice(transcript, told, dict.fromkeys(told, max(most, 1)), "holds the answer")

    seen = any(t.messages for t in view.transcripts)
    return finding(breaches(), seen=seen, nothing="no transcript with a message was seen")


def _twice(
    transcript: Transcript, counted: Counter[str], allowed: dict[str, int], says: str
) -> Iterator[Breach]:
    for what, times in counted.items():
        if what in allowed and times > allowed[what]:
            yield Breach(f"a transcript {says} {what[:80]!r} {times} times", (transcript.index,))


@check("KIT-04", needs_quiet=True)
def shown_text_is_kept(view: View) -> Finding:
    """Where no crash came between, every text a client saw, streamed or in a transcript, is in the
    final transcript."""
    final = view.final
    if final is None:
        return Finding("nothing", NO_END)
    seen: dict[str, tuple[str, int]] = {}
    for chain in judged(view):
        if not replaced(view, chain) and not view.deaths_in(chain):
            for (connection, request), chunks in view.streams.items():
                for text in shown(chunks) if request in chain.ids else []:
                    seen.setdefault(text, (f"{connection} saw of {request}", chunks[-1].index))
    if not any(replaced(view, chain) for chain in view.chains):
        for transcript in view.transcripts:
            if max(view.deaths, default=0) < transcript.index < final.index:
                for text in answers(transcript.messages):
                    seen.setdefault(text, ("a transcript held", transcript.index))
    stored = answers(final.messages)
    breaches = (
        Breach(f"{who} {text[:80]!r}, no stored answer has it", (index, final.index))
        for text, (who, index) in seen.items()
        if not any(text in answer for answer in stored)
    )
    return finding(breaches, seen=bool(seen), nothing="no text of an uninterrupted turn was seen")
