"""From verdicts and histories to the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from sample_run import (
    CATALOGUE,
    ENVIRONMENT,
    HISTORIES,
    HOSTILE,
    KNOWN,
    VERDICTS,
    history,
    infested,
    known,
    partly,
    sample,
    terminal,
)
from think_conformance.checkers.base import Verdict
from think_conformance.errors import UsageError
from think_conformance.history.content import COVER
from think_conformance.history.op import History, Record
from think_conformance.history.plain import LIMIT
from think_reports.model import FRAMES_SHOWN, FaultRow, build

FIRED = "#3 +0.300 s  proxy cut fault-fired"


def test_each_requirement_has_its_row_and_its_worst_state() -> None:
    rows = [(r.id, r.level, r.profile, r.state, r.cases) for r in sample().requirements]
    assert rows == [
        ("A-1", "MUST", "core", "failed", ["kill", "stop"]),
        ("A-2", "SHOULD", "core", "passed", ["stop"]),
        ("B-1", "MUST", "resume", "inconclusive", ["kill", "stop"]),
        ("C-1", "MUST", "core", "not-applicable", ["far"]),
    ]
    assert sample().requirements[0].sentence == "What A-1 says holds."


def test_the_summary_counts_requirements_worst_first() -> None:
    assert list(sample().summary.items()) == [
        ("failed", 1),
        ("inconclusive", 1),
        ("passed", 1),
        ("not-applicable", 1),
    ]


def test_the_environment_is_told() -> None:
    report = sample()
    assert (report.schema, report.kit, report.target.name, report.seed) == (1, "0.1.0", "mine", 7)
    assert (report.duration_s, report.exit_code) == (2.5, 1)


def test_each_case_tells_state_time_and_faults() -> None:
    cases = [(c.case, c.scenario, c.title, c.state, c.duration_s, c.faults) for c in sample().cases]
    assert cases == [
        ("far", "far", "", "not-applicable", 0.0, []),
        ("kill", "kill", "The kill", "inconclusive", 0.1, [FaultRow(id="cut", fired=0)]),
        ("stop", "stop", "The stop", "failed", 1.5, [FaultRow(id="cut", fired=1, proof=[FIRED])]),
    ]


def test_a_verdict_quotes_its_records() -> None:
    verdict = sample().cases[2].verdicts[0]
    assert (verdict.requirement, verdict.reason, verdict.evidence) == (
        "A-1",
        "told completed, then aborted",
        [2, 4],
    )
    assert [frame.partition(" ")[0] for frame in verdict.frames] == ["#2", "#4"]
    assert '"outcome":"aborted"' in verdict.frames[1]


def test_a_verdict_that_the_baseline_lists_carries_the_entry() -> None:
    (case,) = known(Verdict("B-1", "stop", "passed")).cases
    assert case.state == "expected-fail"
    assert [v.baseline for v in case.verdicts] == [KNOWN, None]
    assert known().summary == {"expected-fail": 1}


def test_evidence_that_is_not_in_the_history_is_kept_and_not_quoted() -> None:
    verdicts = [Verdict("A-1", "stop", "failed", "", [-1, 4, 99])]
    (case,) = build(ENVIRONMENT, verdicts, HISTORIES[:1], CATALOGUE).cases
    assert case.verdicts[0].evidence == [-1, 4, 99]
    assert len(case.verdicts[0].frames) == 1


def test_quotes_are_bounded() -> None:
    fired = [Record(i, 100.0 + i, "proxy", "fault-fired", {"fault": "f"}) for i in range(1, 100)]
    many = history("stop", *fired)
    verdicts = [Verdict("A-1", "stop", "failed", "", list(range(100)))]
    (case,) = build(ENVIRONMENT, verdicts, [("stop", many)], CATALOGUE).cases
    assert len(case.verdicts[0].frames) == FRAMES_SHOWN
    assert (case.faults[0].fired, len(case.faults[0].proof)) == (99, FRAMES_SHOWN)


def test_a_fault_that_fired_on_what_was_seen_is_proven_by_that_too() -> None:
    fired = Record(2, 100.5, "run", "fault-fired", {"fault": "crash"}, {"leg": "target", "record": 1})
    seen = history("stop", terminal(1, 100.4, "completed"), fired)
    (case,) = build(ENVIRONMENT, [], [("stop", seen)], CATALOGUE).cases
    assert [line.partition(" ")[0] for line in case.faults[0].proof] == ["#1", "#2"]


def test_content_that_the_kit_did_not_script_is_covered() -> None:
    message = {"role": "assistant", "parts": [{"type": "text", "text": "SECRET"}]}
    told = Record(1, 100.1, "client", "frame-in", {}, {"frame": {"messages": [message]}})
    verdicts = [Verdict("A-1", "stop", "failed", "a transcript holds 'SECRET' twice", [1])]
    (case,) = build(ENVIRONMENT, verdicts, [("stop", history("stop", told))], CATALOGUE).cases
    assert case.verdicts[0].reason == f"a transcript holds '{COVER * 6}' twice"
    assert COVER in case.verdicts[0].frames[0]
    assert "SECRET" not in case.verdicts[0].frames[0]


def test_a_repeat_that_was_not_played_belongs_to_its_scenario() -> None:
    (case,) = build(ENVIRONMENT, [Verdict("A-1", "far@2", "not-applicable")], [], CATALOGUE).cases
    assert case.scenario == "far"


@pytest.mark.parametrize(
    "records", [[], history("stop"), [terminal(0, 1.0, "completed")]], ids=["none", "head", "headless"]
)
def test_a_case_that_was_cut_short_is_inconclusive(records: History) -> None:
    report = build(ENVIRONMENT, [], [("stop", records)], CATALOGUE)
    assert [(c.case, c.scenario, c.state) for c in report.cases] == [("stop", "stop", "inconclusive")]
    assert report.summary == {}


def test_an_unknown_requirement_is_one_line() -> None:
    with pytest.raises(UsageError, match="`Z-9`"):
        build(ENVIRONMENT, [Verdict("Z-9", "stop", "passed")], [], CATALOGUE)


def test_what_is_newer_than_the_revision_is_shown_and_does_not_count() -> None:
    report = partly()
    assert [(r.id, r.state, r.scored) for r in report.requirements] == [
        ("WIRE-85", "inconclusive", True),
        ("A-2", "failed", False),
    ]
    assert report.summary == {"inconclusive": 1}
    assert report.revision == 1
    states = {case.case: (case.state, case.not_run) for case in report.cases}
    assert states == {
        "stop": ("passed", ""),
        "kill": ("not-applicable", ""),
        "late": ("inconclusive", "the time was up"),
        "far": ("not-applicable", "needs: leg routing"),
    }


def test_histories_are_read_one_at_a_time() -> None:
    alive: list[str] = []

    class Watched(list[Any]):
        def __init__(self, case: str, records: History) -> None:
            super().__init__(records)
            self.case = case
            alive.append(case)

        def __del__(self) -> None:
            alive.remove(self.case)

    def lazily() -> Iterator[tuple[str, History]]:
        for case in ("stop", "kill", "third"):
            yield case, Watched(case, history(case))
            assert len(alive) <= 2, alive  # the one just read, and at most the one being replaced

    assert len(build(ENVIRONMENT, VERDICTS, lazily(), CATALOGUE).cases) == 4


@pytest.mark.parametrize("kind", HOSTILE)
def test_every_text_of_a_report_is_plain_and_bounded(kind: str) -> None:
    def texts(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            for item in value.values() if isinstance(value, dict) else value:
                yield from texts(item)
            yield from value if isinstance(value, dict) else ()

    found = list(texts(msgspec.to_builtins(infested(HOSTILE[kind]))))
    assert len(found) > 20
    for text in found:
        assert text.isprintable()
        assert len(text) <= LIMIT
        text.encode()
