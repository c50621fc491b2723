"""What is shown while cases are played."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from think_conformance.checkers.base import State, Verdict
from think_conformance.cli.progress import progress
from think_conformance.shell.run import Ended
from think_conformance.shell.store import Store


def ended(case: str, *states: State, took_s: float = 1.25, missing: str = "") -> Ended:
    verdicts = [Verdict("A-1", case, state) for state in states]
    return Ended(case=case, verdicts=verdicts, history=[], took_s=took_s, missing=missing)


def shown(folder: Path, *cases: tuple[str, State], terminal: bool) -> str:
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=terminal, width=200, highlight=False, _environ={"TERM": "xterm"}
    )
    with progress(len(cases), Store(folder / "run"), console) as told:
        for case, state in cases:
            told(ended(case, state))
    return out.getvalue()


CASES: list[tuple[str, State]] = [("one.case", "passed"), ("two.case[x]", "failed"), ("three.case", "warned")]


@pytest.fixture(autouse=True)
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


def test_lines_where_there_is_no_terminal(tmp_path: Path) -> None:
    assert shown(tmp_path, *CASES, terminal=False).splitlines() == [
        "3 cases",
        "[1/3] passed          one.case (1.2 s)",
        "[2/3] failed          two.case[x] (1.2 s)",
        f"    think-conformance replay {tmp_path}/run/plan/two.case[x].json",
        "[3/3] warned          three.case (1.2 s)",
        f"    think-conformance replay {tmp_path}/run/plan/three.case.json",
    ]


def test_a_bar_on_a_terminal_and_lines_for_what_needs_a_look(tmp_path: Path) -> None:
    text = shown(tmp_path, *CASES, terminal=True)
    assert "3/3" in text
    assert "1 passed" in text
    assert f"replay {tmp_path}/run/plan/two.case[x].json" in text
    assert "one.case" not in text


def test_a_terminal_in_ci_gets_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert shown(tmp_path, *CASES, terminal=True).startswith("3 cases")


def test_a_case_without_verdicts_needs_a_look(tmp_path: Path) -> None:
    out = io.StringIO()
    with progress(1, Store(tmp_path / "run"), Console(file=out, width=200)) as told:
        told(ended("one.case"))
    assert "inconclusive" in out.getvalue()
    assert "replay" in out.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("states", [(), ("not-applicable",), ("inconclusive",)])
def test_a_case_that_was_not_played_is_a_line_with_its_reason(
    states: tuple[State, ...], terminal: bool, tmp_path: Path
) -> None:
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=terminal, width=200, highlight=False, _environ={"TERM": "xterm"}
    )
    with progress(1, Store(tmp_path / "run"), console) as told:
        told(ended("one.case", *states, missing="needs: leg routing"))
    assert "one.case (needs: leg routing)" in out.getvalue()
    assert "replay" not in out.getvalue()
