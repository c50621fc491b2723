"""Whether repeats of a case agree: the same verdict per requirement, the same faults fired at the
same ordinals. Histories may differ; decisions may not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import msgspec

from think_conformance.checkers.base import State, Verdict
from think_conformance.history.op import History


def flaky(verdicts: list[Verdict], histories: Mapping[str, History]) -> list[Verdict]:
    """The same verdicts, those that repeats disagree on marked `flaky`. The first failure keeps its
    reason and evidence."""
    states: dict[tuple[str, str], set[State]] = defaultdict(set)
    for verdict in verdicts:
        states[scenario_of(verdict.case), verdict.requirement].add(verdict.state)
    shots: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    for case, history in histories.items():
        shots[scenario_of(case)].add(fired(history))
    return [
        _marked(v, sorted(states[scenario_of(v.case), v.requirement]), shots[scenario_of(v.case)])
        for v in verdicts
    ]


def _marked(verdict: Verdict, states: list[State], shots: set[tuple[object, ...]]) -> Verdict:
    """A verdict in view of the states of all repeats, and of where faults struck in each."""
    differ = states if len(states) > 1 else []
    if differ:
        why = f"repeats differ: {', '.join(differ)}"
    elif len(shots) > 1:
        why = "repeats differ in where a fault struck"
    else:
        return verdict
    own = verdict.breaches or ([verdict.reason] if verdict.evidence else [])
    reason = f"{why}; here {verdict.state}" + (f": {verdict.reason}" if verdict.reason else "")
    return msgspec.structs.replace(verdict, state="flaky", reason=reason, breaches=own, repeats=differ)


def scenario_of(case: str) -> str:
    """`resume.x@2` is a repeat of `resume.x`."""
    return case.partition("@")[0]


def fired(history: History) -> tuple[object, ...]:
    """Which faults fired, in order of name, each with the ordinal of the message it hit."""
    return tuple(
        sorted(
            (str(r.ids.get("fault")), str((r.payload or {}).get("ordinal")))
            for r in history
            if r.kind == "fault-fired"
        )
    )
