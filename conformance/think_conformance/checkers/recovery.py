"""After a crash: the interrupted turn goes on or ends, its text stays, nobody is told otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import (
    NO_END,
    begun,
    gave_up,
    judged,
    own_words,
    replaced,
    script_of,
    without_outcome,
)
from think_conformance.history.chains import Chain
from think_conformance.history.streams import Chunk, answers, shown
from think_conformance.history.traffic import Connection
from think_conformance.history.views import View
from think_conformance.wire.frames import ChatRequest, ResumeNone, ResumeRequest

NO_CRASH = "no turn was interrupted by a crash"


# ---- outcomes ---------------------------------------------------------------------------------


@check("WIRE-183", needs_quiet=True)
def recovering_is_not_the_end(view: View) -> Finding:
    """Who was told `recovering` can learn a final outcome."""
    told = [
        (chain, terminal.index)
        for chain in view.chains
        for terminal in chain.terminals
        if terminal.kind == "recovering"
    ]
    breaches = (
        Breach(f"{chain.root} was told to be recovering and nothing final followed", (at, view.end or at))
        for chain, at in told
        if without_outcome(view, chain)
    )
    if not told:
        return Finding("void", "nobody was told `recovering`")
    return finding(breaches, seen=view.end is not None, nothing=NO_END)


@check("TURN-16", needs_quiet=True)
def queued_turns_survive(view: View) -> Finding:
    """A turn accepted and not begun when the target died, behind one that ran, still ends."""
    queued = [(chain, death) for chain in judged(view) for death in _queued_at(view, chain)]
    breaches = (
        Breach(f"the queued turn {chain.root} did not survive the crash", (death, view.end or death))
        for chain, death in queued
        if without_outcome(view, chain)
    )
    nothing = "no turn was queued at a crash"
    return finding(breaches, seen=bool(queued) and view.end is not None, nothing=nothing)


def _queued_at(view: View, chain: Chain) -> list[int]:
    return [
        death
        for death in view.deaths_in(chain)
        if (chain.accepted or death) < death
        and not begun(view, chain, death)
        and any(other.open_at(death) and begun(view, other, death) for other in view.chains)
    ]


@check("WIRE-119", needs_quiet=True)
def idle_means_idle(view: View) -> Finding:
    """Nobody who asks after a turn was accepted is told `idle` before that turn is over."""
    found: list[Breach] = []
    told = 0
    chains = judged(view)
    for connection in view.connections.values():
        asked: dict[str | None, int] = {}
        for passed in connection.honest():
            frame = passed.frame
            if isinstance(frame, ResumeRequest):
                asked[frame.probe_id] = passed.index
            elif isinstance(frame, ResumeNone) and frame.reason == "idle":
                since = asked.get(frame.probe_id, connection.dialled)
                accepted = [c for c in chains if (c.accepted or since) < since]
                told += bool(accepted)
                for chain in accepted:
                    found += _still_at_work(view, chain, connection, passed.index)
    return finding(found, seen=told > 0, nothing="nobody was told `idle` after a turn was accepted")


def _still_at_work(view: View, chain: Chain, connection: Connection, idle: int) -> Iterator[Breach]:
    """What shows that a turn was not over when `idle` was said."""
    if not chain.open_at(idle) or chain.cancels or chain.cleared is not None or view.started_by_others():
        return
    sends = [
        p.index
        for p in view.frames
        if p.sent and isinstance(p.frame, ChatRequest) and view.marker_of(p.frame.id) == chain.marker
    ]
    until = next((index for index in sends if index > idle), len(view.history))
    calls = [c.index for c in view.calls_for(chain) if idle < c.index < until]
    chunks = [
        chunk.index
        for request in chain.ids
        for chunk in view.streams.get((connection.name, request), [])
        if not chunk.replay and idle < chunk.index < until
    ]
    ends = [
        terminal.index
        for terminal in chain.terminals
        if terminal.final and not terminal.replay and terminal.connection == connection.name
        if idle < terminal.index < until
    ]
    if calls or chunks or ends:
        why = f"{connection.name} was told that the agent is idle, then {chain.root} went on"
        yield Breach(why, (idle, min(calls + chunks + ends)))
    elif without_outcome(view, chain):
        why = f"{connection.name} was told that the agent is idle, {chain.root} has no outcome"
        yield Breach(why, (idle, view.end or idle))


@check("TURN-43", needs_quiet=True)
def partial_is_continued(view: View) -> Finding:
    """A turn whose stored text was seen, and whose model was answering when the target died, keeps
    the text and goes on."""
    final = view.final
    if final is None:
        return Finding("nothing", NO_END)
    stored = answers(final.messages)
    struck = [(chain, death) for chain in judged(view) for death in _struck_mid_stream(view, chain)]

    def breaches() -> Iterator[Breach]:
        for chain, death in struck:
            for text in _stored_before(view, chain, death):
                if not any(text in answer for answer in stored):
                    why = f"the stored partial {text[:80]!r} of {chain.root} did not survive"
                    yield Breach(why, (death, final.index))
            if not _went_on(view, chain, death) and not gave_up(view, chain, death):
                yield Breach(f"{chain.root} was cut off by the crash and not continued", (death, final.index))

    return finding(breaches(), seen=bool(struck), nothing="no turn was interrupted while its text streamed")


def _struck_mid_stream(view: View, chain: Chain) -> list[int]:
    """Deaths while its model call was open and text of it had been shown."""
    if replaced(view, chain) or chain.cancels:
        return []
    return [
        death
        for death in view.deaths_in(chain)
        if any(call.open_at(death) for call in view.calls_for(chain))
        and shown([c for c in view.chunks_of(chain) if c.index < death])
    ][:1]


def _went_on(view: View, chain: Chain, death: int) -> bool:
    """Whether a turn was continued after a death: its model was asked again, or words of its own came."""
    own = own_words(view).get(chain.marker or "", set())
    return any(call.index > death for call in view.calls_for(chain)) or any(
        word in text
        for text in shown([c for c in view.chunks_of(chain) if c.index > death and not c.replay])
        for word in own
    )


def _stored_before(view: View, chain: Chain, death: int) -> list[str]:
    """The texts of a turn that a replay had shown before the target died: they had been stored."""
    found: list[str] = []
    for (_, request), chunks in view.streams.items():
        if request in chain.ids:
            found += shown([c for c in chunks if c.replay and c.index < death])
    return found


# ---- text -------------------------------------------------------------------------------------


@check("KIT-05", needs_quiet=True)
def stored_text_survives(view: View) -> Finding:
    """Text seen before a crash in a transcript or a replay is in the final transcript."""
    seen: dict[str, tuple[int, ...]] = {}
    kept = [chain for chain in judged(view) if not replaced(view, chain)]
    last = view.deaths[-1] if view.deaths else -1
    if not any(replaced(view, chain) for chain in view.chains):
        for transcript in view.transcripts:
            if transcript.index < last:
                for text in answers(transcript.messages):
                    seen.setdefault(text, (transcript.index, last))
    for chain in kept:
        for text in _stored_before(view, chain, last):
            seen.setdefault(text, (last,))
    return _survives(view, seen)


@check("KIT-06", "KIT-07", needs_quiet=True)
def streamed_text_survives(view: View) -> Finding:
    """So is text that was only streamed."""
    seen = {
        text: (chunks[-1].index, death)
        for chain in judged(view)
        if not replaced(view, chain)
        for death in view.deaths_in(chain)
        for chunks in _streamed_before(view, chain, death)
        for text in shown(chunks)
    }
    return _survives(view, seen)


def _streamed_before(view: View, chain: Chain, death: int) -> Iterator[list[Chunk]]:
    for (_, request), chunks in view.streams.items():
        before = [c for c in chunks if c.index < death]
        if request in chain.ids and before:
            yield before


def _survives(view: View, seen: Mapping[str, tuple[int, ...]]) -> Finding:
    """Every text of `seen`, with the records that show it, is in the final transcript."""
    if view.final is None:
        return Finding("nothing", NO_END)
    final, stored = view.final, answers(view.final.messages)
    breaches = (
        Breach(f"{text[:80]!r} was seen before the crash and is gone", (*at, final.index))
        for text, at in seen.items()
        if not any(text in answer for answer in stored)
    )
    return finding(breaches, seen=bool(seen), nothing="no text was seen before a crash")


@check("KIT-08", needs_quiet=True)
def text_is_not_doubled(view: View) -> Finding:
    """What was shown before a crash is neither stored nor streamed again, unless the model said it
    again: the scripts of the calls it got tell how often it did."""
    final = view.final
    if final is None:
        return Finding("nothing", NO_END)
    stored = answers(final.messages)
    seen = 0
    found: list[Breach] = []
    for chain in judged(view):
        said = "".join(_scripted(view, chain))
        for death in view.deaths_in(chain)[:1] if said else []:
            for text in {t for chunks in _streamed_before(view, chain, death) for t in shown(chunks)}:
                most = max(said.count(text), 1)
                seen += 1
                for answer in stored:
                    if answer.count(text) > most:
                        why = f"the answer to {chain.root} holds {text[:80]!r} {answer.count(text)} times"
                        found.append(Breach(why, (death, final.index)))
                found += _streamed_again(view, chain, death, text, most)
    return finding(found, seen=seen > 0, nothing=NO_CRASH)


def _streamed_again(view: View, chain: Chain, death: int, text: str, most: int) -> Iterator[Breach]:
    """A continuation that began after the crash adds to what was shown: it must not say it again."""
    old = {c.name for c in view.connections.values() if c.opened < death}
    begun = {request for name, request in view.streams if name in old}
    for (name, request), chunks in view.streams.items():
        if request in begun or request not in chain.ids or not view.exchanges[name, request].continuation:
            continue
        if any((text + more).count(text) > most for more in shown(chunks)):
            why = f"{name} was shown {text[:80]!r} again by the continuation {request}"
            yield Breach(why, (death, chunks[0].index))


def _scripted(view: View, chain: Chain) -> Iterator[str]:
    for call in view.calls_for(chain):
        for step in script_of(view, call):
            if isinstance(step, dict) and isinstance(step.get("text"), str):
                yield step["text"]
