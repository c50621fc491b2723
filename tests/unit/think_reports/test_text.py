"""The summary on a terminal."""

from __future__ import annotations

import msgspec
import pytest

from sample_run import (
    CATALOGUE,
    ENVIRONMENT,
    HISTORIES,
    HOSTILE,
    KNOWN,
    VERDICTS,
    history,
    infested,
    known,
    partly,
    sample,
)
from think_conformance.accounting import Accounting
from think_conformance.baseline import Compared
from think_conformance.checkers.base import State, Verdict
from think_reports.model import build
from think_reports.text import CASES_SHOWN, WIDTH, render


def last_line(*states: State, exit_code: int | None = 0) -> str:
    env = msgspec.structs.replace(ENVIRONMENT, exit_code=exit_code)
    ids = list(CATALOGUE)
    verdicts = [Verdict(ids[n], f"case{n}", state) for n, state in enumerate(states)]
    return render(build(env, verdicts, [], CATALOGUE)).splitlines()[-1]


@pytest.mark.parametrize(
    ("states", "line"),
    [
        (("passed",), "passed: 1 of 1 requirement, 1 case, seed 7 -> exit 0"),
        (
            ("passed", "warned", "not-applicable"),
            "passed: 1 of 3 requirements, 1 warned, 1 not-applicable, 3 cases, seed 7 -> exit 0",
        ),
        (
            ("passed", "expected-fail", "expected-fail"),
            "passed: 1 of 3 requirements, 2 expected-fail, 3 cases, seed 7 -> exit 0",
        ),
        (("passed", "unexpected-pass"), "unexpected-pass: 1 of 2 requirements, 2 cases, seed 7 -> exit 0"),
        (("expected-fail",), "expected-fail: 1 of 1 requirement, 1 case, seed 7 -> exit 0"),
        (("warned",), "warned: 1 of 1 requirement, 1 case, seed 7 -> exit 0"),
        (("failed", "flaky", "passed"), "failed: 1 of 3 requirements, 1 flaky, 3 cases, seed 7 -> exit 0"),
        (("inconclusive", "passed"), "inconclusive: 1 of 2 requirements, 2 cases, seed 7 -> exit 0"),
        (
            ("not-applicable",),
            "inconclusive: 0 of 1 requirement, 1 not-applicable, 1 case, seed 7 -> exit 0",
        ),
        ((), "inconclusive: 0 of 0 requirements, 0 cases, seed 7 -> exit 0"),
    ],
)
def test_the_last_line_says_it_all(states: tuple[State, ...], line: str) -> None:
    assert last_line(*states) == line


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (None, "unfinished: 1 passed so far, 1 of ? cases begun, seed 7 -> unfinished"),
        (3, "broken: 1 passed so far, 1 of ? cases begun, seed 7 -> exit 3"),
        (5, "not-ready: 1 passed so far, 1 of ? cases begun, seed 7 -> exit 5"),
        (130, "interrupted: 1 passed so far, 1 of ? cases begun, seed 7 -> exit 130"),
    ],
)
def test_a_run_that_was_cut_short_is_never_headed_as_a_pass(code: int | None, line: str) -> None:
    assert last_line("passed", exit_code=code) == line


def test_a_run_that_was_cut_short_says_how_much_there_was_to_do() -> None:
    env = msgspec.structs.replace(ENVIRONMENT, exit_code=130, cases=43)
    assert "0 of 43 cases begun" in render(build(env, [], [], CATALOGUE)).splitlines()[-1]


def test_a_failure_is_explained_by_sentence_reason_and_frames() -> None:
    lines = render(sample()).splitlines()
    start = lines.index("FAILED A-1 (MUST, core)")
    assert lines[start + 1 : start + 3] == [
        "  What A-1 says holds.",
        "    stop: told completed, then aborted",
    ]
    assert lines[start + 3].startswith("      #2 +0.200 s  client a.1 frame-in {")
    assert '"outcome":"aborted"' in lines[start + 4]
    assert lines[start + 5] == ""


def test_states_are_counted_and_causes_are_told_once() -> None:
    text = render(sample())
    assert "failed             1\ninconclusive       1\npassed             1\nnot-applicable     1\n" in text
    assert "INCONCLUSIVE kill: the fault cut never fired\n  B-1\n" in text
    assert "NOT-APPLICABLE: needs: leg routing\n  C-1\n" in text


TOLD = "known until 2099-01-02: decided so (https://example.org/1)"


def test_a_known_failure_is_told_by_its_entry_alone() -> None:
    text = render(known())
    assert f"EXPECTED-FAIL: {TOLD}\n  A-1\n\n" in text
    assert "expected-fail      1\n" in text
    assert "aborted" not in text


