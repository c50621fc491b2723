"""The frame around a run."""

from __future__ import annotations

import json
import sys
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from think_conformance.errors import UsageError
from think_conformance.shell import logbook as module
from think_conformance.shell.logbook import logbook, summary
from think_conformance.shell.order import Order, options
from think_conformance.shell.process import TargetNotReady
from think_conformance.shell.store import Store

ORDER = Order(seed=7, expression="resume.probe-when-idle")


def nobody(text: str) -> None:
    raise AssertionError(f"nothing was to be told: {text}")


def env_of(store: Store) -> dict[str, Any]:
    env: dict[str, Any] = json.loads((store.folder / "env.json").read_text())
    return env


def test_a_run_is_written_down_before_it_begins_and_when_it_has_ended(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    with logbook(ORDER, options(ORDER), store, nobody) as ending:
        assert "exit_code" not in env_of(store)
        ending.exit_code = 2
    assert env_of(store)["exit_code"] == 2
    assert env_of(store)["duration_s"] >= 0
    assert {p.name for p in store.folder.iterdir()} >= {"results.json", "junit.xml", "report.html"}
    assert summary(store, nobody).endswith("seed 7 -> exit 2\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("it ended"), 3),
        (ValueError("it ended"), 3),
        (UsageError("it ended"), 4),
        (TargetNotReady("it ended"), 5),
        (KeyboardInterrupt("it ended"), 130),
    ],
)
def test_what_ended_a_run_is_written_down_and_reported(
    error: BaseException, code: int, tmp_path: Path
) -> None:
    store = Store(tmp_path / "run")
    with pytest.raises(type(error), match="it ended"), logbook(ORDER, options(ORDER), store, nobody):
        raise error
    assert env_of(store)["exit_code"] == code
    assert json.loads((store.folder / "results.json").read_text())["exit_code"] == code


def throws(folder: Path) -> None:
    raise RuntimeError(f"no page about {folder.name}")


def gives_up(folder: Path) -> None:
    raise SystemExit("enough")


def test_a_report_that_throws_is_told_and_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = "think_conformance.reports"
    values = {"a": f"{__name__}:throws", "b": f"{__name__}:gives_up", "c": "no.such.module:at_all"}
    strangers = [EntryPoint(name, value, group) for name, value in values.items()]
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(throws=throws, gives_up=gives_up))

    def found(**wanted: str) -> EntryPoints:
        return EntryPoints([*strangers, *entry_points(group=group)]).select(**wanted)

    monkeypatch.setattr(module, "entry_points", found)
    store, told = Store(tmp_path / "run"), list[str]()
    with logbook(ORDER, options(ORDER), store, told.append) as ending:
        ending.exit_code = 1
    assert env_of(store)["exit_code"] == 1
    assert {p.name for p in store.folder.iterdir()} >= {"results.json", "junit.xml", "report.html"}
    assert summary(store, told.append).endswith("seed 7 -> exit 1\n")
    assert told == [
        "the report `a` could not be made: RuntimeError: no page about run",
        "the report `b` could not be made: SystemExit: enough",
        "the report `c` could not be made: ModuleNotFoundError: No module named 'no'",
    ]


def test_a_summary_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    assert summary(Store(tmp_path / "run"), told.append) == ""
    assert told == [
        f"the report `text` could not be made: {tmp_path}/run/env.json cannot be read: "
        "No such file or directory"
    ]
