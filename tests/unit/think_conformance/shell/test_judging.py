"""A run directory, judged again."""

from __future__ import annotations

from pathlib import Path

import pytest

from think_conformance.accounting import CUT_SHORT, Accounting
from think_conformance.baseline import Compared
from think_conformance.checkers.base import Verdict
from think_conformance.checkers.tally import Tally
from think_conformance.errors import UsageError
from think_conformance.shell.judging import judge
from think_conformance.shell.recorder import Recorder
from think_conformance.shell.store import Store


def run_dir(folder: Path, *cases: str) -> Store:
    """A run of cases in which nothing happened."""
    store = Store(folder / "run")
    for case in cases:
        recorder = Recorder(store.history(case))
        recorder.append("run", "case", {}, {"case": case, "exercises": ["WIRE-102"], "claims": ["resume"]})
        recorder.close()
    return store


def states(tally: Tally) -> dict[str, str]:
    return {verdict.case: verdict.state for verdict in tally.verdicts}


def test_histories_alone_are_judged_as_they_are(tmp_path: Path) -> None:
    tally = Tally()
    judged = judge(run_dir(tmp_path, "a.x", "b.x").folder, tally)
    assert (judged.histories, judged.cut_off) == (2, frozenset())
    assert states(tally) == {"a.x": "inconclusive", "b.x": "inconclusive"}


def test_a_history_that_is_lost_is_missed(tmp_path: Path) -> None:
    store = run_dir(tmp_path, "a.x")
    store.save_accounting(Accounting(total=9, selected=2, ran=2))
    with pytest.raises(UsageError, match="run is not whole: 2 cases ran, 1 histories are there"):
        judge(store.folder, Tally())


def test_what_did_not_run_stays_told_and_what_was_cut_off_is_not_judged(tmp_path: Path) -> None:
    store = run_dir(tmp_path, "a.x", "late.x@2")
    store.save_accounting(
        Accounting(
            total=9,
            selected=4,
            ran=1,
            not_run={"needs: model": ["far.x"], "the time was up": ["late.x@2"], CUT_SHORT: ["never.x"]},
        )
    )
    store.save_verdicts(
        [
            Verdict("WIRE-102", "a.x", "inconclusive"),
            Verdict("WIRE-102", "late.x@2", "inconclusive", "the time was up"),
            Compared("WIRE-85", "far.x", "not-testable", "listed, not seen: needs: model", []),
            Compared("WIRE-104", "far.x", "not-testable", "listed, the case was not played", []),
        ]
    )
    tally = Tally()
    judged = judge(store.folder, tally)
    assert (judged.histories, judged.cut_off) == (1, frozenset({"late.x", "never.x"}))
    told = {(v.requirement, v.case, v.state, v.reason) for v in tally.verdicts if v.case != "a.x"}
    assert told == {
        ("WIRE-102", "late.x@2", "inconclusive", "the time was up"),
        ("WIRE-85", "far.x", "not-applicable", "needs: model"),
    }


def test_a_folder_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no cases/\*/history\.jsonl"):
        judge(tmp_path, Tally())


@pytest.mark.parametrize("name", ["verdicts.json", "accounting.json"])
def test_a_broken_run_is_told_by_its_file(name: str, tmp_path: Path) -> None:
    store = run_dir(tmp_path, "a.x")
    (store.folder / name).write_text("7")
    with pytest.raises(UsageError, match=f"{name} is not what a run writes"):
        judge(store.folder, Tally())
