"""The run directory, written and found again."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from think_conformance.accounting import Accounting
from think_conformance.checkers.base import Verdict
from think_conformance.errors import UsageError
from think_conformance.plan import Plan
from think_conformance.shell.order import planned
from think_conformance.shell.store import Asked, Called, Store, asked_of, fresh_folder, target_of, unsettled


def test_what_is_saved_stands_where_readers_look(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "run")
    store.save_plan("a.case", msgspec.convert({"version": 1, "seed": 3}, Plan))
    store.save_env({"seed": 3})
    store.save_verdicts([Verdict("A-1", "a.case", "passed")])
    assert json.loads(store.plan("a.case").read_text())["seed"] == 3
    assert store.plan("a.case") == tmp_path / "new" / "run" / "plan" / "a.case.json"
    assert store.history("a.case") == tmp_path / "new" / "run" / "cases" / "a.case" / "history.jsonl"
    assert json.loads((store.folder / "env.json").read_text()) == {"seed": 3}
    assert json.loads((store.folder / "verdicts.json").read_text())[0]["state"] == "passed"


def test_only_the_owner_can_read(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.save_env({})
    assert (store.folder / "env.json").stat().st_mode & 0o077 == 0


def test_a_saved_file_is_replaced_whole(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.save_env({"a": "x" * 1000})
    store.save_env({"a": 1})
    assert json.loads((store.folder / "env.json").read_text()) == {"a": 1}
    assert sorted(p.name for p in store.folder.iterdir()) == ["cases", "env.json", "plan"]


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("")
    with pytest.raises(UsageError, match="in use"):
        Store(tmp_path)


def test_fresh_folders_differ() -> None:
    assert fresh_folder() != fresh_folder()
    assert fresh_folder().parent == Path("think-runs")


def test_the_way_from_a_plan_to_the_target_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "run")
    store.save_env({"target": {"name": "mine", "spec": "/t/mine.toml"}, "seed": 1})
    assert target_of(store.plan("a.case")) == "/t/mine.toml"
    monkeypatch.chdir(store.folder / "plan")
    assert target_of(Path("a.case.json")) == "/t/mine.toml"


def test_a_plan_of_no_run_has_no_target(tmp_path: Path) -> None:
    (tmp_path / "env.json").write_text('{"target": {"spec": "other"}}')
    assert target_of(tmp_path / "mine" / "plan.yaml") is None
    assert target_of(tmp_path / "empty" / "plan" / "x.json") is None


def test_half_a_surrogate_is_written_and_read_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.save_verdicts([Verdict("A-1", "a.case", "failed", "told \ud83d")])
    assert json.loads((store.folder / "verdicts.json").read_text())[0]["reason"] == "told \ud83d"
    steps = [[[{"text": "\ud83d"}, {"text": "\ude00"}]]]
    plan = msgspec.convert({"version": 1, "model": {"t1": steps[0]}}, Plan)
    store.save_plan("a.case", plan)
    assert planned(store.plan("a.case")).plan.model == plan.model


def test_what_was_asked_of_a_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    assert asked_of(store.folder) == Asked()
    store.save_env({"seed": 1})
    assert asked_of(store.folder) == Asked()
    store.save_env({"profiles": ["core"], "scenarios": ["a.case"], "target": {"name": "mine", "spec": "x"}})
    assert asked_of(store.folder) == Asked(("core",), ("a.case",), Called("mine", "x"))
    store.save_env({"profiles": 7})
    with pytest.raises(UsageError, match=r"env\.json is not what a run writes"):
        asked_of(store.folder)


@pytest.mark.parametrize("text", ["{", '{"target": {"name": "x"}}', "[]"])
def test_a_broken_run_is_a_usage_error(text: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    (store.folder / "env.json").write_text(text)
    with pytest.raises(UsageError, match="; name the target with --target"):
        target_of(store.plan("a.case"))


def test_what_went_wrong_in_a_run_or_did_not_run_is_unsettled(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    states = ("passed", "warned", "expected-fail", "not-applicable", "failed", "flaky", "inconclusive")
    store.save_env({"scenarios": [*states, "never.begun", "again"]})
    store.save_verdicts(
        [
            *(Verdict("A-1", state, state) for state in states),
            Verdict("A-2", "failed", "passed"),
            Verdict("A-1", "again", "passed"),
            Verdict("A-1", "again@2", "not-testable"),
        ]
    )
    assert unsettled(store.folder)[1] == ["failed", "flaky", "inconclusive", "never.begun", "again"]


def test_a_run_without_any_verdict_is_unsettled_as_a_whole(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.save_env({"scenarios": ["a", "b"]})
    assert unsettled(store.folder)[1] == ["a", "b"]


def test_what_is_no_run_says_nothing_of_what_went_wrong(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no env\.json of a run"):
        unsettled(tmp_path)
    store = Store(tmp_path / "run")
    store.save_env({"scenarios": ["a"]})
    (store.folder / "verdicts.json").write_text("[")
    with pytest.raises(UsageError, match="is not what a run writes"):
        unsettled(store.folder)


def test_a_folder_that_takes_no_more_is_told_in_one_line(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    (store.folder / "env.json").mkdir()
    with pytest.raises(UsageError, match=r"env\.json cannot be written: Is a directory"):
        store.save_env({})


def test_the_account_stands_where_readers_look(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.save_accounting(Accounting(total=3, selected=2, ran=1, not_run={"why": ["a"]}))
    found = json.loads((store.folder / "accounting.json").read_text())
    assert found == {"total": 3, "selected": 2, "ran": 1, "not_run": {"why": ["a"]}}
