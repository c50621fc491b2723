"""Every deliberate defect of the reference is proven: its own requirements turn red, and no other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from commands import kit, last_line

DEFECTS = json.loads(
    subprocess.run(
        [sys.executable, "-m", "think_reference", "defects", "--format", "json"],
        capture_output=True,
        check=True,
    ).stdout
)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda d: d["name"])
def test_a_defect_turns_its_ids_red_and_no_others(defect: dict[str, list[str]], tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = kit("selftest", "--defect", str(defect["name"]), "--jobs", "2", "--out", out, timeout_s=300)
    assert done.returncode == 0, done.stdout + done.stderr

    results = json.loads((out / str(defect["name"]) / "results.json").read_text())
    red = [v for case in results["cases"] for v in case["verdicts"] if v["state"] in ("failed", "warned")]
    assert {v["requirement"] for v in red} == set(defect["breaks"])
    assert all(v["frames"] for v in red), "every red shows its decisive frames"


def test_a_saved_plan_fails_again_with_its_defect_and_passes_without(tmp_path: Path) -> None:
    out = tmp_path / "out"
    kit("selftest", "--defect", "two-terminals", "--out", out, timeout_s=120)
    results = json.loads((out / "two-terminals" / "results.json").read_text())
    failed = next(case["case"] for case in results["cases"] if case["state"] == "failed")
    plan = out / "two-terminals" / "plan" / f"{failed}.json"
    again = kit("replay", plan, "--out", tmp_path / "again")
    assert again.returncode == 1, again.stdout + again.stderr
    clean = kit("replay", plan, "--clean", "--out", tmp_path / "clean")
    assert clean.returncode == 0, clean.stdout + clean.stderr
    assert last_line(clean.stdout).startswith("passed")