def test_what_is_otherwise_than_listed_is_explained_with_its_entry() -> None:
    verdict = Compared("A-2", "stop", "unexpected-pass", "remove the entry", [], baseline=KNOWN)
    assert f"    stop: remove the entry\n      {TOLD}\n" in render(known(verdict))


def test_a_cause_names_each_requirement_once() -> None:
    verdicts = [Verdict("C-1", case, "not-applicable", "far away") for case in ("one", "two")]
    text = render(build(ENVIRONMENT, verdicts, [], CATALOGUE))
    assert "NOT-APPLICABLE: far away\n  C-1\n\n" in text


def test_what_passed_is_not_explained() -> None:
    assert CATALOGUE["A-2"].sentence not in render(sample())


def test_a_long_sentence_is_wrapped_and_whole() -> None:
    sentence = " ".join(["what-is-never-cut-at-a-hyphen"] * 20)
    catalogue = {"A-1": msgspec.structs.replace(CATALOGUE["A-1"], sentence=sentence)}
    text = render(build(ENVIRONMENT, [Verdict("A-1", "stop", "failed", "x")], [], catalogue))
    assert sentence in " ".join(text.split())
    assert max(len(line) for line in text.splitlines()) <= WIDTH


def test_the_heading_names_target_and_defect() -> None:
    assert render(sample()).startswith("think-conformance 0.1.0 on mine, seed 7, 2.5 s\n")
    target = msgspec.structs.replace(ENVIRONMENT.target, version="2", defect="two-terminals")
    env = msgspec.structs.replace(ENVIRONMENT, target=target, duration_s=None)
    assert render(build(env, [], [], CATALOGUE)).startswith(
        "think-conformance 0.1.0 on mine 2 with defect two-terminals, seed 7\n"
    )


def test_many_cases_are_cut_and_counted() -> None:
    verdicts = [Verdict("A-1", f"case{n}", "failed", "no") for n in range(CASES_SHOWN + 4)]
    text = render(build(ENVIRONMENT, verdicts, [], CATALOGUE))
    assert text.count(": no\n") == CASES_SHOWN
    assert "    and 4 more cases\n" in text


def test_a_case_without_a_verdict_is_named() -> None:
    text = render(build(ENVIRONMENT, [], [("stop", history("stop"))], CATALOGUE))
    assert "INCONCLUSIVE stop: the case came to no verdict\n" in text


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_content_does_nothing_to_a_terminal(kind: str) -> None:
    text = render(infested(HOSTILE[kind]))
    assert text.replace("\n", "").isprintable()
    assert len(text) < 50_000
    assert len(text.splitlines()) < 60
    assert text.splitlines()[-1].startswith("failed: 1 of 4 requirements")


def test_a_report_from_elsewhere_is_made_plain_too() -> None:
    report = msgspec.structs.replace(sample(), kit="\x1b[2J", started="\n")
    assert "\x1b" not in render(report)


def test_every_judged_requirement_has_a_line_in_the_table() -> None:
    lines = render(sample()).splitlines()
    assert "failed          A-1        MUST   core           2 cases" in lines
    assert "inconclusive    B-1        MUST   resume         2 cases" in lines
    assert [line.split()[1] for line in lines[2:6]] == list(CATALOGUE)


def test_what_was_selected_is_accounted_for() -> None:
    lines = render(partly()).splitlines()
    assert lines[0].endswith("seeds differ, 2.5 s, scored by revision 1")
    at = lines.index("cases: 9 in all, 4 selected, 2 ran, 2 not run")
    assert lines[at + 1 : at + 3] == ["     1  needs: leg routing", "     1  the time was up"]
    assert lines[-1] == (
        "inconclusive: 1 of 1 requirement, 1 unscored, 2 of 4 cases ran, seeds differ -> exit 2"
    )


def test_what_does_not_score_is_told_behind_what_does() -> None:
    text = render(partly())
    assert "failed          A-2        MUST   core           2 cases, unscored\n" in text
    assert "FAILED A-2 (MUST, core, unscored)\n" in text
    assert "    stop: told too late\n" in text


def test_cases_that_did_not_run_are_told_by_their_reason_once() -> None:
    assert "INCONCLUSIVE: the time was up\n  WIRE-85\n" in render(partly())


def test_where_all_ran_the_last_line_only_counts() -> None:
    whole = Accounting(total=2, selected=2, ran=2)
    text = render(build(ENVIRONMENT, VERDICTS, HISTORIES, CATALOGUE, whole))
    assert "cases: 2 in all, 2 selected, 2 ran\n" in text
    assert text.splitlines()[-1].endswith("3 cases, seed 7 -> exit 1")
