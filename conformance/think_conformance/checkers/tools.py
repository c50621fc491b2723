"""Tools across a crash: what was done stays done, what was interrupted is said to be so, nothing is done
twice."""

from __future__ import annotations

from collections.abc import Iterator

from think_conformance.checkers.base import Breach, Finding, check, finding
from think_conformance.checkers.causes import NO_END, gave_up, judged, script_of
from think_conformance.history.chains import Chain
from think_conformance.history.streams import Chunk
from think_conformance.history.views import View
from think_conformance.history.work import Call, Crash, Effect

SETTLED = frozenset({"output-available", "output-error", "output-denied"})


@check("TURN-46", needs_quiet=True)
def interrupted_call_is_repaired(view: View) -> Finding:
    """A tool call that a crash caught between its effect and its result has a result in the next
    prompt, and its effect does not come again."""
    found: list[Breach] = []
    seen = 0
    for chain, crash in _crashes(view):
        struck = [effect for effect in _effects(view, chain) if _unsettled(view, chain, effect, crash)]
        after = _calls_after(view, chain, crash)
        seen += bool(struck and after)
        found += _repeated(view, chain, struck, crash)
        if struck and not after and _owed_more(view, chain, crash.death):
            why = f"{chain.root} was cut off in a tool call by the crash and not continued"
            found.append(Breach(why, (struck[0].index, crash.death)))
        for call in after[:1] if struck else []:
            if call.unanswered:
                why = f"the model was asked for {chain.root} with a tool call that has no result"
                found.append(Breach(why, (struck[0].index, call.index)))
    return finding(found, seen=seen > 0, nothing="no tool call was interrupted by a crash")


def _owed_more(view: View, chain: Chain, death: int) -> bool:
    """Whether nobody and nothing ended a turn, and the target says that it is done."""
    ended = gave_up(view, chain, death) or chain.cancels or chain.cleared is not None
    return "idle" in view.phases and not ended


@check("TURN-48", needs_quiet=True)
def settled_result_survives(view: View) -> Finding:
    """A tool result that was seen before a crash is in every later prompt of the turn and in the
    transcript, and its effect does not come again."""
    if view.final is None:
        return Finding("nothing", NO_END)
    found: list[Breach] = []
    seen = 0
    for chain, crash in _crashes(view):
        results = _results(view, chain, crash)
        done = [e for e in _effects(view, chain) if not _unsettled(view, chain, e, crash)]
        seen += bool(results)
        found += _repeated(view, chain, [e for e in done if e.index < crash.death], crash)
        for call in _calls_after(view, chain, crash):
            for ident, content in results.items():
                if call.tool_results.get(ident) != content and not (
                    content is None and ident in call.tool_results
                ):
                    why = f"the model was asked for {chain.root} without the result of {ident} as it was"
                    found.append(Breach(why, (crash.death, call.index)))
        lost = results.keys() - _stored(view)
        if lost:
            why = f"the result of {min(lost)} is not in the transcript"
            found.append(Breach(why, (crash.death, view.final.index)))
    return finding(found, seen=seen > 0, nothing="no tool result was seen before a crash")


def _crashes(view: View) -> Iterator[tuple[Chain, Crash]]:
    for chain in judged(view):
        if chain.cleared is None and not chain.cancels:
            for crash in view.crashes_in(chain):
                yield chain, crash


def _calls_after(view: View, chain: Chain, crash: Crash) -> list[Call]:
    return [c for c in view.calls_for(chain) if crash.back is not None and c.index > crash.back]


def _keys(view: View, call: Call) -> set[str]:
    """The effects that the model asked for in a call."""
    asked = (step.get("args") for step in script_of(view, call) if isinstance(step, dict) and "tool" in step)
    return {
        str(args.get("key")).replace("{case}", view.case.name) for args in asked if isinstance(args, dict)
    }


def _effects(view: View, chain: Chain) -> list[Effect]:
    keys = {key for call in view.calls_for(chain) for key in _keys(view, call)}
    return [effect for effect in view.effects if effect.key in keys]


def _unsettled(view: View, chain: Chain, effect: Effect, crash: Crash) -> bool:
    """Whether an effect had come before a crash, and no result of a tool behind it."""
    told = any(
        effect.index < call.index < crash.death and call.tool_results for call in view.calls_for(chain)
    )
    shown = any(effect.index < c.index < crash.death and _settles(c) for c in view.chunks_of(chain))
    return effect.index < crash.death and not told and not shown


def _settles(chunk: Chunk) -> bool:
    """Whether it tells the result of a tool call for good."""
    kind = str(chunk.body.get("type")).removeprefix("tool-")
    return kind in SETTLED and not chunk.body.get("preliminary")


def _repeated(view: View, chain: Chain, struck: list[Effect], crash: Crash) -> Iterator[Breach]:
    """Effects that came again after the crash, and oftener than the model asked for them."""
    for key in sorted({effect.key for effect in struck}):
        all_of_it = [effect.index for effect in view.effects if effect.key == key]
        again = [index for index in all_of_it if index > crash.death]
        asked = sum(key in _keys(view, call) for call in view.calls_for(chain))
        if again and len(all_of_it) > asked:
            times = f"came {len(all_of_it)} times and the model asked for it {asked} times"
            why = f"the effect of {chain.root} {times}"
            yield Breach(why, (all_of_it[0], again[0]))


def _results(view: View, chain: Chain, crash: Crash) -> dict[str, object]:
    """The tool results of a turn that were seen before a crash, by the id of their call: the content
    that the model was told, None where only a client was told."""
    found: dict[str, object] = {}
    for chunk in view.chunks_of(chain):
        ident = chunk.body.get("toolCallId")
        if chunk.index < crash.death and _settles(chunk) and isinstance(ident, str):
            found[ident] = None
    for call in view.calls_for(chain):
        if call.index < crash.death:
            found |= call.tool_results
    return found


def _stored(view: View) -> set[str]:
    """The ids of the tool calls that the final transcript has a result of."""
    parts = (
        part
        for message in (view.final.messages if view.final else [])
        for part in (message["parts"] if isinstance(message.get("parts"), list) else [])
    )
    return {
        str(part.get("toolCallId"))
        for part in parts
        if isinstance(part, dict) and part.get("state") in SETTLED
    }
