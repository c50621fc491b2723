"""Own question, own answer: what one user asked is answered for itself, in its place, one turn at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import NO_END, judged, own_words, replaced
from think_conformance.history.chains import Chain
from think_conformance.history.streams import Transcript, message_text, shown
from think_conformance.history.traffic import is_chunk
from think_conformance.history.views import View
from think_conformance.wire.frames import ChatResponse


@check("WIRE-62", needs_quiet=True)
def own_question_is_asked(view: View) -> Finding:
    """The first model call of a turn ends with its user message, every answer streamed has a call of
    its own, and nothing streams what the model said to another turn's question.

    That the last client-sent user message of a later call is the turn's own needs no look: a call
    belongs to the turn whose marker comes last."""
    asked = [chain for chain in judged(view) if chain.marker is not None and not replaced(view, chain)]
    found = [*_led_astray(view, asked), *_answered_unasked(view, asked), *_said_to_another(view, asked)]
    seen = any(view.calls_for(chain) for chain in asked)
    return finding(found, seen=seen, nothing="no model call of a client's turn was seen")


def _led_astray(view: View, chains: list[Chain]) -> Iterator[Breach]:
    for chain in chains:
        first = next(iter(view.calls_for(chain)), None)
        last = first.prompt[-1] if first is not None and first.prompt else None
        if first is None or last is None:
            continue
        if last.get("role") != "user" or f"[[{chain.marker}]]" not in str(last.get("content")):
            yield Breach(
                f"the first prompt of {chain.root} does not end with its user message",
                (chain.first, first.index),
            )


def _answered_unasked(view: View, chains: list[Chain]) -> Iterator[Breach]:
    for chain in chains:
        chunks = view.chunks_of(chain)
        if view.calls and shown(chunks) and not view.calls_for(chain):
            why = f"{chain.root} was answered and no model call had its user message last"
            yield Breach(why, (chain.first, chunks[0].index))


def _said_to_another(view: View, chains: list[Chain]) -> Iterator[Breach]:
    words = own_words(view)
    for chain in chains:
        for (name, request), chunks in view.streams.items():
            said = "".join(shown(chunks)) if request in chain.ids else ""
            for marker, texts in words.items():
                strange = next((text for text in texts if text in said), None)
                if marker != chain.marker and strange is not None:
                    why = (
                        f"{name} was shown {strange!r} as the answer to {chain.root}, it was said to {marker}"
                    )
                    yield Breach(why, (chunks[0].index, chunks[-1].index))


@check("WIRE-96")
def turns_do_not_interleave(view: View) -> Finding:
    """On one connection the live chunks of a request that has not ended are not cut by another's."""
    found: list[Breach] = []
    seen = False
    for connection in view.connections.values():
        open_since: dict[str, int] = {}
        streamed: set[str] = set()
        last: str | None = None
        for passed in connection.honest():
            frame = passed.frame
            if not isinstance(frame, ChatResponse) or frame.replay:
                continue
            if frame.done:
                open_since.pop(frame.id, None)
            elif is_chunk(frame):
                if frame.id != last and frame.id in open_since:
                    why = f"{connection.name} got chunks of {last} between those of {frame.id}"
                    found.append(Breach(why, (open_since[frame.id], passed.index)))
                open_since[frame.id], last = passed.index, frame.id
                streamed.add(frame.id)
        seen = seen or len(streamed) > 1
    return finding(found, seen=seen, nothing="no connection saw two requests stream")


@check("KIT-09", needs_quiet=True)
def own_answer_behind_the_question(view: View) -> Finding:
    """In the final transcript each answer stands behind its own question and before the next answer,
    and holds nothing that was said to another. Only the reference must put it directly behind."""
    final = view.final
    if final is None:
        return Finding("nothing", NO_END)
    placed = sorted(_placed(view, final), key=lambda place: place[1])

    def breaches() -> Iterator[Breach]:
        for chain, asked, answered in placed:
            if min(answered) < asked:
                yield Breach(f"the answer to {chain.root} stands before its question", (final.index,))
            elif view.case.facts and asked + 1 not in answered:
                why = f"something stands between the question of {chain.root} and its answer"
                yield Breach(why, (chain.first, final.index))
        for (one, _, earlier), (other, _, later) in pairwise(placed):
            if set(earlier) & set(later):
                yield Breach(f"one message answers both {one.root} and {other.root}", (final.index,))
            elif max(earlier) > min(later):
                yield Breach(f"the answers to {one.root} and {other.root} are swapped", (final.index,))

    return finding(breaches(), seen=bool(placed), nothing="no stored answer is known to belong to a question")


def _placed(view: View, final: Transcript) -> Iterator[tuple[Chain, int, list[int]]]:
    """Each turn with a question and an answer in the transcript, with their places there."""
    words = own_words(view)
    for chain in judged(view):
        own = set(view.own_message_ids(chain))
        asked = [place for place, m in enumerate(final.messages) if str(m.get("id")) in own]
        answered = [
            place
            for place, message in enumerate(final.messages)
            if message.get("role") == "assistant"
            and any(word in message_text(message) for word in words.get(chain.marker or "", ()))
        ]
        if asked and answered and not replaced(view, chain):
            yield chain, asked[-1], answered
