"""Runs that are parts of one: what they observed, judged as a whole."""

from __future__ import annotations

import json
import os
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from think_conformance.accounting import Accounting
from think_conformance.baseline import Baseline, Entry
from think_conformance.checkers.base import Verdict
from think_conformance.errors import UsageError
from think_conformance.shell.merge import merge, parts_of
from think_conformance.shell.recorder import Recorder
from think_conformance.shell.store import Store

IDLE = {"type": "cf_agent_stream_resume_none", "probeId": "p"}
ENV: dict[str, Any] = {
    "kit": "0.1.0",
    "target": {"name": "mine", "spec": "x", "defect": None},
    "profiles": [],
    "repeat": 1,
    "revision": None,
    "seed": 7,
    "started": "2026-01-01T00:00:02+00:00",
    "duration_s": 2.0,
    "exit_code": 0,
    "cases": 1,
}


def part(
    folder: Path, scenario: str, *, answers: int = 1, left: dict[str, str] | None = None, **env: Any
) -> Path:
    """A run of one case: a probe and so many answers to it. `left`: cases that did not run, and why."""
    store = Store(folder)
    if answers:
        recorder = Recorder(store.history(scenario))
        head = {"case": scenario, "exercises": ["WIRE-102"], "claims": ["resume"]}
        recorder.append("run", "case", {}, head)
        ids = {"client": "a", "connection": "a.1"}
        recorder.append("client", "dial", ids, {})
        recorder.append("client", "open", ids, {})
        asked = {"type": "cf_agent_stream_resume_request", "probeId": "p"}
        recorder.append("client", "frame-out", ids, {"frame": asked})
        for _ in range(answers):
            recorder.append("client", "frame-in", ids, {"frame": IDLE, "size": 9})
        recorder.close()
        (store.folder / "plan" / f"{scenario}.json").write_text("{}")
    left = left or {}
    verdicts = [
        Verdict("WIRE-102", case, "not-applicable" if why.startswith("needs") else "inconclusive", why)
        for case, why in left.items()
    ]
    store.save_verdicts(verdicts)
    not_run: dict[str, list[str]] = {}
    for case, why in left.items():
        not_run.setdefault(why, []).append(case)
    ran = 1 if answers else 0
    store.save_accounting(Accounting(total=9, selected=ran + len(left), ran=ran, not_run=not_run))
    store.save_env({**ENV, "scenarios": [*([scenario] if ran else []), *left], **env})
    return folder


def merged(tmp_path: Path, *folders: Path, known: Baseline | None = None) -> tuple[int, Path]:
    store = Store(tmp_path / "whole")
    return merge(parts_of(folders), known or Baseline(), store), store.folder


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def test_parts_add_up(tmp_path: Path) -> None:
    one = part(tmp_path / "one", "resume.page-refresh", left={"core.resent-request": "needs: model"})
    two = part(tmp_path / "two", "resume.probe-when-idle", seed=8, duration_s=5.0, started="2026-01-01")
    code, whole = merged(tmp_path, one, two)
    assert code == 0
    assert [(v["case"], v["state"]) for v in read(whole, "verdicts.json")] == [
        ("resume.page-refresh", "passed"),
        ("core.resent-request", "not-applicable"),
        ("resume.probe-when-idle", "passed"),
    ]
    assert read(whole, "accounting.json") == {
        "total": 9,
        "selected": 3,
        "ran": 2,
        "not_run": {"needs: model": ["core.resent-request"]},
    }
    env = read(whole, "env.json")
    assert (env["seed"], env["duration_s"], env["started"]) == (None, 5.0, "2026-01-01")
    assert (env["cases"], len(env["scenarios"]), env["merged"]) == (2, 3, [str(one), str(two)])
    assert len(list(whole.glob("cases/*/history.jsonl"))) == len(list(whole.glob("plan/*.json"))) == 2


def test_a_part_whose_time_was_up_leaves_the_whole_inconclusive(tmp_path: Path) -> None:
    one = part(tmp_path / "one", "resume.page-refresh", exit_code=2, left={"core.resent-request": "time"})
    code, whole = merged(tmp_path, one)
    assert code == 2
    assert read(whole, "verdicts.json")[1]["state"] == "inconclusive"
    assert read(whole, "env.json")["exit_code"] == 2


@pytest.mark.parametrize(("codes", "meant"), [((0, 130), 130), ((5, 130), 5), ((1, None), 130), ((3, 4), 3)])
def test_a_part_that_was_cut_short_cuts_the_whole_short(
    codes: tuple[int, int | None], meant: int, tmp_path: Path
) -> None:
    parts = [
        part(tmp_path / str(n), name, **({} if code is None else {"exit_code": code}))
        for n, (name, code) in enumerate(
            zip(("resume.page-refresh", "resume.probe-when-idle"), codes, strict=True)
        )
    ]
    if codes[1] is None:
        env = read(parts[1], "env.json")
        del env["exit_code"]
        (parts[1] / "env.json").write_text(json.dumps(env))
    assert merged(tmp_path, *parts)[0] == meant


