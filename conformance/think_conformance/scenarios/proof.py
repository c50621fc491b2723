"""What proves a deliberate defect: the scenarios that can show it, and what their verdicts say. Pure.

A defect is proven when exactly the requirements it breaks are red: not fewer, or a check cannot fail;
not more, or a check blames what it does not speak of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from msgspec import Struct

from think_conformance.scenarios.base import Scenario

PER_REQUIREMENT = 4
"""Scenarios for each broken requirement: few enough for all defects to be played within four minutes."""

OTHERS = (
    "control.stop-during-output",
    "core.model-cut-in-mid-event",
    "core.overlapping-sends-with-echo",
    "recovery.kill-during-output",
    "resume.reset-during-output",
    "resume.acks-late-wrong-and-repeated",
    "core.two-turns-two-tabs",
    "control.stop-twice",
    "resume.probe-when-idle",
    "core.resent-request",
)
"""Where nothing else must turn red: the first `OTHER` of these that do not prove the defect themselves."""

OTHER = 5


class Proof(Struct, frozen=True, kw_only=True):
    """What a run with a defect switched on showed: the requirements that it should break, those that were
    red, those that could not be tested because the target refused what a case needs, how many cases were
    played, and how many exercise what it breaks."""

    defect: str
    breaks: frozenset[str]
    red: frozenset[str]
    untested: frozenset[str] = frozenset()
    cases: int
    exercising: int

    @property
    def wrong(self) -> str:
        """Why the defect is not proven, in one line; empty when it is."""
        if not self.red and not self.untested:
            return "nothing turned red"
        missed, more = sorted(self.breaks - self.red), sorted(self.red - self.breaks)
        parts = [f"not red: {', '.join(missed)}"] if missed else []
        parts += [f"red and not its own: {', '.join(more)}"] if more else []
        parts += [f"not testable with it: {', '.join(sorted(self.untested))}"] if self.untested else []
        return "; ".join(parts)


def exercising(breaks: Collection[str], scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Every scenario that exercises a requirement that a defect breaks."""
    return [scenario for scenario in scenarios if not set(breaks).isdisjoint(scenario.exercises)]


def proving(breaks: Collection[str], scenarios: Iterable[Scenario]) -> list[Scenario]:
    """For each broken requirement the `PER_REQUIREMENT` scenarios that exercise it and are best at showing
    this defect: those that exercise most of what it breaks, what few scenarios exercise counting more. Then
    the fixed sample of others. In order of id, those that need a process of their own first: they take
    longest. All that exercise it would be several times as many: the invariant is exercised everywhere."""
    known = {scenario.id: scenario for scenario in scenarios}
    rarity = Counter(ident for scenario in known.values() for ident in scenario.exercises)
    broken = set(breaks)

    def fit(scenario: Scenario) -> tuple[float, str]:
        return -sum(1 / rarity[i] for i in broken.intersection(scenario.exercises)), scenario.id

    best = sorted(known.values(), key=fit)
    chosen = {s.id for i in broken for s in [s for s in best if i in s.exercises][:PER_REQUIREMENT]}
    chosen |= set([name for name in OTHERS if name in known and name not in chosen][:OTHER])
    return sorted((known[name] for name in chosen), key=lambda s: ("restart" not in s.needs, s.id))


def table(proofs: Iterable[Proof], requirements: Iterable[str]) -> str:
    """Defects by requirements, as a Markdown table: `●` is red as it should, `!` red without leave, `–`
    not red although it should."""
    columns = list(proofs)
    rows = [
        "| |" + "|".join(f" {proof.defect} " for proof in columns) + "|",
        "|---" * (len(columns) + 1) + "|",
    ]
    for ident in requirements:
        marks = (_mark(ident in proof.breaks, ident in proof.red) for proof in columns)
        rows.append(f"| {ident} |" + "|".join(f" {mark} " for mark in marks) + "|")
    return "\n".join(rows) + "\n"


def _mark(due: bool, red: bool) -> str:
    return ("●" if due else "!") if red else ("–" if due else " ")
