"""The command: what cannot work says so in one line and exits with 4."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

from think_reference.cli import main
from think_reference.defects import DEFECTS


def run(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    for name in ("THINK_PORT", "THINK_DATA_DIR", "THINK_MODEL_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "argv", ["think-reference", *args])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def serve(folder: Path, port: int = 0) -> list[str]:
    return ["serve", "--port", str(port), "--data-dir", str(folder), "--model-url", "http://127.0.0.1:1/v1"]


def test_a_port_that_is_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(monkeypatch, *serve(tmp_path, port)) == 4
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(port) in said


def test_a_folder_that_is_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    assert run(monkeypatch, *serve(tmp_path / "file")) == 4
    assert capsys.readouterr().err == (
        f"think-reference: {tmp_path}/file: File exists; give another --data-dir\n"
    )


def test_a_journal_out_of_reach(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "x.sqlite3").mkdir()
    assert run(monkeypatch, *serve(tmp_path)) == 4
    assert capsys.readouterr().err == (
        f"think-reference: {tmp_path}/x.sqlite3: unable to open database file; "
        "it must be a file that this user may read and write\n"
    )


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["serve"], "Missing option '--port'"),
        (["serve", "--port", "x"], "not a valid integer range"),
        (["serve", "--nope"], "No such option"),
        (["nope"], "No such command"),
    ],
)
def test_bad_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], args: list[str], says: str
) -> None:
    assert run(monkeypatch, *args) == 4
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "says"), [("two-terminal", "did you mean `two-terminals`?"), ("zzz", "there are two-terminals")]
)
def test_an_unknown_defect_gets_a_suggestion(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, says: str
) -> None:
    assert run(monkeypatch, *serve(tmp_path), "--defect", name) == 4
    assert says in capsys.readouterr().err


def test_defects_as_json_and_as_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "defects", "--format", "json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(DEFECTS)
    assert all(set(row) == {"name", "summary", "breaks"} and row["breaks"] for row in rows)
    assert run(monkeypatch, "defects") == 0
    assert capsys.readouterr().out.count("\n") == len(DEFECTS)
