"""`think-conformance explain`."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import kit, last_line


def test_a_requirement_is_explained_with_its_scenarios_and_defects() -> None:
    done = kit("explain", "WIRE-85")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("WIRE-85  MUST  profile core  source seed")
    text = " ".join(done.stdout.split())
    assert "gets one terminal frame for it, no fewer and no more" in text
    assert "resume.page-refresh" in text
    assert "two-terminals" in text


def test_a_target_without_defects_has_none_to_show(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text('[target]\nname = "mine"\nagent = "a"\nstart = ["x"]\n')
    done = kit("explain", "WIRE-85", "--target", tmp_path / "t.toml")
    assert done.returncode == 0, done.stderr
    assert "nothing yet" in done.stdout


def test_a_scenario_is_explained_in_words() -> None:
    done = kit("explain", "control.stop-during-output")
    assert done.returncode == 0, done.stderr
    assert "4. a stops turn t1, once b has received its 2nd text-delta chunk" in done.stdout
    assert "CANCEL-05" in done.stdout


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("WIRE-1044", "WIRE-104"),
        ("wire-85", "WIRE-85"),
        ("control.stop-during-ouput", "control.stop-during-output"),
    ],
)
def test_a_typo_is_one_line_with_a_suggestion(typo: str, meant: str) -> None:
    done = kit("explain", typo)
    assert done.returncode == 4
    assert done.stdout == ""
    assert last_line(done.stderr) == (
        f"think-conformance: unknown requirement or scenario `{typo}`; did you mean `{meant}`?"
    )
