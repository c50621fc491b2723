"""`think-conformance replay`: what failed fails again, and passes where nothing is wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from commands import kit, last_line

CASE = "resume.probe-when-idle"
DEFECT = "two-terminals"


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of a case that failed."""
    out = tmp_path_factory.mktemp("failed") / "out"
    done = kit("run", "-k", CASE, "--defect", DEFECT, "--seed", "7", "--out", out)
    assert done.returncode == 1, done.stdout + done.stderr
    return out


def plan_of(run: Path) -> Path:
    return run / "plan" / f"{CASE}.json"


def replay(plan: Path, out: Path, *args: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    done = kit("replay", plan, "--out", out / "again", *args)
    results = out / "again" / "results.json"
    return done, json.loads(results.read_text()) if results.exists() else {}


def red(results: dict[str, Any]) -> set[str]:
    return {r["id"] for r in results["requirements"] if r["state"] in ("failed", "warned")}


def test_what_failed_fails_again_under_the_same_ids(failed: Path, tmp_path: Path) -> None:
    done, again = replay(plan_of(failed), tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == "seed 7"
    assert last_line(done.stdout).startswith("failed: ")
    assert red(again) == red(json.loads((failed / "results.json").read_text())) != set()
    assert [(c["case"], c["scenario"]) for c in again["cases"]] == [(CASE, CASE)]
    assert json.loads(plan_of(tmp_path / "again").read_text()) == json.loads(plan_of(failed).read_text())


def test_it_passes_without_the_defect(failed: Path, tmp_path: Path) -> None:
    done, again = replay(plan_of(failed), tmp_path, "--clean")
    assert done.returncode == 0, done.stdout + done.stderr
    assert again["target"]["defect"] is None


def test_another_defect_takes_the_place_of_the_plans(failed: Path, tmp_path: Path) -> None:
    done, again = replay(plan_of(failed), tmp_path, "--defect", "no-terminal-after-crash")
    assert done.returncode == 0, done.stdout + done.stderr
    assert again["target"]["defect"] == "no-terminal-after-crash"


def test_a_plan_is_played_against_the_target_of_its_run(tmp_path: Path) -> None:
    target = tmp_path / "mine.toml"
    target.write_text(
        '[target]\nname = "mine"\nagent = "conformance-agent"\nclaims = ["core", "resume"]\nheartbeat_s = 2\n'
        f'start = ["{{python}}", "-m", "think_reference", "serve", "--defect", "{DEFECT}"]\n'
    )
    assert kit("run", "-k", CASE, "--target", target, "--out", tmp_path / "first").returncode == 1
    done, again = replay(plan_of(tmp_path / "first"), tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert again["target"]["name"] == "mine"
    other, elsewhere = replay(plan_of(tmp_path / "first"), tmp_path / "other", "--target", "reference")
    assert other.returncode == 0, other.stdout + other.stderr
    assert elsewhere["target"]["name"] == "reference"


def test_a_plan_that_left_its_run_goes_to_the_reference(failed: Path, tmp_path: Path) -> None:
    lonely = Path(shutil.copy(plan_of(failed), tmp_path / "lonely.json"))
    done, again = replay(lonely, tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert again["target"]["name"] == "reference"


BY_HAND = """
version: 1
model:
  t1: [[{text: "w1 "}, {text: "w2 "}, done]]
operations:
  - {client: a, do: connect}
  - {client: a, do: send, turn: t1, text: "Hello."}
  - do: wait
    after: {seen: {source: client, kind: frame-in, json: {type: cf_agent_use_chat_response, done: true}}}
"""


def test_a_plan_written_by_hand_is_played_and_judged(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(BY_HAND)
    done, results = replay(path, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"TURN-150", "WIRE-85"} <= {r["id"] for r in results["requirements"]}
    assert [c["case"] for c in results["cases"]] == ["plan"]


WRONG = {
    "not a plan": ("version: 1\noperatons: []\n", (), "mine.yaml:2:1: "),
    "not yaml": ("version: [1\n", (), "mine.yaml:2:1: "),
    "a step that is none": (BY_HAND.replace("do: wait", "do: wiat"), (), "mine.yaml:8:9: "),
    "a way out of the folder": ("version: 1\nabout: {scenario: ../x}\n", (), "mine.yaml:2:19: "),
    "a requirement that is none": (
        "version: 1\nabout: {exercises: [WIRE-1044]}\n",
        (),
        "did you mean `WIRE-104`?",
    ),
    "a defect that is none": (
        "version: 1\ntarget: {defect: two-terminal}\n",
        (),
        "did you mean `two-terminals`?",
    ),
    "a defect and none": (BY_HAND, ("--clean", "--defect", DEFECT), "exclude each other"),
    "a fault that is none": (
        BY_HAND.replace("{seen: {source", "{fired: cut, seen: {source"),
        (),
        "mine.yaml:9:20: `cut` is no fault",
    ),
    "a turn without a script": (
        BY_HAND.replace("turn: t1", "turn: t2"),
        (),
        "mine.yaml:7:33: `t2` is no turn",
    ),
    "a count from 0": (
        BY_HAND.replace("kind: frame-in", "kind: frame-in, nth: 0"),
        (),
        "`nth` counts from 1",
    ),
    "a target that is none": (BY_HAND, ("--target", "refernce"), "did you mean `reference`?"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_played_is_one_line(what: str, tmp_path: Path) -> None:
    text, args, says = WRONG[what]
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    done, results = replay(path, tmp_path, *args)
    assert done.returncode == 4, done.stdout + done.stderr
    assert says in last_line(done.stderr)
    assert len(done.stderr.strip().splitlines()) == 1
    assert results == {}


def test_a_plan_out_of_reach_says_what_it_needs(tmp_path: Path) -> None:
    path, target = tmp_path / "mine.yaml", tmp_path / "mine.toml"
    cut = "{id: cut, leg: model, when: {direction: up}, do: [{cut: reset}]}"
    path.write_text(f"{BY_HAND}faults:\n  - {cut}\n")
    target.write_text('[target]\nname = "mine"\nagent = "a"\nstart = ["x"]\n')
    done, results = replay(path, tmp_path, "--target", str(target))
    assert (done.returncode, results["exit_code"]) == (2, 2), done.stdout + done.stderr
    assert "not-applicable  plan (needs: leg model)" in done.stderr


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    done, _ = replay(tmp_path / "none.yaml", tmp_path)
    assert done.returncode == 4
    assert "none.yaml" in last_line(done.stderr)


def test_the_run_says_how_to_play_a_failure_again(tmp_path: Path) -> None:
    done = kit("run", "-k", CASE, "--defect", DEFECT, "--out", tmp_path / "out")
    line = last_line(done.stderr).split()
    assert line == ["think-conformance", "replay", str(plan_of(tmp_path / "out"))]
