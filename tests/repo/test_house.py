"""The rules of the house that no other tool holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from think_conformance.catalogue.model import requirements, unproven
from think_conformance.checkers import base
from think_conformance.scenarios.base import load

ROOT = Path(__file__).parents[2]
UNPROVEN_AT_MOST = 1
"""Lower it with every defect that proves a requirement."""
PACKAGES = {
    "think_proxy": "proxy",
    "think_conformance": "conformance",
    "think_reference": "reference_impl",
    "think_reports": "reports",
}


def defects() -> list[dict[str, object]]:
    command = [sys.executable, "-m", "think_reference", "defects", "--format", "json"]
    found: list[dict[str, object]] = json.loads(
        subprocess.run(command, capture_output=True, check=True).stdout
    )
    return found


def test_every_requirement_has_a_check_and_a_scenario() -> None:
    rows = set(requirements())
    assert set(base.load()) == rows
    exercised = {i for s in load().values() for i in s.exercises}
    assert exercised == rows


def test_every_requirement_is_proven_by_a_defect_or_stands_on_the_unproven_list() -> None:
    broken = {str(i) for d in defects() for i in d["breaks"]}  # type: ignore[attr-defined]
    rows = set(requirements())
    assert broken <= rows
    assert rows - broken == set(unproven())


def test_the_unproven_list_only_shrinks() -> None:
    assert len(unproven()) <= UNPROVEN_AT_MOST


def test_unit_tests_mirror_the_packages() -> None:
    for package, folder in PACKAGES.items():
        for test in (ROOT / "tests" / "unit" / package).rglob("test_*.py"):
            inside = test.relative_to(ROOT / "tests" / "unit" / package)
            module = ROOT / folder / package / inside.with_name(inside.name.removeprefix("test_"))
            is_package = module.with_suffix("").is_dir()
            assert module.exists() or is_package, f"{test.relative_to(ROOT)} mirrors no module"


def test_modules_open_with_what_they_own() -> None:
    for package, folder in PACKAGES.items():
        for module in (ROOT / folder / package).rglob("*.py"):
            text = module.read_text()
            assert not text or text.startswith('"""'), f"{module.relative_to(ROOT)} has no opening docstring"


def test_a_whole_run_kills_and_restarts_the_target_at_least_fifteen_times() -> None:
    killing = [f for s in load().values() for f in s.plan.faults if any(a.process == "kill" for a in f.do)]
    assert len(killing) >= 15
    assert all([a.process for a in fault.do] == ["kill", "restart"] for fault in killing)
