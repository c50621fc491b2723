"""Every deliberate defect of the reference turns its own requirements red, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from commands import kit

DEFECTS = json.loads(
    subprocess.run(
        [sys.executable, "-m", "think_reference", "defects", "--format", "json"],
        capture_output=True,
        check=True,
    ).stdout
)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda d: d["name"])
def test_a_defect_turns_its_ids_red_and_no_others(defect: dict[str, object], tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = kit("run", "--target", "reference", "--defect", str(defect["name"]), "--seed", "7", "--out", out)
    assert done.returncode == 1, done.stdout + done.stderr
    results = json.loads((out / "results.json").read_text())
    red = {r["id"] for r in results["requirements"] if r["state"] in ("failed", "warned")}
    assert red == set(defect["breaks"])  # type: ignore[call-overload]


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda d: d["name"])
def test_the_summary_names_requirement_sentence_and_frames(defect: dict[str, object], tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = kit("run", "--target", "reference", "--defect", str(defect["name"]), "--seed", "7", "--out", out)
    results = json.loads((out / "results.json").read_text())
    for row in results["requirements"]:
        if row["state"] == "failed":
            assert row["id"] in done.stdout
            assert row["sentence"] in " ".join(done.stdout.split())
    frames = [
        f for c in results["cases"] for v in c["verdicts"] if v["state"] == "failed" for f in v["frames"]
    ]
    assert frames
