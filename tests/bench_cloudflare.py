"""Figures of Cloudflare's Think as a target, against their limits; exit 1 when one is over.
`tox -e bench-cloudflare` prints them.

From empty caches to the first verdict (needs a network), one run of its core and resume scenarios, and
five repeats of them that agree case by case with the baseline.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGET = "cloudflare-think@0.23.0"
BASELINE = Path(__file__).parents[1] / (
    "conformance/think_conformance/targets/cloudflare_think/baselines/0.23.0.toml"
)
CORE_AND_RESUME = "core or resume"
REPEATS = 5


def run(*args: str, **environment: str) -> tuple[float, int]:
    """Wall seconds and exit code of one run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "think_conformance", "run", "--target", TARGET, "--seed", "7"]
        began = time.perf_counter()
        done = subprocess.run(
            [*command, "--baseline", str(BASELINE), "--out", f"{folder}/out", *args],
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        return time.perf_counter() - began, done.returncode


def cold() -> tuple[float, int]:
    """One case, with nothing in any cache."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {"THINK_CONFORMANCE_CACHE": f"{folder}/kit", "npm_config_cache": f"{folder}/npm"}
        return run("-k", "core.two-turns-two-tabs", **caches)


def main() -> int:
    figures = [
        ("empty caches to first verdict (s)", cold(), 180.0),
        ("core and resume (s)", run("-k", CORE_AND_RESUME), 90.0),
        (
            f"{REPEATS} repeats of them (s)",
            run("-k", CORE_AND_RESUME, "--repeat", str(REPEATS)),
            90.0 * REPEATS,
        ),
    ]
    for what, (took_s, code), limit in figures:
        print(f"{what:34} {took_s:6.1f}   limit {limit:g}   exit {code}", flush=True)
    return 1 if any(code or took_s > limit for _, (took_s, code), limit in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
