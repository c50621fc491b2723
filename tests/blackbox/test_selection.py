"""What is selected, what runs, and how it adds up: shards, limits, reruns, revisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands import kit, last_line

WORDS = "resume.probe or core.model-cut or resume.close"
"""A handful of quick scenarios."""


def read(folder: Path, name: str = "results.json") -> Any:
    return json.loads((folder / name).read_text())


def states(folder: Path) -> dict[tuple[str, str], str]:
    return {(v["requirement"], c["case"]): v["state"] for c in read(folder)["cases"] for v in c["verdicts"]}


def test_shards_that_are_merged_are_the_whole(tmp_path: Path) -> None:
    asked = ("run", "-k", WORDS, "--seed", "7", "--repeat", "2")
    assert kit(*asked, "--out", tmp_path / "all").returncode == 0
    for number in (1, 2):
        done = kit(*asked, "--shard", f"{number}/2", "--out", tmp_path / str(number))
        assert done.returncode == 0, done.stdout + done.stderr
    done = kit("merge", tmp_path / "1", tmp_path / "2", "--out", tmp_path / "whole")
    assert done.returncode == 0, done.stdout + done.stderr
    whole, everything = read(tmp_path / "whole"), read(tmp_path / "all")
    assert states(tmp_path / "whole") == states(tmp_path / "all")
    assert whole["accounting"] == everything["accounting"]
    assert whole["summary"] == everything["summary"]
    account = whole["accounting"]
    assert account["total"] > account["selected"] == account["ran"] == len(everything["cases"]) >= 8
    told = f"cases: {account['total']} in all, {account['selected']} selected, {account['ran']} ran\n"
    assert told in done.stdout
    assert (tmp_path / "whole" / "report.html").exists()
    assert kit("check", tmp_path / "whole").returncode == 0
    again = kit("merge", tmp_path / "1", tmp_path / "whole", "--out", tmp_path / "no")
    assert again.returncode == 4
    assert "merge shares, not repeats" in last_line(again.stderr)


def test_what_the_time_limit_leaves_is_told_and_decides_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = kit("run", "--time-limit", "0.2", "-k", "recovery.kill", "--jobs", "2", "--out", out)
    assert done.returncode == 2, done.stdout + done.stderr
    account = read(out)["accounting"]
    why = "not run to its end: the time limit of 0.2 s for the run was over"
    assert account["ran"] + len(account["not_run"][why]) == account["selected"] >= 5
    assert f"  {len(account['not_run'][why]):4}  {why}\n" in done.stdout
    assert last_line(done.stdout).startswith("inconclusive: ")
    assert last_line(done.stdout).endswith("-> exit 2")
    assert f"({why})" in done.stderr
    assert "Traceback" not in done.stderr
    judged = kit("check", out)
    assert (judged.returncode, why in judged.stdout) == (2, True), judged.stdout
    rerun = kit("run", "--rerun-failed", out, "--shard", "1/5", "--out", tmp_path / "again")
    assert rerun.returncode == 0, rerun.stdout + rerun.stderr
    assert {c["case"] for c in read(tmp_path / "again")["cases"]} <= set(account["not_run"][why])


WAITS = """
version: 1
about: {scenario: mine.waits, exercises: [WIRE-102]}
operations:
  - {client: a, do: connect}
  - {do: wait, within_s: 60, after: {seen: {source: client, kind: close}}}
"""


def test_a_case_whose_time_is_up_decides_nothing_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(WAITS)
    done = kit("replay", tmp_path / "plan.yaml", "--timeout", "3", "--out", tmp_path / "out")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "INCONCLUSIVE mine.waits: not everything was played: " in done.stdout
    assert "the case was not played to its end within 3.0 s" in done.stdout


def test_only_what_failed_is_played_again_with_the_same_defect(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    words = "resume.reset-during-output or core.model-answers or resume.probe-when-idle"
    done = kit("run", "--defect", "loses-last-delta", "-k", words, "--out", first)
    assert done.returncode == 1, done.stdout + done.stderr
    failed = {c["case"] for c in read(first)["cases"] if c["state"] == "failed"}
    assert 0 < len(failed) < 3
    again = kit("run", "--rerun-failed", first, "--out", second)
    assert again.returncode == 1, again.stdout + again.stderr
    assert {c["case"]: c["state"] for c in read(second)["cases"]} == dict.fromkeys(failed, "failed")
    assert read(second)["target"]["defect"] == "loses-last-delta"


def test_where_nothing_failed_nothing_is_played_again(tmp_path: Path) -> None:
    assert kit("run", "-k", "bare.questions", "--out", tmp_path / "out").returncode == 0
    done = kit("run", "--rerun-failed", tmp_path / "out", "--out", tmp_path / "again")
    assert done.returncode == 4
    assert "no scenario is selected: --rerun-failed leaves none of" in last_line(done.stderr)
    assert not (tmp_path / "again").exists()


def test_what_is_newer_than_the_revision_is_shown_and_fails_nothing(tmp_path: Path) -> None:
    asked = ("run", "--defect", "obeys-the-model", "--id", "CANCEL-14")
    assert kit(*asked, "--out", tmp_path / "head").returncode == 1
    old = kit(*asked, "--revision", "1", "--out", tmp_path / "old")
    assert old.returncode == 0, old.stdout + old.stderr
    assert "FAILED CANCEL-14 (MUST, control, unscored)" in old.stdout
    judged = kit("check", tmp_path / "old")
    assert judged.returncode == 0, judged.stdout
    assert " unscored -> exit 0" in last_line(judged.stdout)
    rows = {row["id"]: (row["scored"], row["state"]) for row in read(tmp_path / "old")["requirements"]}
    assert rows["CANCEL-14"] == (False, "failed")


WRONG = {
    "id": (("--id", "WIRE-1044"), "did you mean `WIRE-104`?"),
    "shard": (("--shard", "3/2"), "give I/N, such as 1/3"),
    "too many shards": (("--shard", "999/999"), "no scenario is selected: --shard leaves none of"),
    "limit": (("--time-limit", "-1"), "--time-limit is -1: give a number of seconds above 0"),
    "revision": (("--revision", "9"), "unknown revision `9`"),
    "nothing left": (
        ("--profile", "control", "-k", "resume and not resume"),
        "no scenario is selected: -k leaves none of",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_selection_that_cannot_be_is_one_line_and_no_run(what: str, tmp_path: Path) -> None:
    args, says = WRONG[what]
    done = kit("run", *args, "--out", tmp_path / "out")
    assert done.returncode == 4, done.stderr
    assert says in last_line(done.stderr)
    assert not (tmp_path / "out").exists()
