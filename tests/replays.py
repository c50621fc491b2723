"""Every saved plan of every failing case of every defect: it fails again with the defect, and passes without.

A command, not a test, since it takes minutes: `tox -e replays`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def kit(*args: str | Path) -> int:
    """The exit code of one command of the kit."""
    command = [sys.executable, "-m", "think_conformance", *map(str, args)]
    return subprocess.run(command, capture_output=True, check=False).returncode


def replays(folder: Path, defect: str) -> list[str]:
    """Plays one defect as `selftest` does and replays what failed; what went otherwise than it should. Where
    only a SHOULD is broken nothing fails."""
    kit("selftest", "--defect", defect, "--out", folder / defect)
    out = folder / defect / defect
    verdicts = json.loads((out / "verdicts.json").read_text())
    failed = sorted({v["case"] for v in verdicts if v["state"] == "failed"})
    red = {v["requirement"] for v in verdicts if v["state"] in ("failed", "warned")}
    wrong = [] if red else [f"{defect}: nothing turned red"]

    def both(case: str) -> list[str]:
        plan = out / "plan" / f"{case}.json"
        again = kit("replay", plan, "--out", folder / f"{defect}-{case}-again")
        clean = kit("replay", plan, "--clean", "--out", folder / f"{defect}-{case}-clean")
        print(f"{defect:26} {case:50} again {again}, clean {clean}", flush=True)
        return [] if (again, clean) == (1, 0) else [f"{defect}: {case}: again {again}, clean {clean}"]

    with ThreadPoolExecutor(2) as pool:
        return wrong + [line for lines in pool.map(both, failed) for line in lines]


def main() -> int:
    listed = subprocess.run(
        [sys.executable, "-m", "think_reference", "defects", "--format", "json"],
        capture_output=True,
        check=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        wrong = [line for d in json.loads(listed.stdout) for line in replays(Path(folder), d["name"])]
    print("\n".join(wrong) or "every plan failed again with its defect and passed without it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
