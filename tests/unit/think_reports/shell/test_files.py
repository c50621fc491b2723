"""Run directories, whole, half-written and broken."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from think_conformance.accounting import Accounting
from think_conformance.baseline import Entry
from think_conformance.catalogue.model import requirements
from think_conformance.errors import UsageError
from think_conformance.history.op import Record
from think_reports.shell.files import report, write

ENV: dict[str, Any] = {
    "kit": "0.1.0",
    "python": "3.11",
    "target": {"name": "mine", "defect": None},
    "seed": 7,
    "jobs": 2,
    "started": "2025-01-01T00:00:00+00:00",
}


def run_dir(folder: Path, verdicts: list[dict[str, Any]] | None = None) -> Path:
    head = Record(0, 1.0, "run", "case", {}, {"case": "stop", "scenario": "stop", "title": "The stop"})
    (folder / "cases" / "stop").mkdir(parents=True)
    (folder / "cases" / "stop" / "history.jsonl").write_bytes(msgspec.json.encode(head) + b"\n")
    (folder / "env.json").write_text(json.dumps(ENV))
    if verdicts is not None:
        (folder / "verdicts.json").write_text(json.dumps(verdicts))
    return folder


def test_a_run_directory_becomes_a_report(tmp_path: Path) -> None:
    known = next(iter(requirements()))
    found = report(run_dir(tmp_path, [{"requirement": known, "case": "stop", "state": "passed"}]))
    assert (found.kit, found.target.name, found.seed, found.exit_code) == ("0.1.0", "mine", 7, None)
    assert [(c.case, c.title) for c in found.cases] == [("stop", "The stop")]
    assert [(r.id, r.state) for r in found.requirements] == [(known, "passed")]


def test_the_entry_of_a_baseline_comes_with_its_verdict(tmp_path: Path) -> None:
    known = next(iter(requirements()))
    entry = {"id": known, "reason": "why", "link": "x", "expires": "2099-01-02"}
    verdict = {"requirement": known, "case": "stop", "state": "expected-fail", "baseline": entry}
    (row,) = report(run_dir(tmp_path, [verdict])).cases[0].verdicts
    assert row.baseline == Entry(id=known, reason="why", link="x", expires=date(2099, 1, 2))


def test_the_account_of_a_run_is_read_where_it_kept_one(tmp_path: Path) -> None:
    folder = run_dir(tmp_path)
    assert report(folder).accounting is None
    (folder / "accounting.json").write_text('{"total": 3, "selected": 2, "ran": 1, "not_run": {"x": ["a"]}}')
    found = report(folder).accounting
    assert found == Accounting(total=3, selected=2, ran=1, not_run={"x": ["a"]})
    (folder / "accounting.json").write_text("[]")
    with pytest.raises(UsageError, match=r"accounting\.json is not what a run writes"):
        report(folder)


def test_a_run_without_verdicts_yet_has_none(tmp_path: Path) -> None:
    found = report(run_dir(tmp_path))
    assert found.requirements == []
    assert [c.state for c in found.cases] == ["inconclusive"]


BREAK: dict[str, tuple[str, str | None]] = {
    "no env": ("env.json", None),
    "env not json": ("env.json", "{"),
    "env without a seed": ("env.json", '{"kit":"1","target":{"name":"x"},"started":""}'),
    "verdicts not json": ("verdicts.json", "[{"),
    "an unknown state": ("verdicts.json", '[{"requirement":"A","case":"stop","state":"great"}]'),
    "an unknown requirement": ("verdicts.json", '[{"requirement":"NOPE-1","case":"stop","state":"passed"}]'),
    "half a record": ("cases/stop/history.jsonl", '{"index":0,"at":1'),
    "a gap": ("cases/stop/history.jsonl", '{"index":1,"at":1.0,"source":"run","kind":"heal"}\n'),
}


@pytest.mark.parametrize("what", BREAK)
def test_what_is_broken_is_one_line_that_names_it(what: str, tmp_path: Path) -> None:
    name, text = BREAK[what]
    folder = run_dir(tmp_path, [])
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    with pytest.raises(UsageError, match=r"\w") as broken:
        report(folder)
    said = str(broken.value)
    assert "\n" not in said
    assert Path(name).name in said or "NOPE-1" in said


def test_half_a_surrogate_in_a_verdict_is_read(tmp_path: Path) -> None:
    known = next(iter(requirements()))
    verdict = {"requirement": known, "case": "stop", "state": "failed", "reason": "told \ud83d"}
    (row,) = report(run_dir(tmp_path, [verdict])).cases[0].verdicts
    assert row.reason.startswith("told ")


def test_writing_is_whole_private_and_leaves_nothing_beside(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text("old")
    path = write(tmp_path, "junit.xml", "wörld\n")
    assert path == tmp_path / "junit.xml"
    assert path.read_bytes() == "wörld\n".encode()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["junit.xml"]


def test_a_text_that_cannot_be_encoded_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write(tmp_path, "junit.xml", "\ud800")
    assert (tmp_path / "junit.xml").read_text() == "old"


def test_a_folder_that_is_gone_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"junit\.xml cannot be written"):
        write(tmp_path / "gone", "junit.xml", "x")
