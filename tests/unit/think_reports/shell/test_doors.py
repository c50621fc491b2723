"""The entry points, as the kit finds and calls them."""

from __future__ import annotations

import json
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import msgspec
import pytest

from histories import Story
from think_conformance.catalogue.model import requirements
from think_conformance.checkers.base import Verdict

ROOT = Path(__file__).parents[4]
DOORS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][
    "think_conformance.reports"
]


def door(name: str) -> Any:
    module, _, function = DOORS[name].partition(":")
    return getattr(import_module(module), function)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    env = {"kit": "0.1.0", "target": {"name": "mine"}, "seed": 7, "started": "", "exit_code": 2}
    (tmp_path / "env.json").write_text(json.dumps(env))
    return tmp_path


def test_json_writes_its_file(run_dir: Path) -> None:
    path = door("json")(run_dir)
    assert path == run_dir / "results.json"
    assert json.loads(path.read_text())["exit_code"] == 2


def test_junit_writes_its_file(run_dir: Path) -> None:
    path = door("junit")(run_dir)
    assert path == run_dir / "junit.xml"
    assert xml.parse(path).getroot().get("tests") == "0"


def test_html_writes_its_file_with_a_picture_of_what_needs_a_look(run_dir: Path) -> None:
    known = next(iter(requirements()))
    for case, state in (("bad", "failed"), ("good", "passed")):
        verdict = Verdict(known, case, state, "because", [1])  # type: ignore[arg-type]
        (run_dir / "cases" / case).mkdir(parents=True)
        story = Story()
        story.open("a")
        lines = [msgspec.json.encode(record) + b"\n" for record in story.history]
        (run_dir / "cases" / case / "history.jsonl").write_bytes(b"".join(lines))
        verdicts = run_dir / "verdicts.json"
        found = json.loads(verdicts.read_text()) if verdicts.exists() else []
        verdicts.write_text(json.dumps([*found, msgspec.to_builtins(verdict)]))
    path = door("html")(run_dir)
    assert path == run_dir / "report.html"
    assert path.read_text().count("<svg") == 1
    assert "What happened in bad" in path.read_text()
    assert f"replay {run_dir}/plan/bad.json" in path.read_text()


def test_text_returns_what_to_show(run_dir: Path) -> None:
    text = door("text")(run_dir)
    assert text.endswith("inconclusive: 0 of 0 requirements, 0 cases, seed 7 -> exit 2\n")
    assert [p.name for p in run_dir.iterdir()] == ["env.json"]


def test_every_door_is_known_here() -> None:
    assert set(DOORS) == {"html", "json", "junit", "text"}
