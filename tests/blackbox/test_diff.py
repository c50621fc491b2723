"""`think-conformance diff`: two runs, side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import kit, last_line

CHOSEN = "two-turns or page-refresh"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same few scenarios: twice as they are, one by one and together, and with a defect."""
    folder = tmp_path_factory.mktemp("runs")
    asked = {"one": ["--jobs", "1"], "two": ["--jobs", "4"], "bad": ["--defect", "doubles-replay"]}
    for name, options in asked.items():
        done = kit("run", "-k", CHOSEN, "--seed", "7", "--out", folder / name, *options)
        assert done.returncode == (1 if name == "bad" else 0), done.stdout + done.stderr
    return {name: folder / name for name in asked}


def decisions(folder: Path, *rows: str, b: str = "reference") -> Path:
    file = folder / "decisions.toml"
    entries = "".join(f'[[decision]]\n{row}\nspec = ["WIRE-104"]\nwhy = "so it is"\n' for row in rows)
    file.write_text(f'version = 1\na = "reference"\nb = "{b}"\n{entries}')
    return file


def test_two_runs_of_one_target_do_not_differ(runs: dict[str, Path]) -> None:
    done = kit("diff", runs["one"], runs["two"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert last_line(done.stdout).startswith("0 differences, 0 open, 0 decisions stale; ")


def test_a_defect_is_a_difference_with_its_frames(runs: dict[str, Path]) -> None:
    done = kit("diff", runs["one"], runs["bad"], "--format", "json")
    assert done.returncode == 1
    rows = json.loads(done.stdout)["rows"]
    assert {case for row in rows for case in row["cases"]} == {"resume.page-refresh"}
    row = next(row for row in rows if row["text"] == "frames: nothing / start")
    lines = (runs["bad"] / "cases" / "resume.page-refresh" / "history.jsonl").read_text().splitlines()
    assert json.loads(lines[row["example"]["b"]])["payload"]["frame"]["replay"] is True


def test_what_is_decided_is_no_failure_and_what_is_stale_is_one(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    known = decisions(tmp_path, 'match = "frames: *"')
    assert kit("diff", runs["one"], runs["bad"], "--decisions", known).returncode == 0
    done = kit("diff", runs["one"], runs["two"], "--decisions", known)
    assert done.returncode == 1
    assert "stale        frames: *" in done.stdout


def test_markdown_is_the_table_alone(runs: dict[str, Path]) -> None:
    done = kit("diff", runs["one"], runs["bad"], "--format", "markdown")
    assert [line[:1] for line in done.stdout.splitlines()] == ["|"] * len(done.stdout.splitlines())
    assert "| frames | nothing | start | 1 | open: as in resume.page-refresh " in done.stdout


def test_what_a_user_can_get_wrong_is_one_line(runs: dict[str, Path], tmp_path: Path) -> None:
    other = decisions(tmp_path, b="another")
    wrong = {
        "name the folder of a run": (tmp_path, runs["one"]),
        "name the runs in that order": (runs["one"], runs["two"], "--decisions", other),
        "cannot be read": (runs["one"], runs["two"], "--decisions", tmp_path / "none.toml"),
    }
    for text, asked in wrong.items():
        done = kit("diff", *asked)
        assert (done.returncode, text in done.stderr) == (4, True), done.stderr
        assert len(done.stderr.splitlines()) == 1
