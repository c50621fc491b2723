"""From what a user asks to what a run does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from think_conformance.checkers.base import Verdict
from think_conformance.errors import UsageError
from think_conformance.shell.order import Order, again, environment, options, planned
from think_conformance.shell.store import Store

TARGET = '[target]\nname = "mine"\nagent = "a"\nstart = ["x"]\n'


def test_defaults_mean_everything_on_the_reference() -> None:
    ordered = options(Order())
    assert ordered.target.name == "reference"
    assert len(ordered.scenarios) > 10
    assert ordered.jobs >= 1
    assert ordered.defect is None


def test_a_seed_is_kept_or_drawn() -> None:
    assert options(Order(seed=7)).seed == 7
    assert options(Order()).seed != options(Order()).seed


def test_an_expression_and_a_profile_select() -> None:
    ordered = options(Order(profiles=("control",), expression="control.stop-during-output"))
    assert [s.id for s in ordered.scenarios] == ["control.stop-during-output"]
    assert ordered.profiles == {"control"}


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (Order(defect="two-terminal"), "did you mean `two-terminals`"),
        (Order(profiles=("resum",)), "did you mean `resume`"),
        (
            Order(profiles=("control",), expression="control and not control", ids=("TURN-150",)),
            r"no scenario is selected: -k leaves none of \d+; loosen --profile or --id or -k",
        ),
        (Order(shard="200/200"), "no scenario is selected: --shard leaves none of "),
        (Order(shard="3/2"), "--shard is 3/2: give I/N"),
        (Order(ids=("WIRE-1044",)), "did you mean `WIRE-104`"),
        (Order(revision=9), "unknown revision `9`"),
        (Order(time_limit_s=0), "--time-limit is 0"),
        (Order(time_limit_s=float("nan")), "--time-limit is nan"),
        (Order(target="refernce"), "did you mean `reference`"),
        (Order(target=""), "no target is called ``"),
        (Order(expression=""), "`-k ` cannot be read"),
        (Order(target="ws://"), "no target URL: give ws://HOST:PORT"),
        (Order(timeout_s=float("nan")), "--timeout is nan"),
        (Order(timeout_s=float("inf")), "--timeout is inf"),
        (Order(timeout_s=0), "--timeout is 0"),
        (Order(timeout_s=-1), "--timeout is -1"),
        (Order(seed=2**64), "--seed is "),
        (Order(expression="not " * 10_000 + "control"), "nested more than"),
    ],
)
def test_what_does_not_exist_is_refused(order: Order, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        options(order)


def test_what_is_asked_for_narrows_step_by_step() -> None:
    everything = options(Order())
    assert everything.total == len(everything.scenarios)
    replayed = options(Order(ids=("WIRE-104",)))
    assert all("WIRE-104" in s.exercises for s in replayed.scenarios)
    assert replayed.total == everything.total > len(replayed.scenarios) > 1
    shares = [options(Order(ids=("WIRE-104",), shard=f"{i}/2")).scenarios for i in (1, 2)]
    assert sorted(s.id for one in shares for s in one) == sorted(s.id for s in replayed.scenarios)


def run_dir(folder: Path, **env: object) -> Path:
    store = Store(folder / "run")
    store.save_env({"scenarios": ["resume.page-refresh", "resume.probe-when-idle"], **env})
    store.save_verdicts(
        [
            Verdict("WIRE-104", "resume.page-refresh", "failed"),
            Verdict("WIRE-102", "resume.probe-when-idle", "passed"),
        ]
    )
    return store.folder


def test_what_failed_in_a_run_is_played_again(tmp_path: Path) -> None:
    folder = run_dir(tmp_path)
    assert [s.id for s in options(Order(rerun_failed=folder)).scenarios] == ["resume.page-refresh"]
    with pytest.raises(UsageError, match=r"no scenario is selected: --rerun-failed leaves none of \d+"):
        options(Order(rerun_failed=folder, expression="core"))


def test_a_run_is_played_again_on_its_target_with_its_defect_and_baseline(tmp_path: Path) -> None:
    target = {"name": "mine", "spec": "/t/mine.toml", "defect": "d"}
    folder = run_dir(tmp_path, target=target, baseline="/t/b.toml", revision=1)
    order = again(Order(rerun_failed=folder, jobs=3), folder)
    assert (order.target, order.defect, order.baseline) == ("/t/mine.toml", "d", Path("/t/b.toml"))
    assert (order.revision, order.jobs) == (1, 3)
    assert again(Order(defect="other", baseline=Path("c")), folder).defect == "other"


def test_a_run_that_cannot_be_played_again_says_why(tmp_path: Path) -> None:
    folder = run_dir(tmp_path, scenarios=["resume.page"])
    with pytest.raises(UsageError, match="does not say which target was run: name it with --target"):
        again(Order(), folder)
    with pytest.raises(UsageError, match=r"unknown scenario `resume\.page`; did you mean `resume"):
        options(Order(rerun_failed=folder))


def test_a_defect_of_a_target_that_has_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(TARGET)
    with pytest.raises(UsageError, match="no deliberate defects"):
        options(Order(target=str(tmp_path / "t.toml"), defect="two-terminals"))


def test_the_environment_says_how_the_target_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.toml").write_text(TARGET)
    monkeypatch.chdir(tmp_path)
    order = Order(target="t.toml", seed=7)
    env = environment(order, options(order))
    assert env["target"] == {"name": "mine", "spec": str(tmp_path / "t.toml"), "defect": None}
    assert (env["seed"], env["profiles"]) == (7, [])
    named = Order(defect="two-terminals")
    assert environment(named, options(named))["target"] == {
        "name": "reference",
        "spec": "reference",
        "defect": "two-terminals",
    }


BASELINE = """
version = 1
target = "mine"
[[expected]]
id = "WIRE-104"
reason = "known"
link = "an issue"
expires = 2099-01-01
"""


def test_a_baseline_is_read_and_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.toml").write_text(TARGET)
    (tmp_path / "b.toml").write_text(BASELINE)
    monkeypatch.chdir(tmp_path)
    order = Order(target="t.toml", baseline=Path("b.toml"))
    ordered = options(order)
    assert [entry.id for entry in ordered.baseline.entries] == ["WIRE-104"]
    assert not ordered.baseline.expired(ordered.baseline.entries[0])
    env = environment(order, ordered)
    assert env["baseline"] == str(tmp_path / "b.toml")
    assert env["scenarios"] == [scenario.id for scenario in ordered.scenarios]
    assert environment(Order(), options(Order()))["baseline"] is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, r"baseline .*b\.toml cannot be read: No such file or directory"),
        (b"\xff", r"baseline .*b\.toml cannot be read: 'utf-8' codec"),
        (b"version = 3", r"b\.toml: `version` is not 1"),
        (BASELINE.encode(), r"b\.toml: the baseline is of target `mine`, the run of `reference`"),
    ],
)
def test_a_baseline_that_cannot_be_used_is_one_line(content: bytes | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "b.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=says) as failure:
        options(Order(baseline=path))
    assert "\n" not in str(failure.value)


def plan_file(folder: Path, text: str) -> Path:
    path = folder / "plan.yaml"
    path.write_text(text)
    return path


def test_a_plan_is_a_scenario_of_its_own(tmp_path: Path) -> None:
    about = {"scenario": "resume.mine", "title": "Mine", "exercises": ["WIRE-104"]}
    text = json.dumps({"version": 1, "seed": 5, "about": about, "target": {"defect": "two-terminals"}})
    scenario = planned(plan_file(tmp_path, text))
    assert (scenario.id, scenario.title, scenario.exercises) == ("resume.mine", "Mine", ("WIRE-104",))
    assert (scenario.plan.seed, scenario.plan.target.defect) == (5, "two-terminals")


def test_a_plan_written_by_hand_needs_no_more_than_its_version(tmp_path: Path) -> None:
    scenario = planned(plan_file(tmp_path, "version: 1\n"))
    assert (scenario.id, scenario.exercises) == ("plan", ())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("version: 1\noperations:\n  - {do: conect}\n", r"plan.yaml:3:10: Invalid enum value 'conect'"),
        ("version: 1\nmodl: {}\n", r"plan.yaml:2:1: .*unknown field `modl`"),
        ("version: 1\nabout: {scenario: ../../x}\n", r"plan.yaml:2:19: Expected `str` matching"),
        ("version: [1\n", r"plan.yaml:2:1: "),
        ("version: 1\noperations:\n  - {do: wait, after: {fired: x}}\n", "plan.yaml:3:31: `x` is no fault"),
        ("version: 1\noperations:\n  - {do: send, client: a}\n", "plan.yaml:3:5: `send` needs `turn`"),
        ("version: 1\nabout: {exercises: [WIRE-1044]}\n", "did you mean `WIRE-104`"),
        (
            f"version: 1\nmodel: {{a: [[{{text: {'x' * 500_000}}}]]}}\n",
            "plan.yaml is too large: more than 500000",
        ),
    ],
)
def test_a_plan_that_cannot_be_played_says_where(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says) as failure:
        planned(plan_file(tmp_path, text))
    assert "\n" not in str(failure.value)


def test_a_plan_that_is_no_text_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"plan\.yaml cannot be read"):
        planned(path)