def test_a_baseline_is_held_against_the_whole(tmp_path: Path) -> None:
    one = part(tmp_path / "one", "resume.page-refresh", answers=2)
    two = part(tmp_path / "two", "resume.probe-when-idle")
    entry = Entry(id="WIRE-102", case="resume.page-refresh", reason="r", link="l", expires=date(2099, 1, 1))
    gone = Entry(id="WIRE-102", case="resume.probe-when-idle", reason="r", link="l", expires=date(2099, 1, 1))
    code, whole = merged(tmp_path, one, two, known=Baseline(entries=(entry, gone)))
    assert [v["state"] for v in read(whole, "verdicts.json")] == ["expected-fail", "unexpected-pass"]
    assert code == 1


def test_a_baseline_says_nothing_of_what_the_time_left_over(tmp_path: Path) -> None:
    case = "core.resent-request"
    one = part(tmp_path / "one", "resume.page-refresh", exit_code=2, left={case: "the time was up"})
    entry = Entry(id="WIRE-102", case=case, reason="r", link="l", expires=date(2099, 1, 1))
    code, whole = merged(tmp_path, one, known=Baseline(entries=(entry,)))
    assert code == 2
    assert [v["state"] for v in read(whole, "verdicts.json")] == ["passed", "inconclusive"]


@pytest.mark.parametrize(
    "other",
    [
        {"kit": "9"},
        {"target": {"name": "other"}},
        {"target": {"name": "mine", "defect": "d"}},
        {"profiles": ["core"]},
        {"repeat": 2},
        {"revision": 1},
    ],
)
def test_what_is_no_part_of_one_run_is_refused(other: dict[str, Any], tmp_path: Path) -> None:
    one = part(tmp_path / "one", "resume.page-refresh")
    two = part(tmp_path / "two", "resume.probe-when-idle", **other)
    with pytest.raises(UsageError, match=f"no parts of one run: they differ in `.*{next(iter(other))}"):
        parts_of([one, two])


def test_a_target_may_be_named_otherwise_on_another_machine(tmp_path: Path) -> None:
    one = part(tmp_path / "one", "resume.page-refresh")
    elsewhere = {"name": "mine", "spec": "/elsewhere/x", "defect": None}
    assert len(parts_of([one, part(tmp_path / "two", "resume.probe-when-idle", target=elsewhere)])) == 2


def test_a_case_that_is_in_two_parts_is_refused(tmp_path: Path) -> None:
    one = part(tmp_path / "one", "resume.page-refresh")
    two = part(tmp_path / "two", "core.resent-request", left={"resume.page-refresh": "needs: model"})
    with pytest.raises(UsageError, match=r"the case resume\.page-refresh is in .*one and in .*two"):
        parts_of([one, two])


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda folder: (folder / "env.json").unlink(), r"env\.json cannot be read: No such file"),
        (lambda folder: (folder / "accounting.json").write_text("[]"), r"accounting\.json is not what a run"),
        (lambda folder: (folder / "env.json").write_text("{}"), r"env\.json is not what a run"),
        (
            lambda folder: (folder / "env.json").write_text('{"kit": "1", "profiles": 5}'),
            r"env\.json is not what a run",
        ),
        (
            lambda folder: (folder / "env.json").write_text('{"kit": "1", "shard": "x/y"}'),
            r"env\.json is not what a run",
        ),
    ],
)
def test_what_is_no_run_is_refused(spoil: Any, says: str, tmp_path: Path) -> None:
    one = part(tmp_path / "one", "resume.page-refresh")
    spoil(one)
    with pytest.raises(UsageError, match=says):
        parts_of([one])


def test_only_plain_files_are_copied(tmp_path: Path) -> None:
    one = part(tmp_path / "one", "resume.page-refresh")
    os.mkfifo(one / "cases" / "resume.page-refresh" / "pipe")
    shutil.rmtree(one / "plan")
    code, whole = merged(tmp_path, one)
    assert code == 0
    assert [file.name for file in (whole / "cases").glob("*/*")] == ["history.jsonl"]


def test_a_share_that_is_missing_is_named(tmp_path: Path) -> None:
    one = part(tmp_path / "one", "resume.page-refresh", shard="1/3")
    two = part(tmp_path / "two", "resume.probe-when-idle", shard="3/3")
    with pytest.raises(UsageError, match=r"shares are missing: 2/3; merge all of them"):
        parts_of([one, two])
    three = part(tmp_path / "three", "core.resent-request", shard="2/3")
    assert len(parts_of([one, two, three])) == 3


def test_a_run_that_ended_before_any_verdict_is_a_part_too(tmp_path: Path) -> None:
    one = part(tmp_path / "one", "x", answers=0, left={"resume.page-refresh": "the run was cut short"})
    (one / "verdicts.json").unlink()
    code, whole = merged(tmp_path, one)
    assert code == 2
    assert read(whole, "verdicts.json") == []
