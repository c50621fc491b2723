"""Where things stand: every place that is told is opened and looked at."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from think_conformance.catalogue.model import requirements
from think_conformance.cli.finding import where
from think_conformance.errors import Unknown
from think_conformance.scenarios.base import load

ROOT = Path(__file__).parents[4]


def places(ident: str) -> list[tuple[str, str]]:
    """What is told of an id: the word, and the line that stands there."""
    done = CliRunner().invoke(where, [ident], catch_exceptions=False)
    found = []
    for told in done.output.splitlines():
        what, place = told.split()[:2]
        file, _, number = place.rpartition(":")
        found.append((what, (ROOT / file).read_text().splitlines()[int(number) - 1].strip()))
    return found


def test_a_requirement_has_its_row_its_check_and_each_scenario_that_exercises_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    exercise = [f'"{s.id}",' for s in load().values() if "WIRE-104" in s.exercises]
    assert places("WIRE-104") == [
        ("row", "- id: WIRE-104"),
        ("check", '@check("WIRE-104")'),
        *(("scenario", line) for line in exercise),
    ]


def test_everything_there_is_can_be_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # from elsewhere the places are absolute
    for ident in requirements():
        assert [what for what, _ in places(ident)][:2] == ["row", "check"], ident
    for ident in load():
        assert places(ident) == [("scenario", f'"{ident}",')]


def test_a_typo_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(Unknown, match="did you mean `WIRE-104`"):
        CliRunner().invoke(where, ["WIRE-1044"], catch_exceptions=False)
