"""Figures against their limits; never part of the tests. `tox -e bench` prints them, exit 1 when one is over.

Start to ready of the reference (median of 9), the wall times of a whole run, of three of its profiles and of
the three first scenarios (medians of 3), and the agreement of repeated runs (`--repeat N`, 20 unless told
otherwise).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from think_conformance.shell.process import TargetProcess
from think_conformance.targets.contract import load_target

FIRST_THREE = (
    "resume.reset-during-output or recovery.kill-during-output-nobody-there or control.stop-during-output"
)


async def start_to_ready() -> float:
    """Median seconds from spawning the reference to its first HTTP answer."""
    took = []
    for _ in range(9):
        with tempfile.TemporaryDirectory() as folder:
            process = TargetProcess(
                load_target("reference"),
                data_dir=Path(folder) / "data",
                log_path=Path(folder) / "log",
                extra_env={"THINK_MODEL_URL": "http://127.0.0.1:9/v1"},
                record=lambda *_: None,
            )
            began = time.perf_counter()
            await process.start()
            took.append(time.perf_counter() - began)
            await process.stop()
    return statistics.median(took)


def run(*args: str) -> dict[str, object]:
    """One run as a command: its results, with the wall time of the command as `wall_s`."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [
            sys.executable,
            "-m",
            "think_conformance",
            "run",
            "--seed",
            "7",
            "--out",
            str(out),
            *args,
        ]
        began = time.perf_counter()
        subprocess.run(command, capture_output=True, check=False)
        wall_s = time.perf_counter() - began
        return {**json.loads((out / "results.json").read_text()), "wall_s": wall_s}


def wall(*args: str) -> float:
    """Median wall seconds of three runs."""
    return statistics.median(float(run(*args)["wall_s"]) for _ in range(3))  # type: ignore[arg-type]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20, help="how many runs must agree")
    repeat = parser.parse_args().repeat
    figures = [
        ("reference, start to ready (s)", asyncio.run(start_to_ready()), 0.6),
        ("the three first scenarios (s)", wall("-k", FIRST_THREE), 5.0),
        ("core, resume and control (s)", wall("-k", "core or resume or control"), 45.0),
        ("a whole run (s)", wall(), 60.0),
    ]
    for what, value, limit in figures:
        print(f"{what:34} {value:6.2f}   limit {limit:g}", flush=True)
    repeated = run("--repeat", str(repeat))
    differ = [r["id"] for r in repeated["requirements"] if r["state"] == "flaky"]  # type: ignore[attr-defined]
    code = repeated["exit_code"]
    print(
        f"{repeat} runs in a row: {repeated['wall_s']:.0f} s, exit {code}, requirements that differ: {differ}"
    )
    return 1 if code or differ or any(value > limit for _, value, limit in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
