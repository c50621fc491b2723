"""What a check is, how verdicts are made and how they add up.

A check is a pure function `View -> Finding`, registered for one or more requirement ids by
`@check("WIRE-85")`. It never decides about levels, claims or baselines: `judge` does. Nothing here
turns green because nothing was seen.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from msgspec import Struct

from think_conformance import checkers
from think_conformance.catalogue.model import Requirement
from think_conformance.history.op import OBSERVER, History
from think_conformance.history.views import View

State = Literal[
    "passed",
    "failed",
    "warned",
    "not-applicable",
    "not-testable",
    "inconclusive",
    "expected-fail",
    "unexpected-pass",
    "flaky",
]

WORST_FIRST: tuple[State, ...] = (
    "failed",
    "not-testable",
    "flaky",
    "unexpected-pass",
    "inconclusive",
    "warned",
    "expected-fail",
    "passed",
    "not-applicable",
)


class Verdict(Struct, frozen=True, omit_defaults=True):
    """What one history says about one requirement. `evidence` holds indexes into that history; `breaches`
    are the reasons of all breaches, where there are several or `reason` tells more than one. `repeats`:
    the states that the repeats of the case came to, where they differ."""

    requirement: str
    case: str
    state: State
    reason: str = ""
    evidence: list[int] = []
    breaches: list[str] = []
    repeats: list[State] = []


# ---- findings -------------------------------------------------------------------------------


class Finding(Struct, frozen=True):
    """What a check saw: that it `holds`, that it is `broken`, or `nothing` that would tell; that the target
    does not do what binds it, which it is free to do or not, and the requirement is `void`. `judge` adds
    that it `threw`, and that something the case needs is `missing`."""

    said: Literal["holds", "broken", "nothing", "void", "threw", "missing"]
    reason: str = ""
    evidence: tuple[int, ...] = ()
    breaches: tuple[str, ...] = ()


class Breach(Struct, frozen=True):
    """One way in which a history breaks a requirement, and the records that show it."""

    reason: str
    evidence: tuple[int, ...]


BREACHES = 50
"""Breaches of one verdict that are told apart; a hostile target may cause any number."""


def finding(breaches: Iterable[Breach], *, seen: bool, nothing: str) -> Finding:
    """`broken` by the first breach, else `holds` if anything was `seen`, else `nothing` and why."""
    found = list(breaches)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        several = tuple(breach.reason for breach in found[:BREACHES]) if more else ()
        return Finding("broken", found[0].reason + more, found[0].evidence, several)
    return Finding("holds") if seen else Finding("nothing", nothing)


# ---- registration ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """A registered check. `needs_quiet`: it can only pass when it was seen that nothing runs on."""

    requirements: tuple[str, ...]
    function: Callable[[View], Finding]
    needs_quiet: bool

    def __call__(self, view: View) -> Finding:
        return self.function(view)


def check(*requirements: str, needs_quiet: bool = False) -> Callable[[Callable[[View], Finding]], Check]:
    """Mark a function as the check of these requirement ids."""
    return lambda function: Check(requirements, function, needs_quiet)


@cache
def load() -> dict[str, Check]:
    """Every check of this folder by requirement id. ValueError when an id has two."""
    names = sorted(module.name for module in pkgutil.iter_modules(checkers.__path__))
    return collect(
        value
        for name in names
        for value in vars(importlib.import_module(f"{checkers.__name__}.{name}")).values()
        if isinstance(value, Check) and value.function.__module__ == f"{checkers.__name__}.{name}"
    )


def collect(found: Iterable[Check]) -> dict[str, Check]:
    """Checks by requirement id. ValueError when an id has two."""
    by_id: dict[str, Check] = {}
    for one in found:
        for requirement in one.requirements:
            if requirement in by_id:
                raise ValueError(f"`{requirement}` has two checks")
            by_id[requirement] = one
    return by_id


# ---- judging --------------------------------------------------------------------------------


def judge(
    history: History,
    requirements: Mapping[str, Requirement],
    claims: Collection[str] | None = None,
    exercised: Collection[str] | None = None,
    checks: Mapping[str, Check] | None = None,
) -> list[Verdict]:
    """The verdicts of one history, in the order of the catalogue. `claims` and `exercised` are what
    the case record says unless given. A requirement is listed when the case exercises it, or when
    it is claimed and the history shows something of it. UsageError on a history without a head."""
    view = View(history)
    claimed = set(view.case.claims if claims is None else claims)
    wanted = set(view.case.exercises if exercised is None else exercised)
    known = load() if checks is None else checks
    doubts = _doubts(view)
    verdicts = []
    for row in requirements.values():
        one, out = known.get(row.id), _out_of_reach(row, claimed, view)
        found = Finding("nothing", out) if out else _find(one, view)
        if found.said in ("nothing", "void", "missing") and row.id not in wanted:
            continue
        if found.said == "void" and not (doubts or view.case.facts):
            out = f"the target does nothing that this speaks of: {found.reason}"
        unsure = _unsure(found, one, view, doubts)
        state: State = (
            "not-applicable" if out else "inconclusive" if unsure else _STATES[row.level, found.said]
        )
        verdicts.append(
            Verdict(
                requirement=row.id,
                case=view.case.case,
                state=state,
                reason=out or unsure or found.reason,
                evidence=list(found.evidence),
                breaches=list(found.breaches),
            )
        )
    return verdicts


_STATES: dict[tuple[str, str], State] = {
    ("MUST", "holds"): "passed",
    ("SHOULD", "holds"): "passed",
    ("MUST", "broken"): "failed",
    ("SHOULD", "broken"): "warned",
    ("MUST", "missing"): "not-testable",
    ("SHOULD", "missing"): "not-testable",
}


def _out_of_reach(row: Requirement, claimed: set[str], view: View) -> str:
    if row.profile not in claimed:
        return f"the profile {row.profile} is not claimed"
    if row.reference_only and not view.case.facts:
        return "only the reference is held to this"
    return ""


def _find(one: Check | None, view: View) -> Finding:
    if view.missing:  # another plan than this one was played: it shows neither good nor bad
        why = f"needs `{view.missing.method}`, which the target refused: {view.missing.reason}"
        return Finding("missing", why, (view.missing.index,))
    if one is None:
        return Finding("nothing", "no check knows this requirement")
    try:
        return one(view)
    except Exception as error:
        first_line = str(error).partition("\n")[0]
        return Finding("threw", f"the check threw {type(error).__name__}: {first_line}")


def _unsure(found: Finding, one: Check | None, view: View, doubts: list[str]) -> str:
    """Why a finding decides nothing; empty when it does. What is broken stays broken, unless what is missing
    may be what the kit did not keep."""
    if found.said in ("nothing", "void"):
        return f"nothing observed: {found.reason}"
    if found.said == "threw":
        return found.reason
    if found.said in ("holds", "broken") and view.overflow:
        return f"not all was observed: {view.overflow}"
    if found.said == "holds" and doubts:
        return doubts[0]
    if found.said == "holds" and one is not None and one.needs_quiet and not view.quiet:
        return "nobody saw that nothing runs any more"
    return ""


def _doubts(view: View) -> list[str]:
    """Why no pass of this history counts: what was planned did not happen as planned."""
    found = [
        f"not everything was played: {op.payload.get('reason', '')}"
        for op in view.operations
        if op.kind == "info" and op.number is None
    ]
    found += [f"the fault {fault.id} never fired" for fault in view.faults if not fault.fired]
    if not any(connection.client != OBSERVER for connection in view.connections.values()):
        found.append("no client of the plan connected")
    found += [
        f"the fault {fault.id} was not carried out: {fault.undone}" for fault in view.faults if fault.undone
    ]
    found += [f"a model call was not of the plan: {reason}" for reason in view.strays]
    return found


# ---- adding up ------------------------------------------------------------------------------


def worst(states: Iterable[State]) -> State:
    """The worst of some states; `inconclusive` when there are none."""
    return min(states, key=WORST_FIRST.index, default="inconclusive")


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """1: something failed that should not, or passed that should not. 2: something is inconclusive,
    or nothing was checked at all. 0: as expected."""
    states = {verdict.state for verdict in verdicts}
    if states & {"failed", "not-testable", "flaky", "unexpected-pass"}:
        return 1
    if "inconclusive" in states or states <= {"not-applicable"}:
        return 2
    return 0
