"""results.json is the report."""

from __future__ import annotations

import json

import jsonschema
import msgspec
import pytest

from sample_run import HOSTILE, infested, known, partly, sample
from think_reports.json_out import render
from think_reports.model import RunReport
from think_reports.schema import schema


def test_what_is_written_can_be_read_back() -> None:
    assert msgspec.json.decode(render(sample()), type=RunReport) == sample()


def test_readers_find_what_they_look_for() -> None:
    results = json.loads(render(sample()))
    assert (results["schema"], results["seed"], results["exit_code"]) == (1, 7, 1)
    failed = [v for c in results["cases"] for v in c["verdicts"] if v["state"] == "failed"]
    assert [v["requirement"] for v in failed] == ["A-1"]
    assert len(failed[0]["frames"]) == 2


def test_a_known_failure_carries_its_entry_and_satisfies_the_published_schema() -> None:
    results = json.loads(render(known()))
    (verdict,) = results["cases"][0]["verdicts"]
    assert verdict["baseline"] == {
        "id": "A-1",
        "case": "stop",
        "reason": "decided so",
        "link": "https://example.org/1",
        "expires": "2099-01-02",
    }
    jsonschema.validate(results, json.loads(schema()))
    assert msgspec.json.decode(render(known()), type=RunReport) == known()


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_content_satisfies_the_published_schema(kind: str) -> None:
    jsonschema.validate(json.loads(render(infested(HOSTILE[kind]))), json.loads(schema()))


def test_the_account_of_a_run_is_for_machines_too() -> None:
    results = json.loads(render(partly()))
    assert results["accounting"] == {
        "total": 9,
        "selected": 4,
        "ran": 2,
        "not_run": {"needs: leg routing": ["far"], "the time was up": ["late"]},
    }
    assert [r["scored"] for r in results["requirements"]] == [True, False]
    jsonschema.validate(results, json.loads(schema()))
