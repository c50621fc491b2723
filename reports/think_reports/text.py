"""The summary a person reads on a terminal: counts, what went wrong and by which frames, one last line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from textwrap import wrap

from think_conformance.accounting import Accounting
from think_conformance.checkers.base import WORST_FIRST, State
from think_conformance.history.plain import plain
from think_reports.model import CaseRow, RequirementRow, RunReport, VerdictRow

WIDTH = 100
CASES_SHOWN = 3
"""Cases quoted for one requirement."""

EXPLAINED: tuple[State, ...] = ("failed", "not-testable", "flaky", "unexpected-pass", "warned")
"""States explained requirement by requirement, in this order."""

GROUPED: tuple[State, ...] = ("inconclusive", "expected-fail", "not-applicable")
"""States where one cause decides many requirements; told cause by cause."""

HEADLINES: tuple[State, ...] = (
    *(s for s in WORST_FIRST if s not in ("passed", "warned", "expected-fail", "not-applicable")),
    "passed",
    "warned",
    "expected-fail",
)
"""The word for a whole run is the first of these that occurs: what counts against it, else a pass."""


CUT_SHORT: dict[int | None, str] = {None: "unfinished", 3: "broken", 5: "not-ready", 130: "interrupted"}
"""The word for a run that did not come to its end, by exit code."""


def render(report: RunReport) -> str:
    """The text of a report; its last line is the summary of everything."""
    lines = [_heading(report), "", *_table(report), "", *_counts(report), ""]
    for scored in (True, False):
        for state in EXPLAINED:
            for row in report.requirements:
                if row.state == state and row.scored is scored:
                    lines += [*_explained(row, report.cases), ""]
    for state in GROUPED:
        lines += _grouped(state, report)
    if report.accounting is not None:
        lines += [*_accounted(report.accounting), ""]
    lines.append(summary(report))
    return "".join(f"{plain(line)}\n" for line in lines)


def summary(report: RunReport) -> str:
    """`failed: 2 of 23 requirements, 3 cases, seed 7 -> exit 1`, or, of a run that did not come to its end,
    `interrupted: 12 passed so far, 9 of 43 cases begun, seed 7 -> exit 130`."""
    word = headline(report)
    counts = report.summary
    if word in CUT_SHORT.values():
        parts = [f"{counts[s]} {s} so far" for s in WORST_FIRST if s in counts]
        planned = "?" if report.planned is None else report.planned
        parts += [f"{len(report.cases)} of {planned} cases begun"]
    else:
        scored = sum(row.scored for row in report.requirements)
        parts = [f"{counts.get(word, 0)} of {_number(scored, 'requirement')}"]  # type: ignore[call-overload]
        parts += [f"{counts[s]} {s}" for s in WORST_FIRST if s in counts and s not in (word, "passed")]
        parts += [f"{n} unscored" for n in (len(report.requirements) - scored,) if n]
        parts += [_cases(report)]
    code = "unfinished" if report.exit_code is None else f"exit {report.exit_code}"
    return f"{word}: {', '.join(parts)}, {_seed(report)} -> {code}"


def headline(report: RunReport) -> str:
    """The one word for a run. A run that was cut short is never a pass, whatever it saw until then;
    `inconclusive` when nothing was judged."""
    if report.exit_code in CUT_SHORT:
        return CUT_SHORT[report.exit_code]
    return next((s for s in HEADLINES if s in report.summary), "inconclusive")


def _cases(report: RunReport) -> str:
    """How many there were; of those selected not all may have run."""
    account = report.accounting
    if account is None or account.ran == account.selected:
        return _number(len(report.cases), "case")
    return f"{account.ran} of {_number(account.selected, 'case')} ran"


def _seed(report: RunReport) -> str:
    return "seeds differ" if report.seed is None else f"seed {report.seed}"


def _accounted(account: Accounting) -> Iterator[str]:
    """What became of all cases, in numbers that add up."""
    left = account.selected - account.ran
    yield (
        f"cases: {account.total} in all, {account.selected} selected, {account.ran} ran"
        + (f", {left} not run" if left else "")
    )
    for reason, cases in account.not_run.items():
        yield f"  {len(cases):4}  {reason}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _heading(report: RunReport) -> str:
    target = report.target
    version = f" {target.version}" if target.version else ""
    defect = f" with defect {target.defect}" if target.defect else ""
    held = "" if report.revision is None else f", scored by revision {report.revision}"
    took = "" if report.duration_s is None else f", {report.duration_s:.1f} s"
    return f"think-conformance {report.kit} on {target.name}{version}{defect}, {_seed(report)}{took}{held}"


def _table(report: RunReport) -> Iterator[str]:
    """One line per requirement that was judged, in the order of the catalogue."""
    for row in report.requirements:
        cases = _number(len(row.cases), "case") + ("" if row.scored else ", unscored")
        yield f"{row.state:15} {row.id:10} {row.level:6} {row.profile:14} {cases}"


def _counts(report: RunReport) -> Iterator[str]:
    for state, count in report.summary.items():
        yield f"{state:15} {count:4}"


def _explained(row: RequirementRow, cases: list[CaseRow]) -> Iterator[str]:
    """A requirement that did not simply pass: its sentence, and per case the reason and the frames."""
    yield f"{row.state.upper()} {row.id} ({row.level}, {row.profile}{'' if row.scored else ', unscored'})"
    yield from wrap(row.sentence, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    told = [
        (case, verdict)
        for case in cases
        for verdict in case.verdicts
        if verdict.requirement == row.id and verdict.state == row.state
    ]
    for case, verdict in told[:CASES_SHOWN]:
        yield f"    {case.case}: {verdict.reason or verdict.state}"
        if verdict.baseline:
            yield f"      {verdict.baseline.told}"
        yield from (f"      {frame}" for frame in verdict.frames)
    if len(told) > CASES_SHOWN:
        yield f"    and {len(told) - CASES_SHOWN} more cases"


def _grouped(state: State, report: RunReport) -> Iterator[str]:
    """Requirements in one of the grouped states, by case and reason; cases without a verdict too."""
    rows = {row.id for row in report.requirements if row.state == state}
    causes: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for case, verdict in _verdicts(report):
        if verdict.state == state and verdict.requirement in rows:
            where = f" {case.case}" if state == "inconclusive" and not case.not_run else ""
            told = verdict.baseline.told if verdict.baseline else verdict.reason
            causes[where, told].append(verdict.requirement)
    for (where, reason), ids in causes.items():
        yield f"{state.upper()}{where}: {reason}"
        yield from wrap(" ".join(dict.fromkeys(ids)), WIDTH, initial_indent="  ", subsequent_indent="  ")
        yield ""
    if state == "inconclusive":
        for case in report.cases:
            if not case.verdicts:
                yield from (f"{state.upper()} {case.case}: the case came to no verdict", "")


def _verdicts(report: RunReport) -> Iterator[tuple[CaseRow, VerdictRow]]:
    for case in report.cases:
        for verdict in case.verdicts:
            yield case, verdict
