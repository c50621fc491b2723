"""`report.html`: one self-contained page, without script and without anything from elsewhere. Pure.

Everything is escaped by the template engine; the pictures come as markup from `drawing.py`.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from think_conformance.baseline import Entry
from think_conformance.catalogue.model import Profile
from think_conformance.checkers.base import WORST_FIRST, State
from think_reports.model import CaseRow, RequirementRow, RunReport, VerdictRow
from think_reports.text import headline

NEEDS_A_LOOK: tuple[State, ...] = (
    "failed",
    "not-testable",
    "flaky",
    "unexpected-pass",
    "inconclusive",
    "warned",
    "expected-fail",
)
"""States of a case that is told in full."""

GOOD: tuple[State, ...] = ("passed", "warned")
BAD: tuple[State, ...] = ("failed", "not-testable", "flaky", "unexpected-pass", "expected-fail")


class Cause(Struct, frozen=True):
    """What one case says against some requirements, with the same state, reason, frames and entry of the
    baseline."""

    state: State
    reason: str
    frames: list[str]
    known: Entry | None
    requirements: list[RequirementRow]


def render(report: RunReport, pictures: Mapping[str, str], folder: str) -> str:
    """The page of a report. `pictures` are SVG markup by case, `folder` is the run directory as the
    reader names it."""
    template = _environment().get_template("report.html")
    rows = {row.id: row for row in report.requirements}
    bad = [case for case in report.cases if _needs_a_look(case)]
    return template.render(
        report=report,
        verdict=headline(report),
        families=_families(report.requirements),
        judged=_judged(report.cases),
        bad=sorted(bad, key=lambda case: WORST_FIRST.index(case.state)),
        others=[case for case in report.cases if not _needs_a_look(case)],
        causes={case.case: _causes(case, rows) for case in bad},
        pictures={case: Markup(svg) for case, svg in pictures.items()},
        replay=lambda case: f"think-conformance replay {shlex.quote(f'{folder}/plan/{case}.json')}",
        bound=bound(report.cases),
        at_most=at_most,
        is_web=is_web,
    )


def needs_a_look(report: RunReport) -> Iterable[tuple[str, set[int]]]:
    """The cases that are told in full, each with the indexes of the records that decide."""
    for case in report.cases:
        if _needs_a_look(case):
            yield case.case, {i for v in case.verdicts if v.state in NEEDS_A_LOOK for i in v.evidence}


def _needs_a_look(case: CaseRow) -> bool:
    """Where a verdict only says that the case did not run, there is nothing more to see."""
    return case.state in NEEDS_A_LOOK and not (case.not_run and case.verdicts)


def at_most(passes: int) -> str:
    """What zero failures in so many runs allow to say, at 95 %: the share that may still fail."""
    share = 1.0 if passes < 3 else 3 / passes
    return f"{share:.1%}".replace(".0%", "%").replace("%", " %")


def is_web(link: str) -> bool:
    """Whether a reader may be led there: a file can name any scheme, and some of them run."""
    return link.lower().startswith(("https://", "http://"))


def bound(cases: list[CaseRow]) -> str:
    """The sentence on all cases, where none failed and some were decided; else empty."""
    passed = sum(case.state in GOOD for case in cases)
    if not passed or any(case.state in BAD for case in cases):
        return ""
    return f"0 failures in {passed} cases: at most {at_most(passed)} of such cases fail (3/n, at 95 %)"


def _environment() -> Environment:
    loader = PackageLoader("think_reports")
    return Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )


def _families(rows: list[RequirementRow]) -> list[tuple[str, list[RequirementRow]]]:
    """Requirements by profile, in the order of the profiles."""
    profiles: tuple[str, ...] = get_args(Profile)
    return [(p, found) for p in profiles if (found := [row for row in rows if row.profile == p])]


def _judged(cases: list[CaseRow]) -> dict[str, dict[str, Any]]:
    """By requirement: in how many cases it passed, and the cases in which it needs a look."""
    judged: defaultdict[str, dict[str, Any]] = defaultdict(lambda: {"passed": 0, "bad": []})
    for case in cases:
        for verdict in case.verdicts:
            if verdict.state == "passed":
                judged[verdict.requirement]["passed"] += 1
            elif verdict.state in NEEDS_A_LOOK and _needs_a_look(case):
                judged[verdict.requirement]["bad"].append((verdict.state, case.case))
    return {name: {**found, "bad": sorted(found["bad"], key=_worst_first)} for name, found in judged.items()}


def _worst_first(told: tuple[State, str]) -> tuple[int, str]:
    return WORST_FIRST.index(told[0]), told[1]


def _causes(case: CaseRow, rows: Mapping[str, RequirementRow]) -> list[Cause]:
    """What needs a look in a case, worst first; verdicts that say the same are told once."""
    found: defaultdict[tuple[State, str, tuple[str, ...], Entry | None], list[VerdictRow]] = defaultdict(list)
    for verdict in case.verdicts:
        if verdict.state in NEEDS_A_LOOK:
            found[verdict.state, verdict.reason, tuple(verdict.frames), verdict.baseline].append(verdict)
    causes = [
        Cause(state, reason, list(frames), known, [rows[v.requirement] for v in verdicts])
        for (state, reason, frames, known), verdicts in found.items()
    ]
    return sorted(causes, key=lambda cause: WORST_FIRST.index(cause.state))
