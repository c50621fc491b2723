"""The run behind the plugin: what ends its thread is never lost."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from think_conformance.baseline import Compared, Entry
from think_conformance.checkers.base import Verdict
from think_conformance.plugin import engine
from think_conformance.plugin.engine import Engine
from think_conformance.shell.order import Order, options
from think_conformance.shell.run import Ended

ORDER = Order(seed=7, expression="resume.probe-when-idle")


def started(monkeypatch: pytest.MonkeyPatch, out: Path, told_first: bool) -> Engine:
    """An engine whose run breaks before or after its only case has ended."""

    class Broken:
        def __init__(self, _options: Any, _store: Any, progress: Any, _tell: Any) -> None:
            self._progress = progress

        async def play(self) -> int:
            if told_first:
                self._progress(Ended(case=CASE, verdicts=[], history=[], took_s=0))
            raise RuntimeError("disk full")

    monkeypatch.setattr(engine, "Run", Broken)
    ordered = options(ORDER)
    one = Engine(ORDER, ordered)
    one.start(ordered.scenarios, out)
    return one


CASE = "resume.probe-when-idle"


def test_what_broke_after_the_last_case_is_raised_when_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one = started(monkeypatch, tmp_path / "out", told_first=True)
    assert one.outcome(CASE).case == CASE
    with pytest.raises(RuntimeError, match="disk full"):
        one.stop()


def test_what_broke_before_a_case_is_raised_for_it_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one = started(monkeypatch, tmp_path / "out", told_first=False)
    with pytest.raises(RuntimeError, match="disk full"):
        one.outcome(CASE)
    with pytest.raises(RuntimeError, match="disk full"):
        one.stop()


def test_what_only_the_whole_run_shows_is_told_at_its_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    everywhere = Entry(id="WIRE-85", reason="why", link="x", expires=date(2099, 1, 1))
    here = replace(everywhere, case=CASE)

    class Whole:
        verdicts = [
            Compared("WIRE-85", CASE, "unexpected-pass", "remove the entry", [], baseline=everywhere),
            Compared("WIRE-85", CASE, "expected-fail", "as listed", [], baseline=everywhere),
            Compared("WIRE-85", CASE, "unexpected-pass", "the case told it", [], baseline=here),
            Verdict("WIRE-85", CASE, "not-testable", "no entry"),
        ]

        def __init__(self, _options: Any, _store: Any, progress: Any, _tell: Any) -> None:
            self._progress = progress

        async def play(self) -> int:
            self._progress(Ended(case=CASE, verdicts=[], history=[], took_s=0))
            return 1

    monkeypatch.setattr(engine, "Run", Whole)
    ordered = options(ORDER)
    one = Engine(ORDER, ordered)
    one.start(ordered.scenarios, tmp_path / "out")
    one.stop()
    assert one.at_odds == [f"UNEXPECTED-PASS WIRE-85 {CASE}: remove the entry"]


def test_an_engine_that_never_started_stops_in_peace() -> None:
    one = Engine(ORDER, options(ORDER))
    one.stop()
    assert one.store is None
