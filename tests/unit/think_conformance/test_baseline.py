"""Known failures: the file, and verdicts held against it."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

import pytest

from think_conformance.baseline import Baseline, Compared, Entry, apply, load, read, skeleton
from think_conformance.checkers.agreement import flaky
from think_conformance.checkers.base import State, Verdict, exit_code, worst
from think_conformance.errors import UsageError
from think_conformance.scenarios.base import load as scenarios

TODAY = date(2026, 6, 30)
CASE, OTHER = "resume.page-refresh", "resume.reset-during-output"
EVERY = [s.id for s in scenarios().values() if "WIRE-104" in s.exercises]
"""The scenarios that exercise it: CASE and OTHER are two of them."""

GOOD = """
[[expected]]
id = "WIRE-104"
case = "resume.page-refresh"
reason = "replays start anew"
link = "https://example.org/1"
expires = 2026-06-30
"""


def entry(case: str | None = CASE, **more: Any) -> Entry:
    fields = {"id": "WIRE-104", "reason": "why", "link": "https://example.org/1", "expires": TODAY}
    return Entry(case=case, **{**fields, **more})


def verdict(state: State, case: str = CASE, reason: str = "a chunk came twice") -> Verdict:
    return Verdict("WIRE-104", case, state, reason, [3])


def held(
    known: Entry, *verdicts: Verdict, played: list[str] | None = None, profiles: tuple[str, ...] = ()
) -> list[Verdict]:
    baseline = Baseline(entries=(known,), today=TODAY)
    return apply(baseline, verdicts, {v.case for v in verdicts} if played is None else played, profiles)


# ---- holding verdicts against it ------------------------------------------------------------


def test_nothing_is_listed_and_nothing_changes() -> None:
    verdicts = [verdict("failed"), verdict("passed", OTHER)]
    assert apply(Baseline(), verdicts, [CASE, OTHER]) == verdicts


@pytest.mark.parametrize("state", ["failed", "warned"])
def test_what_is_broken_as_listed_is_expected_and_keeps_what_the_check_said(state: State) -> None:
    (found,) = held(entry(), verdict(state))
    assert found == Compared("WIRE-104", CASE, "expected-fail", "a chunk came twice", [3], baseline=entry())
    assert exit_code([found]) == 0


def test_what_passes_although_listed_is_unexpected() -> None:
    (found,) = held(entry(), verdict("passed"))
    assert (found.state, exit_code([found])) == ("unexpected-pass", 1)
    assert found.reason == f"passed, although the baseline lists WIRE-104 in {CASE}: remove the entry"


@pytest.mark.parametrize("state", ["not-applicable", "inconclusive", "not-testable"])
def test_what_was_not_seen_although_listed_counts_against_the_run(state: State) -> None:
    (found,) = held(entry(), verdict(state, reason="far away"))
    assert (found.state, exit_code([found])) == ("not-testable", 1)
    assert (
        found.reason
        == f"the baseline lists WIRE-104 in {CASE} as failing, which was not seen: {state}, far away"
    )


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ([], "the case was not played"),
        ([Verdict("WIRE-85", CASE, "passed")], "the case shows nothing of it"),
    ],
)
def test_a_listed_case_without_a_verdict_is_given_one_that_counts_against_the_run(
    others: list[Verdict], why: str
) -> None:
    *rest, found = held(entry(), *others, played=[CASE])
    assert rest == others
    assert (found.requirement, found.case, found.state) == ("WIRE-104", CASE, "not-testable")
    assert found.reason.endswith(f"not seen: {why}")
    assert exit_code([found]) == 1


def test_a_case_that_was_not_played_is_not_said_to_have_been_by_an_earlier_entry() -> None:
    both = Baseline(entries=(entry(id="WIRE-59"), entry()), today=TODAY)
    found = apply(both, [], [CASE])
    assert ["not played" in v.reason for v in found] == [True, True]


def test_a_case_that_the_user_left_out_is_outside_the_run() -> None:
    verdicts = [verdict("passed", OTHER)]
    assert held(entry(), *verdicts) == verdicts
    assert held(entry(), *verdicts, played=[OTHER, CASE]) != verdicts


def test_a_profile_that_the_user_left_out_is_outside_the_run() -> None:
    assert held(entry(), played=[CASE], profiles=("core",)) == []
    assert [v.state for v in held(entry(), played=[CASE], profiles=("resume",))] == ["not-testable"]


def test_other_requirements_and_cases_are_left_alone() -> None:
    others = [verdict("failed", OTHER), Verdict("WIRE-85", CASE, "failed")]
    assert held(entry(), verdict("failed"), *others)[1:] == others


@pytest.mark.parametrize("state", ["failed", "warned"])
def test_after_its_last_day_an_entry_is_not_honoured_and_the_failure_says_so(state: State) -> None:
    assert held(entry(expires=TODAY), verdict(state))[0].state == "expected-fail"
    (found,) = held(entry(expires=TODAY - timedelta(days=1)), verdict(state))
    assert found.state == state
    assert found.reason == "a chunk came twice; its entry in the baseline expired on 2026-06-29"


def test_an_expired_entry_asks_for_nothing() -> None:
    old = entry(expires=TODAY - timedelta(days=1))
    for verdicts in ([verdict("passed")], [verdict("inconclusive")], []):
        assert held(old, *verdicts, played=[CASE]) == verdicts


def test_a_failure_with_other_evidence_is_another_failure() -> None:
    assert held(entry(evidence="came twice"), verdict("failed"))[0].state == "expected-fail"
    (found,) = held(entry(evidence="came.*"), verdict("failed"))
    assert (found.state, exit_code([found])) == ("failed", 1)
    assert found.reason == "a chunk came twice; the baseline lists another failure, with other evidence"


def test_without_a_case_every_failure_is_expected_and_passes_stay() -> None:
    states: list[State] = ["failed", *["passed"] * (len(EVERY) - 2), "inconclusive"]
    found = held(entry(None), *map(verdict, states, EVERY))
    assert [v.state for v in found] == ["expected-fail", *states[1:]]


def test_without_a_case_at_least_one_must_fail() -> None:
    states: list[State] = [*["passed"] * (len(EVERY) - 1), "inconclusive"]
    found = held(entry(None), *map(verdict, states, EVERY))
    assert [v.state for v in found] == [*["unexpected-pass"] * (len(EVERY) - 1), "inconclusive"]


def test_without_a_case_and_with_nothing_decided_the_entry_is_not_confirmed() -> None:
    found = held(entry(None), *(verdict("inconclusive", case) for case in EVERY))
    assert {v.state for v in found} == {"not-testable"}
    assert {v.state for v in held(entry(None), played=EVERY)} == {"not-testable"}


def test_without_a_case_a_part_of_its_cases_decides_nothing_but_failures() -> None:
    part = [verdict("passed", CASE), verdict("passed", OTHER)]
    assert held(entry(None), *part) == part
    assert held(entry(None), played=[CASE]) == []
    assert [v.state for v in held(entry(None), verdict("failed"), part[1])] == ["expected-fail", "passed"]


def test_each_repeat_is_held_against_the_entry_of_its_scenario() -> None:
    found = held(entry(), verdict("failed"), verdict("failed", f"{CASE}@2"), played=[CASE])
    assert [v.state for v in found] == ["expected-fail", "expected-fail"]


def several(*breaches: str) -> Verdict:
    return Verdict("WIRE-104", CASE, "failed", f"{breaches[0]} (and more)", [3], list(breaches))


def test_every_breach_of_a_verdict_needs_an_entry_that_fits() -> None:
    twice, gap = entry(evidence="came twice"), entry(evidence="a gap")
    both = Baseline(entries=(twice, gap), today=TODAY)
    found = several("a chunk came twice", "there is a gap")
    assert [v.state for v in held(twice, found)] == ["failed"]
    assert [v.state for v in apply(both, [found], [CASE])] == ["expected-fail"]
    (half,) = apply(both, [verdict("failed")], [CASE])
    assert (half.state, "which was not seen: a gap" in half.reason) == ("failed", True)


def test_a_race_excuses_no_doubt() -> None:
    racy = entry(sometimes=True)
    doubted = flaky([verdict("passed"), verdict("inconclusive", f"{CASE}@2")], {})
    assert [v.state for v in held(racy, *doubted, played=[CASE])] == ["flaky", "flaky"]
    assert held(racy, played=[CASE]) == []


def test_a_failure_that_hangs_on_a_race_of_the_target_may_come_and_go() -> None:
    racy = entry(sometimes=True, evidence="came twice")
    assert [v.state for v in held(racy, verdict("passed"))] == ["passed"]
    assert [v.state for v in held(racy, verdict("failed"))] == ["expected-fail"]
    found = held(racy, *flaky([verdict("failed"), verdict("passed", f"{CASE}@2")], {}), played=[CASE])
    assert [v.state for v in found] == ["expected-fail", "expected-fail"]
    assert [v.repeats for v in found] == [["failed", "passed"]] * 2
    assert exit_code(found) == 0
    other = flaky([verdict("failed", reason="a gap"), verdict("passed", f"{CASE}@2")], {})
    assert exit_code(held(racy, *other, played=[CASE])) == 1
    assert [v.state for v in held(racy, verdict("inconclusive"))] == ["not-testable"]


def test_a_failure_that_comes_and_goes_stays_flaky_and_says_that_it_is_listed() -> None:
    found = held(entry(), *flaky([verdict("failed"), verdict("passed", f"{CASE}@2")], {}), played=[CASE])
    assert [v.state for v in found] == ["flaky", "flaky"]
    assert exit_code(found) == 1
    assert found[0].reason == (
        "repeats differ: failed, passed; here failed: a chunk came twice; "
        f"the baseline lists WIRE-104 in {CASE} as failing every time"
    )


def test_a_case_whose_only_failures_are_expected_is_one() -> None:
    assert worst(v.state for v in held(entry(), verdict("failed"), Verdict("WIRE-85", CASE, "passed"))) == (
        "expected-fail"
    )


# ---- the file -------------------------------------------------------------------------------


def test_a_file_says_target_and_entries() -> None:
    text = f'version = 1\ntarget = "mine"\n{GOOD}evidence = "twice"\n'
    reason = "replays start anew"
    assert load(text, "b.toml", TODAY) == Baseline(
        target="mine", entries=(entry(reason=reason, evidence="twice"),), today=TODAY
    )
    assert load("version = 1", "b.toml", TODAY) == Baseline(today=TODAY)


WRONG = {
    "not toml": ("version = 1\n[[expected\n", "not TOML: "),
    "a malformed date": (f"version = 1\n{GOOD}".replace("06-30", "13-40"), "(at line 8, column "),
    "no version": (GOOD, "`version` is not 1: start the file with `version = 1`"),
    "another version": (f"version = 2\n{GOOD}", "`version` is not 1"),
    "an unknown key": (f"version = 1\ntarge = 'x'\n{GOOD}", "unknown key `targe`; did you mean `target`?"),
    "a target that is no name": ("version = 1\ntarget = 7", "`target` is not a name"),
    "no list": ("version = 1\nexpected = 7", "`expected` is not a list of tables"),
    "no table": ("version = 1\nexpected = [7]", "entry 1: it is not a table"),
    "an unknown key of an entry": (
        f"version = 1\n{GOOD}resaon = 'x'",
        "entry 1 (WIRE-104): unknown key `resaon`; did you mean `reason`?",
    ),
    "a typo in an id": (
        f"version = 1\n{GOOD}".replace("WIRE-104", "WIRE-1044"),
        "unknown requirement `WIRE-1044`; did you mean `WIRE-104`?",
    ),
    "a typo in a case": (
        f"version = 1\n{GOOD}".replace("page-refresh", "page-refrehs"),
        "unknown scenario `resume.page-refrehs`; did you mean `resume.page-refresh`?",
    ),
    "a date that is a text": (f"version = 1\n{GOOD}".replace("2026-06-30", '"soon"'), "`$.expires`"),
    "a date that is a moment": (f"version = 1\n{GOOD}".replace("06-30", "06-30T00:00:00"), "`$.expires`"),
    "an empty reason": (f"version = 1\n{GOOD}".replace("replays start anew", " "), "`reason` is empty"),
    "an empty link": (f"version = 1\n{GOOD}".replace("https://example.org/1", ""), "`link` is empty"),
    "empty evidence": (f"version = 1\n{GOOD}evidence = ''", "`evidence` is empty"),
    "the same twice": (
        f"version = 1\n{GOOD}{GOOD}",
        f"the entries `WIRE-104 in {CASE}` and `WIRE-104 in {CASE}` match the same verdict",
    ),
    "one within another": (
        f"version = 1\n{GOOD}{GOOD}".replace('case = "resume.page-refresh"\n', "", 1),
        f"the entries `WIRE-104` and `WIRE-104 in {CASE}` match the same verdict: keep one of them",
    ),
    **{
        f"no {key}": (f"version = 1\n{re.sub(f'{key} = .*', '', GOOD)}", f"`{key}` is missing")
        for key in ("id", "reason", "link", "expires")
    },
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_file_is_one_line(what: str) -> None:
    text, says = WRONG[what]
    with pytest.raises(UsageError) as failure:
        load(text, "b.toml", TODAY)
    assert str(failure.value).startswith("b.toml: ")
    assert says in str(failure.value)
    assert "\n" not in str(failure.value)
    assert "more" not in str(failure.value)


def test_the_same_requirement_in_two_cases_is_no_overlap() -> None:
    two = GOOD + GOOD.replace(CASE, OTHER)
    assert len(load(f"version = 1\n{two}", "b.toml", TODAY).entries) == 2


def test_all_that_is_wrong_is_told_at_once() -> None:
    rest = 'reason = ""\nlink = ""\n'
    baseline, wrong = read(f"x = 1\n{GOOD}\n[[expected]]\nid = 'NO-1'\nexpires = 2026-01-01\n{rest}", TODAY)
    assert [line.partition(";")[0] for line in wrong] == [
        "unknown key `x`",
        "`version` is not 1: start the file with `version = 1`",
        "entry 2 (NO-1): unknown requirement `NO-1`",
        "entry 2 (NO-1): `reason` is empty",
        "entry 2 (NO-1): `link` is empty",
    ]
    assert [e.id for e in baseline.entries] == ["WIRE-104"]
    with pytest.raises(UsageError, match=r"unknown key `x`.* \(and 1 more: see `baseline lint`\)"):
        load(f"x = 1\n{GOOD}", "b.toml", TODAY)


def test_a_skeleton_lists_what_is_broken_and_waits_for_reasons() -> None:
    verdicts = [
        verdict("failed", reason="a 'b' \"c\"\n[[expected]]"),
        verdict("flaky", f"{CASE}@2"),
        verdict("warned", OTHER),
        Verdict("WIRE-85", CASE, "passed"),
    ]
    text = skeleton('a "name" \\ of \n mine', verdicts, TODAY)
    baseline, wrong = read(text, TODAY)
    assert (baseline.entries, len(wrong)) == ((), 4)
    assert all("is empty" in line for line in wrong)
    filled = text.replace('reason = ""', 'reason = "r"').replace('link = ""', 'link = "l"')
    done = load(filled, "b.toml", TODAY)
    assert [(e.id, e.case, e.expires) for e in done.entries] == [
        ("WIRE-104", CASE, TODAY),
        ("WIRE-104", OTHER, TODAY),
    ]
    assert done.target == 'a "name" \\ of \\n mine'
