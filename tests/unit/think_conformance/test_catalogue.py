"""The rows of the catalogue: readable, of known origin, levels as their source demands."""

from __future__ import annotations

from pathlib import Path

import pytest

from think_conformance.catalogue.model import requirements

ROWS = list(requirements().values())
BY_DESIGN = {"KIT-06"}
"""Derived, yet only a SHOULD: text that was streamed and never seen stored."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_level_follows_from_the_source(row) -> None:  # type: ignore[no-untyped-def]
    must = row.source in ("seed", "derived") and row.id not in BY_DESIGN
    assert row.level == ("MUST" if must else "SHOULD")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_sentence_is_one_and_stands_alone(row) -> None:  # type: ignore[no-untyped-def]
    assert row.sentence.endswith(".")
    assert row.sentence.count(". ") == 0
    assert len(row.sentence) <= 160


def test_ids_of_the_kits_own_are_derived() -> None:
    assert {row.source for row in ROWS if row.id.startswith("KIT-")} == {"derived"}


def test_a_bad_row_names_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from think_conformance.catalogue import model

    monkeypatch.setattr(model, "files", lambda _: tmp_path)
    (tmp_path / "x.yaml").write_text("- {id: X-1, level: MAYBE}\n")
    with pytest.raises(ValueError, match=r"x\.yaml"):
        requirements.__wrapped__()
    row = "{id: X-1, level: MUST, profile: core, source: seed, sentence: s}"
    (tmp_path / "x.yaml").write_text(f"[{row}, {row}]\n")
    with pytest.raises(ValueError, match="X-1"):
        requirements.__wrapped__()
