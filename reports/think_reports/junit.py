"""`junit.xml`, for CI: a test suite per scenario, a test case per case and requirement.

A case that came to no verdict is an error, so that a run which was cut short is never green.
"""

from __future__ import annotations

from collections import defaultdict
from xml.etree import ElementTree as xml

from think_conformance.checkers.base import State
from think_conformance.history.plain import plain
from think_reports.model import CaseRow, RequirementRow, RunReport, VerdictRow

ELEMENT: dict[State, str] = {
    "failed": "failure",
    "not-testable": "failure",
    "flaky": "failure",
    "unexpected-pass": "failure",
    "inconclusive": "error",
    "not-applicable": "skipped",
    "expected-fail": "skipped",
}
"""State -> what stands inside its test case. Passed and warned cases hold none of these."""


def render(report: RunReport) -> str:
    """The XML text of a report."""
    rows = {row.id: row for row in report.requirements}
    suites: defaultdict[str, list[CaseRow]] = defaultdict(list)
    for case in report.cases:
        suites[case.scenario].append(case)
    root = xml.Element("testsuites", name="think-conformance")
    for scenario, cases in suites.items():
        suite = xml.SubElement(root, "testsuite", name=plain(scenario))
        suite.set("time", f"{sum(case.duration_s for case in cases):.3f}")
        properties = xml.SubElement(suite, "properties")
        for name, value in (("target", report.target.name), ("kit", report.kit), ("seed", _seed(report))):
            xml.SubElement(properties, "property", name=name, value=plain(value))
        for case in cases:
            for verdict in case.verdicts:
                _test_case(suite, case, verdict, rows[verdict.requirement])
            if not case.verdicts:
                test = xml.SubElement(suite, "testcase", classname=plain(scenario), name=plain(case.case))
                xml.SubElement(test, "error", type="inconclusive", message="the case came to no verdict")
        _count(suite)
    _count(root)
    xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def _seed(report: RunReport) -> str:
    """Runs that were merged may have none in common."""
    return "several" if report.seed is None else str(report.seed)


def _test_case(suite: xml.Element, case: CaseRow, verdict: VerdictRow, row: RequirementRow) -> None:
    test = xml.SubElement(suite, "testcase")
    test.set("classname", f"{row.profile}.{plain(case.scenario)}")
    test.set("name", plain(f"{verdict.requirement} {case.case}"))
    text = "\n".join([f"{row.id} {row.level}: {row.sentence}", *map(plain, verdict.frames)])
    kind = ELEMENT.get(verdict.state)
    if kind is not None:
        told = f"{verdict.baseline.told}; " if verdict.baseline else ""
        if not row.scored:
            kind, told = "skipped", f"{told}unscored; "
        message = f"{plain(told)}{plain(verdict.reason)}"
        inside = xml.SubElement(test, kind, type=verdict.state, message=message)
        if kind == "failure":
            inside.text = text
    elif verdict.state == "warned":
        xml.SubElement(test, "system-out").text = f"warned: {plain(verdict.reason)}\n{text}"


def _count(element: xml.Element) -> None:
    tests = list(element.iter("testcase"))
    element.set("tests", str(len(tests)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(test.find(tag) is not None for test in tests)))
