"""The frame around a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from think_conformance.shell.logbook import logbook, summary
from think_conformance.shell.order import Order, options
from think_conformance.shell.store import Store

ORDER = Order(seed=7, expression="resume.probe-when-idle")


def env_of(store: Store) -> dict[str, Any]:
    env: dict[str, Any] = json.loads((store.folder / "env.json").read_text())
    return env


def test_a_run_is_written_down_before_it_begins_and_when_it_has_ended(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    with logbook(ORDER, options(ORDER), store) as ending:
        assert "exit_code" not in env_of(store)
        ending.exit_code = 2
    assert env_of(store)["exit_code"] == 2
    assert env_of(store)["duration_s"] >= 0
    assert {p.name for p in store.folder.iterdir()} >= {"results.json", "junit.xml", "report.html"}
    assert summary(store).endswith("seed 7 -> exit 2\n")


def test_a_run_that_broke_is_the_fault_of_the_kit_and_is_reported(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    with pytest.raises(RuntimeError, match="broke"), logbook(ORDER, options(ORDER), store):
        raise RuntimeError("it broke")
    assert env_of(store)["exit_code"] == 3
    assert json.loads((store.folder / "results.json").read_text())["exit_code"] == 3
