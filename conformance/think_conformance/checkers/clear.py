"""Clear: everything of the chat ends and is gone, and everybody who looks on is told so."""

from __future__ import annotations

from collections.abc import Iterator

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import (
    NO_END,
    answered_on,
    begun,
    judged,
    open_in_vain,
    owes_until_the_end,
    released,
    waits_in_vain,
)
from think_conformance.history.chains import Chain
from think_conformance.history.streams import answers
from think_conformance.history.traffic import Passed
from think_conformance.history.views import View
from think_conformance.history.work import Call
from think_conformance.wire.frames import ChatClear, ChatRequest

NO_CLEAR = "nobody cleared the chat"


@check("WIRE-190", needs_quiet=True)
def clear_ends_turns(view: View) -> Finding:
    """A clear that met a turn held at a gate ends it `aborted`, and its model call; a turn that waited
    behind it ends `skipped`."""
    found: list[Breach] = []
    seen = 0
    for cleared in _clears(view):
        for chain, call in _held_at(view, cleared):
            waiting = [c for c in judged(view) if _waits(view, c, chain, cleared)]
            for one, due in [(chain, "aborted"), *((c, "skipped") for c in waiting)]:
                found += _ends_otherwise(view, one, due, cleared)
            told = chain.finals.get("aborted")
            seen += told is not None and not answered_on(call, told)
            runs_on = open_in_vain(view, call, told) if told is not None else None
            if runs_on is not None:
                why = f"the chat was cleared and the model call of {chain.root} goes on"
                found.append(Breach(why, (call.index, runs_on)))
    return finding(found, seen=seen > 0, nothing="no clear met a running turn for certain")


def _clears(view: View) -> list[Passed]:
    """The clears that surely arrived: their connection lived on unharmed, and so did the target."""
    return [
        passed
        for passed in view.frames
        if passed.sent
        and isinstance(passed.frame, ChatClear)
        and owes_until_the_end(view, view.connections[passed.connection], passed.index)
    ]


def _held_at(view: View, cleared: Passed) -> Iterator[tuple[Chain, Call]]:
    """The turn that nobody stopped and whose model could not end by itself when the clear took effect."""
    for chain in judged(view):
        for call in view.calls_for(chain) if chain.open_at(cleared.index) and not chain.cancels else []:
            held = any(at < cleared.index for at in call.gates.values()) and call.open_at(cleared.index)
            until = released(view, call)
            took_effect = chain.ended is not None and chain.ended < until
            in_vain = any(index < until for index in waits_in_vain(view, cleared.index))
            if held and (took_effect or in_vain):
                yield chain, call


def _waits(view: View, chain: Chain, running: Chain, cleared: Passed) -> bool:
    return (
        chain is not running
        and (chain.accepted or cleared.index) < cleared.index
        and chain.open_at(cleared.index)
        and not chain.cancels
        and not begun(view, chain, cleared.index)
    )


def _ends_otherwise(view: View, chain: Chain, due: str, cleared: Passed) -> Iterator[Breach]:
    for kind, at in chain.finals.items():
        if kind != due:
            why = f"{chain.root} was to be {due} by the clear and was told to be {kind}"
            yield Breach(why, (cleared.index, at))
    if not chain.finals and view.end is not None:
        yield Breach(
            f"the chat was cleared and nobody was told the end of {chain.root}", (cleared.index, view.end)
        )


@check("WIRE-77", needs_quiet=True)
def others_are_told(view: View) -> Finding:
    """Every other connection that was open at a clear and stayed gets `chat_clear`."""
    clears = _clears(view)
    owed = [
        (cleared, connection)
        for cleared in clears
        for connection in view.connections.values()
        if connection.name != cleared.connection
        and connection.lives_at(cleared.index)
        and owes_until_the_end(view, connection, cleared.index)
    ]
    breaches = (
        Breach(f"{connection.name} was not told that the chat was cleared", (cleared.index, view.end or 0))
        for cleared, connection in owed
        if not any(
            not p.sent and isinstance(p.frame, ChatClear) and p.index > cleared.index
            for p in connection.frames
        )
    )
    return finding(breaches, seen=bool(owed), nothing="nobody looked on when a chat was cleared")


@check("WIRE-191", needs_quiet=True)
def sender_is_not_told(view: View) -> Finding:
    """Who cleared the chat gets no `chat_clear` for it; where several did, nothing can be told."""
    clears = _clears(view)
    alone = clears if len([p for p in view.frames if p.sent and isinstance(p.frame, ChatClear)]) == 1 else []
    breaches = (
        Breach(f"{p.connection} cleared the chat and was told so", (cleared.index, p.index))
        for cleared in alone
        for p in view.connections[cleared.connection].honest()
        if not p.sent and isinstance(p.frame, ChatClear)
    )
    return finding(breaches, seen=bool(alone), nothing=NO_CLEAR)


@check("WIRE-192", needs_quiet=True)
def nothing_comes_back(view: View) -> Finding:
    """After a clear behind which nothing was sent, the transcript holds no message and no text that was
    there before."""
    final = view.final
    if final is None:
        return Finding("nothing", NO_END)
    clears = _clears(view)
    sends = [p.index for p in view.frames if p.sent and isinstance(p.frame, ChatRequest)]
    last = next((c for c in reversed(clears) if all(index < c.index for index in sends)), None)
    if last is None:
        return Finding("nothing", NO_CLEAR)
    before = {str(m.get("id")) for t in view.transcripts if t.index < last.index for m in t.messages}
    before |= {i for chain in view.chains for i in view.own_message_ids(chain)}
    left = [m for m in final.messages if str(m.get("id")) in before]
    breaches = [
        Breach(f"the message {m.get('id')} was cleared and is there", (last.index, final.index)) for m in left
    ]
    texts = [text for text in answers(final.messages) if text] if not left else []
    breaches += [Breach(f"{text[:80]!r} came after the clear", (last.index, final.index)) for text in texts]
    return finding(breaches, seen=bool(before), nothing="there was nothing to clear")
