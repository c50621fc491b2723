"""The page of all requirements."""

from __future__ import annotations

from pathlib import Path

from sample_run import row
from think_conformance.catalogue.model import requirements, unproven
from think_conformance.catalogue.revisions import revision, revisions
from think_conformance.cli.catalogue_page import COMMAND, page

DOCUMENT = Path(__file__).parents[4] / "docs" / "requirements.md"


def test_the_page_in_the_documents_is_fresh() -> None:
    frozen = {number: revision(number) for number in revisions()}
    made = "".join(f"{line}\n" for line in page(requirements(), frozen, unproven()))
    assert DOCUMENT.read_text() == made, f"write it again: {COMMAND} > docs/requirements.md"


def test_a_row_tells_level_marks_and_the_first_revision_that_holds_it() -> None:
    rows = {
        r.id: r
        for r in (
            row("A-1"),
            row("A-2", level="SHOULD", source="derived", sentence="a|b", reference_only=True),
            row("B-1", profile="voice"),
        )
    }
    lines = list(page(rows, {2: {"A-1", "A-2"}, 1: {"A-1"}}, {"A-2"}))
    assert "There are 3 requirements, 2 of them MUST." in lines
    assert lines[lines.index("## core") + 4 :] == [
        "| A-1 | MUST | What A-1 says holds. | 1 |",
        "| A-2 | SHOULD | a\\|b *(derived, the reference only, unproven)* | 2 |",
        "",
        "## voice",
        "",
        "| id | level | what must hold | since |",
        "|---|---|---|---|",
        "| B-1 | MUST | What B-1 says holds. | – |",
    ]
