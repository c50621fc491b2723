"""What a report says, as data: `RunReport`, the content of `results.json`. Pure.

Built from what a run directory holds: environment, verdicts, histories. Judges nothing: states
come from the verdicts, levels and sentences from the catalogue. Every text is plain and bounded, and
content that the kit did not script is covered.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from think_conformance.accounting import Accounting
from think_conformance.baseline import Compared, Entry
from think_conformance.catalogue.model import Level, Profile, Requirement
from think_conformance.catalogue.revisions import scores
from think_conformance.checkers.base import WORST_FIRST, State, Verdict, worst
from think_conformance.errors import UsageError
from think_conformance.history.content import OwnWords
from think_conformance.history.lines import line
from think_conformance.history.op import History, Record
from think_conformance.history.plain import plain

FRAMES_SHOWN = 12
"""Records quoted for one verdict; its `evidence` names them all."""


class Target(Struct, frozen=True, kw_only=True):
    """What was tested; `defect` is a deliberate fault that was switched on."""

    name: str
    version: str | None = None
    defect: str | None = None


class Environment(Struct, frozen=True, kw_only=True):
    """The part of env.json that reports read. `started` is ISO 8601 text. A run that did not come
    to its end has no duration and no exit code, runs that were merged may have no seed in common.
    `revision` is the set of requirements that scores; None: all do."""

    kit: str
    target: Target
    seed: int | None
    started: str
    cases: int | None = None
    revision: int | None = None
    duration_s: float | None = None
    exit_code: int | None = None


class RequirementRow(Struct, frozen=True, kw_only=True):
    """One requirement: its row of the catalogue, its worst state, the cases that judged it. One that is
    not of the revision asked for is shown and does not count: it is not `scored`."""

    id: str
    level: Level
    profile: Profile
    source: str
    sentence: str
    state: State
    cases: list[str]
    scored: bool = True


class FaultRow(Struct, frozen=True, kw_only=True):
    """A planned fault, how often its moment came, and the records that prove it, quoted."""

    id: str
    fired: int
    proof: list[str] = []


class VerdictRow(Struct, frozen=True, kw_only=True):
    """A verdict of one case; `frames` quotes the records that `evidence` (indexes) names; `breaches` tells
    them apart where there are several; `baseline` is the entry that lists it as a known failure, if one
    does."""

    requirement: str
    state: State
    reason: str
    evidence: list[int]
    frames: list[str]
    breaches: list[str] = []
    baseline: Entry | None = None


class CaseRow(Struct, frozen=True, kw_only=True):
    """One case, as bad as the worst of what counts; `inconclusive` when it came to no verdict. `not_run` says
    why it was not played, or not to its end."""

    case: str
    scenario: str
    title: str
    state: State
    duration_s: float
    faults: list[FaultRow]
    verdicts: list[VerdictRow]
    not_run: str = ""


class RunReport(Struct, frozen=True, kw_only=True):
    """A whole run. `summary` counts the requirements that score by state, states that do not occur left out.
    `planned` is how many cases there were to play, `cases` those that were begun; `accounting` says what
    became of all of them, where the run kept one."""

    schema: Literal[1] = 1
    kit: str
    target: Target
    seed: int | None
    started: str
    duration_s: float | None
    exit_code: int | None
    planned: int | None
    revision: int | None = None
    accounting: Accounting | None = None
    summary: dict[State, int]
    requirements: list[RequirementRow]
    cases: list[CaseRow]


def build(
    env: Environment,
    verdicts: Iterable[Verdict],
    histories: Iterable[tuple[str, History]],
    catalogue: Mapping[str, Requirement],
    accounting: Accounting | None = None,
) -> RunReport:
    """The report of a run. `histories` are pairs of case and history, looked at one by one; a case
    that was not played has verdicts only. UsageError if the catalogue lacks a requirement, or the
    kit the revision."""
    by_case: defaultdict[str, list[Verdict]] = defaultdict(list)
    by_requirement: defaultdict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_case[verdict.case].append(verdict)
        by_requirement[verdict.requirement].append(verdict)
    if unknown := sorted(by_requirement.keys() - catalogue.keys()):
        raise UsageError(
            f"the verdicts name `{unknown[0]}`, which the catalogue of this version does not hold"
        )
    not_run = accounting.reasons if accounting else {}
    unscored = {ident for ident in by_requirement if not scores(ident, env.revision)}
    cases = [
        _case(case, history, by_case.pop(case, []), not_run.get(case, ""), unscored)
        for case, history in histories
    ]
    cases += [_case(case, [], found, not_run.get(case, ""), unscored) for case, found in by_case.items()]
    rows = [
        _requirement(row, by_requirement[row.id], row.id not in unscored)
        for row in catalogue.values()
        if row.id in by_requirement
    ]
    counts = Counter(row.state for row in rows if row.scored)
    report = RunReport(
        kit=env.kit,
        target=env.target,
        seed=env.seed,
        started=env.started,
        duration_s=env.duration_s,
        exit_code=env.exit_code,
        planned=env.cases,
        revision=env.revision,
        accounting=accounting,
        summary={state: counts[state] for state in WORST_FIRST if state in counts},
        requirements=rows,
        cases=sorted(cases, key=lambda row: row.case),
    )
    return msgspec.convert(_plainly(msgspec.to_builtins(report)), RunReport)


def _requirement(row: Requirement, verdicts: list[Verdict], scored: bool) -> RequirementRow:
    return RequirementRow(
        id=row.id,
        level=row.level,
        profile=row.profile,
        source=row.source,
        sentence=row.sentence,
        state=worst(v.state for v in verdicts),
        cases=sorted({v.case for v in verdicts}),
        scored=scored,
    )


def _case(case: str, history: History, verdicts: list[Verdict], not_run: str, unscored: set[str]) -> CaseRow:
    head = history[0].payload if history and history[0].kind == "case" else None
    told: dict[str, Any] = head if isinstance(head, dict) else {}
    own = OwnWords(history)
    return CaseRow(
        case=case,
        scenario=str(told.get("scenario") or case.partition("@")[0]),
        title=str(told.get("title") or ""),
        state=_state(verdicts, unscored),
        duration_s=round(history[-1].at - history[0].at, 3) if history else 0.0,
        faults=_faults(history, own),
        verdicts=[_verdict(v, history, own) for v in verdicts],
        not_run=not_run,
    )


def _state(verdicts: list[Verdict], unscored: set[str]) -> State:
    """The worst of what counts; where all there is does not, nothing is said of it."""
    counted = [v.state for v in verdicts if v.requirement not in unscored]
    return "not-applicable" if verdicts and not counted else worst(counted)


def _faults(history: History, own: OwnWords) -> list[FaultRow]:
    firings: dict[str, list[Record]] = {}
    for record in history:
        fault = record.ids.get("fault")
        if record.kind in ("fault-planned", "fault-fired") and isinstance(fault, str):
            firings.setdefault(fault, []).extend([record] if record.kind == "fault-fired" else [])
    return [
        FaultRow(
            id=fault,
            fired=len(fired),
            proof=_quoted([r for one in fired for r in (*_moment(one, history), one)], history, own),
        )
        for fault, fired in firings.items()
    ]


def _moment(fired: Record, history: History) -> list[Record]:
    """The record that a fault fired on, where it fired on what was seen."""
    seen = fired.payload.get("record") if isinstance(fired.payload, dict) else None
    return [history[seen]] if isinstance(seen, int) and 0 <= seen < len(history) else []


def _verdict(verdict: Verdict, history: History, own: OwnWords) -> VerdictRow:
    known = [history[i] for i in verdict.evidence if 0 <= i < len(history)]
    return VerdictRow(
        requirement=verdict.requirement,
        state=verdict.state,
        reason=own.only_quoted(verdict.reason),
        evidence=verdict.evidence,
        frames=_quoted(known, history, own),
        breaches=[own.only_quoted(breach) for breach in verdict.breaches],
        baseline=verdict.baseline if isinstance(verdict, Compared) else None,
    )


def _quoted(records: list[Record], history: History, own: OwnWords) -> list[str]:
    return [line(record, history[0].at, own) for record in records[:FRAMES_SHOWN]]


def _plainly(value: Any) -> Any:
    """Every text in a report, wherever it came from."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [_plainly(item) for item in value]
    if isinstance(value, dict):
        return {plain(key): _plainly(item) for key, item in value.items()}
    return value
