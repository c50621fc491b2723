"""The known deviations of Cloudflare's Think: each listed, told, and with a plan that shows it alone."""

from __future__ import annotations

from datetime import date
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from think_conformance.baseline import Baseline, load
from think_conformance.plan import Plan
from think_conformance.scenarios.base import load as scenarios
from think_conformance.targets.cloudflare_think.recipe import versions

ROOT = Path(__file__).parents[2]
BASELINES = files("think_conformance.targets.cloudflare_think").joinpath("baselines")


@pytest.fixture(params=versions())
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def baseline(version: str) -> Baseline:
    return load(BASELINES.joinpath(f"{version}.toml").read_text(), version, date.min)


def test_each_deviation_names_a_case_and_what_it_is_seen_by(version: str) -> None:
    assert baseline(version).target == f"cloudflare-think@{version}"
    assert all(entry.case and entry.evidence for entry in baseline(version).entries)


def test_each_deviation_is_told_on_the_page(version: str) -> None:
    page = (ROOT / "docs" / f"cloudflare-think-{version}.md").read_text()
    headings = {line[4:].lower().replace(" ", "-") for line in page.splitlines() if line.startswith("### ")}
    for entry in baseline(version).entries:
        file, _, anchor = entry.link.partition("#")
        assert file == f"docs/cloudflare-think-{version}.md"
        assert anchor in headings
        told = f"{entry.id}{' (sometimes)' * entry.sometimes}"
        assert any(line.startswith(f"| {entry.case} |") and told in line for line in page.splitlines())


def test_each_deviation_has_the_plan_of_its_scenario(version: str) -> None:
    folder = BASELINES.joinpath(version)
    cases = {str(entry.case) for entry in baseline(version).entries}
    assert {entry.name for entry in folder.iterdir()} == {f"{case}.json" for case in cases}
    for case in cases:
        saved = msgspec.json.decode(folder.joinpath(f"{case}.json").read_bytes(), type=Plan)
        scenario = scenarios()[case]
        plain = msgspec.structs.replace(
            saved, seed=scenario.plan.seed, about=scenario.plan.about, target=scenario.plan.target
        )
        assert plain == scenario.plan
