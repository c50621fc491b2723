"""Figures, measured side by side; never a test. `tox -e bench` prints them.

Start to ready of the reference (median of 9), the wall time of one whole run, and the agreement of
repeated runs (`--repeat N`, 20 unless told otherwise).
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


async def start_to_ready() -> list[float]:
    """Seconds from spawning the reference to its first HTTP answer, nine times."""
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
    return took


def run(*args: str) -> tuple[float, dict[str, object]]:
    """One run as a command: seconds, results."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [
            sys.executable,
            "-m",
            "think_conformance.cli",
            "run",
            "--seed",
            "7",
            "--out",
            str(out),
            *args,
        ]
        began = time.perf_counter()
        subprocess.run(command, capture_output=True, check=False)
        took = time.perf_counter() - began
        return took, json.loads((out / "results.json").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    repeat = parser.parse_args().repeat
    ready = asyncio.run(start_to_ready())
    print(f"reference, start to ready: median {statistics.median(ready):.2f} s, worst {max(ready):.2f} s")
    walls = [run() for _ in range(3)]
    median = statistics.median(wall for wall, _ in walls)
    print(f"one whole run: median {median:.1f} s, exit {walls[0][1]['exit_code']}")
    took, results = run("--repeat", str(repeat))
    flaky = [r for r in results["requirements"] if r["state"] == "flaky"]  # type: ignore[attr-defined]
    print(
        f"{repeat} repeats: {took:.1f} s, exit {results['exit_code']}, requirements that differ: {len(flaky)}"
    )


if __name__ == "__main__":
    main()
