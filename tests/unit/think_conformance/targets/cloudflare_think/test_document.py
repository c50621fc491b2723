"""The page of a version: states from the first run, frames from whichever run shows them."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from think_conformance.baseline import Entry
from think_conformance.errors import UsageError
from think_conformance.targets.cloudflare_think.document import page


def entry(ident: str, anchor: str, **more: Any) -> Entry:
    link = f"docs/x.md#{anchor}"
    return Entry(id=ident, reason="it is so", link=link, expires=date.max, case="core.a", **more)


def run(*verdicts: tuple[str, list[str], list[str]]) -> dict[str, Any]:
    told = [
        {"requirement": i, "reason": " and ".join(said), "frames": frames, "breaches": said[1:]}
        for i, said, frames in verdicts
    ]
    row = {"level": "MUST", "profile": "core", "sentence": "a | b", "state": "passed", "cases": ["core.a"]}
    return {
        "requirements": [{"id": "X-1", **row}, {"id": "X-2", **row}],
        "cases": [{"case": "core.a", "scenario": "core.a", "verdicts": told}],
    }


def test_a_deviation_is_told_with_the_frames_of_the_run_that_shows_it() -> None:
    clean, seen = run(), run(("X-1", ["repeats differ", "it was lost"], ["#1 one", "#2 two"]))
    text = page("9", "where", [entry("X-1", "it-is-lost", sometimes=True)], [clean, seen])
    assert "| X-1 | MUST | core | a \\| b | 1 | deviates sometimes: [It is lost](#it-is-lost) |" in text
    assert "| X-2 | MUST | core | a \\| b | 1 | passed |" in text
    assert "### It is lost\n\nIt is so.\n" in text
    assert "| core.a | X-1 (sometimes) |" in text
    assert "<summary>X-1, core.a: it was lost</summary>\n\n```\n#1 one\n#2 two\n```" in text


def test_a_deviation_that_no_run_shows_is_not_told() -> None:
    other = run(("X-1", ["something else"], ["#1"]), ("X-2", ["it was lost"], ["#2"]))
    with pytest.raises(UsageError, match=r"no run shows X-1 in core\.a"):
        page("9", "where", [entry("X-1", "it-is-lost", evidence="lost")], [other])
