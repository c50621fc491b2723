"""The published differences are those that were decided."""

from __future__ import annotations

from pathlib import Path

from think_conformance.differences.decisions import load
from think_conformance.differences.table import page
from think_conformance.scenarios.base import load as scenarios

ROOT = Path(__file__).parents[2]
FILE = ROOT / "conformance/think_conformance/targets/cloudflare_think/differences/0.23.0.toml"


def test_the_page_is_what_the_decisions_make() -> None:
    decided = load(FILE.read_text(), FILE.name)
    assert (ROOT / "docs/cloudflare-think-differences.md").read_text() == page(decided)


def test_every_decision_for_a_case_names_one_that_exists() -> None:
    for decision in load(FILE.read_text(), FILE.name).decision:
        fits = [case for case in scenarios() if _fits(decision.case, case)]
        assert fits, decision.case


def _fits(pattern: str, case: str) -> bool:
    head, star, _ = pattern.partition("*")
    return case.startswith(head) if star else case == pattern
