"""junit.xml, as a CI server reads it."""

from __future__ import annotations

from xml.etree import ElementTree as xml

import pytest

from sample_run import CATALOGUE, ENVIRONMENT, HOSTILE, history, infested, known, partly, sample
from think_conformance.checkers.base import WORST_FIRST, State, Verdict
from think_reports.junit import render
from think_reports.model import build


def test_suites_are_scenarios_and_tests_are_requirements_of_cases() -> None:
    root = xml.fromstring(render(sample()))
    found = {s.get("name"): [t.get("name") for t in s.iter("testcase")] for s in root.iter("testsuite")}
    assert found == {
        "far": ["C-1 far"],
        "kill": ["A-1 kill", "B-1 kill"],
        "stop": ["A-1 stop", "A-2 stop", "B-1 stop"],
    }
    assert root.find(".//testcase[@name='B-1 stop']").get("classname") == "resume.stop"  # type: ignore[union-attr]
    assert root.find(".//property[@name='seed']").get("value") == "7"  # type: ignore[union-attr]


def test_counts_add_up() -> None:
    root = xml.fromstring(render(sample()))
    counts = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "6", "failures": "1", "errors": "1", "skipped": "1"}
    stop = root.find("testsuite[@name='stop']")
    assert stop is not None
    assert (stop.get("tests"), stop.get("failures"), stop.get("errors"), stop.get("time")) == (
        "3",
        "1",
        "0",
        "1.500",
    )


def test_a_failure_names_requirement_sentence_reason_and_frames() -> None:
    failure = xml.fromstring(render(sample())).find(".//failure")
    assert failure is not None
    assert failure.get("message") == "told completed, then aborted"
    lines = str(failure.text).splitlines()
    assert lines[0] == "A-1 MUST: What A-1 says holds."
    assert [line.partition(" ")[0] for line in lines[1:]] == ["#2", "#4"]


EXPECTED: dict[State, str | None] = {
    "passed": None,
    "warned": "system-out",
    "not-applicable": "skipped",
    "expected-fail": "skipped",
    "inconclusive": "error",
    "failed": "failure",
    "not-testable": "failure",
    "flaky": "failure",
    "unexpected-pass": "failure",
}


@pytest.mark.parametrize("state", WORST_FIRST)
def test_each_state_has_its_element(state: State) -> None:
    report = build(ENVIRONMENT, [Verdict("A-1", "stop", state, "why")], [], CATALOGUE)
    (test,) = xml.fromstring(render(report)).iter("testcase")
    assert next((child.tag for child in test), None) == EXPECTED[state]


def test_a_known_failure_is_skipped_with_reason_and_link() -> None:
    skipped = xml.fromstring(render(known())).find(".//testcase/skipped")
    assert skipped is not None
    assert skipped.get("type") == "expected-fail"
    assert skipped.get("message") == (
        "known until 2099-01-02: decided so (https://example.org/1); told completed, then aborted"
    )


def test_a_case_without_a_verdict_is_an_error() -> None:
    report = build(ENVIRONMENT, [], [("stop", history("stop"))], CATALOGUE)
    root = xml.fromstring(render(report))
    assert (root.get("tests"), root.get("errors")) == ("1", "1")


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_content_is_valid_xml_and_stays_content(kind: str) -> None:
    text = render(infested(HOSTILE[kind]))
    root = xml.fromstring(text.encode())
    assert len(text) < 100_000
    assert {e.tag for e in root.iter()} <= {
        "testsuites",
        "testsuite",
        "properties",
        "property",
        "testcase",
        "failure",
        "error",
        "skipped",
        "system-out",
    }
    assert len(list(root.iter("testcase"))) == 4
    if kind == "script":
        assert HOSTILE[kind] in str(root.find(".//failure").get("message"))  # type: ignore[union-attr]


def test_what_does_not_score_fails_nothing() -> None:
    root = xml.fromstring(render(partly()))
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "0",
        "errors": "1",
        "skipped": "3",
    }
    skipped = root.find(".//testcase[@name='A-2 stop']/skipped")
    assert skipped is not None
    assert skipped.get("message") == "unscored; told too late"
    assert root.find(".//property[@name='seed']").get("value") == "several"  # type: ignore[union-attr]
