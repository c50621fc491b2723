"""What pytest makes of the outcome of a case; the engine is a dummy here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from think_conformance.baseline import Compared, Entry
from think_conformance.checkers.base import Verdict
from think_conformance.errors import UsageError
from think_conformance.history.op import History, Record
from think_conformance.plugin import cases
from think_conformance.shell.process import TargetNotReady
from think_conformance.shell.run import Ended

pytest_plugins = "pytester"

INI = """
[pytest]
asyncio_default_fixture_loop_scope = function
addopts = -p no:hypothesispytest
"""
CASE = "control.stop-during-output"
HISTORY: History = [
    Record(0, 1.0, "run", "case", {}, {"name": "x"}),
    Record(1, 1.5, "client", "close", {"client": "a", "connection": "a.1"}, {"code": 1006, "by": "peer"}),
]


def verdict(state: Any, reason: str = "because", requirement: str = "WIRE-85") -> Verdict:
    return Verdict(requirement, CASE, state, reason, [1, 99])


def ended(verdicts: list[Verdict], history: History, missing: str = "") -> Ended:
    return Ended(case=CASE, verdicts=verdicts, history=history, took_s=0.1, missing=missing)


class FakeStore:
    folder = Path("the-run")

    def plan(self, case: str) -> Path:
        return self.folder / "plan" / f"{case}.json"


@pytest.fixture
def play(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs pytest on one case that comes out as given."""
    pytester.makeini(INI)

    def run(
        outcome: Ended | Exception,
        *args: str,
        at: str = "start",
        at_last: Exception | None = None,
        at_odds: Sequence[str] = (),
    ) -> pytest.RunResult:
        class FakeEngine:
            def __init__(self, *_: Any) -> None:
                self.store: FakeStore | None = None
                self.told = ["the report `a` could not be made"]
                self.at_odds = at_odds

            def start(self, *_: Any) -> None:
                if isinstance(outcome, UsageError) and at == "start":
                    raise outcome
                self.store = FakeStore()

            def outcome(self, _: str) -> Ended:
                if isinstance(outcome, Exception):
                    raise outcome
                return outcome

            def stop(self) -> None:
                if at_last is not None:
                    raise at_last

        monkeypatch.setattr(cases, "Engine", FakeEngine)
        return pytester.runpytest_inprocess("--think-target=reference", "-k", CASE, *args)

    return run


def test_a_pass_passes(play: Any) -> None:
    play(ended([verdict("passed")], HISTORY)).assert_outcomes(passed=1, deselected=len(_all()) - 1)


def _all() -> list[str]:
    from think_conformance.scenarios.base import load

    return list(load())


@pytest.mark.parametrize("state", ["failed", "not-testable"])
def test_a_failure_is_told_by_sentence_reason_frames_and_replay(play: Any, state: str) -> None:
    result = play(ended([verdict("passed", requirement="WIRE-209"), verdict(state)], HISTORY))
    result.assert_outcomes(failed=1, deselected=len(_all()) - 1)
    result.stdout.fnmatch_lines(
        [
            f"{state.upper()} WIRE-85 (MUST, core): A connection that follows a request to its end gets *",
            "    because",
            '    #1 +0.500 s  client a.1 close {"code":1006,"by":"peer"}',
            f"again: think-conformance replay the-run/plan/{CASE}.json",
            "run directory: the-run",
        ]
    )
    result.stdout.no_fnmatch_line("*WIRE-209*")
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize("verdicts", [[verdict("passed"), verdict("inconclusive", "nothing was seen")], []])
def test_a_case_that_decides_nothing_fails(play: Any, verdicts: list[Verdict]) -> None:
    result = play(ended(verdicts, HISTORY))
    result.assert_outcomes(failed=1, deselected=len(_all()) - 1)
    result.stdout.fnmatch_lines(["INCONCLUSIVE*", "*nothing was seen*" if verdicts else "again: *"])


def test_what_is_out_of_reach_is_skipped_with_the_reason(play: Any) -> None:
    result = play(ended([verdict("not-applicable")], [], missing="needs: leg routing"), "-rs")
    result.assert_outcomes(skipped=1, deselected=len(_all()) - 1)
    result.stdout.fnmatch_lines(["SKIPPED*needs: leg routing*"])


def test_a_warning_passes_and_is_told_on_demand(play: Any) -> None:
    result = play(ended([verdict("warned", "a SHOULD is broken")], HISTORY), "-rP")
    result.assert_outcomes(passed=1, deselected=len(_all()) - 1)
    result.stdout.fnmatch_lines(["WARNED WIRE-85 *", "    a SHOULD is broken"])


ENTRY = Entry(id="WIRE-85", reason="it is so", link="https://example.org/1", expires=date(2099, 1, 1))
KNOWN = "known until 2099-01-01: it is so (https://example.org/1)"


def test_what_fails_as_the_baseline_lists_is_an_xfail_with_its_reason(play: Any) -> None:
    known = Compared("WIRE-85", CASE, "expected-fail", "because", [1], baseline=ENTRY)
    result = play(ended([known, verdict("passed", requirement="WIRE-209")], HISTORY), "-rx")
    result.assert_outcomes(xfailed=1, deselected=len(_all()) - 1)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines([f"XFAIL think::{CASE} - *WIRE-85 {KNOWN}"])


def test_a_warning_beside_a_known_failure_is_no_known_failure(play: Any) -> None:
    expired = Compared("WIRE-85", CASE, "warned", "because; it expired", [1], baseline=ENTRY)
    play(ended([expired], HISTORY)).assert_outcomes(passed=1, deselected=len(_all()) - 1)


@pytest.mark.parametrize("state", ["unexpected-pass", "failed", "not-testable", "flaky"])
def test_what_is_otherwise_than_the_baseline_lists_fails_and_shows_the_entry(play: Any, state: Any) -> None:
    known = Compared("WIRE-209", CASE, "expected-fail", "because", [1], baseline=ENTRY)
    other = Compared("WIRE-85", CASE, state, "not as listed", [], baseline=ENTRY)
    result = play(ended([known, other], HISTORY))
    result.assert_outcomes(failed=1, deselected=len(_all()) - 1)
    result.stdout.fnmatch_lines([f"{state.upper()} WIRE-85 *", "    not as listed", f"    {KNOWN}"])


def test_what_only_the_whole_run_shows_fails_the_session(play: Any) -> None:
    line = "UNEXPECTED-PASS WIRE-85 x: remove the entry"
    result = play(ended([verdict("passed")], HISTORY), at_odds=[line])
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1, deselected=len(_all()) - 1)
    result.stdout.fnmatch_lines([line, "run directory: the-run"])


def test_a_target_that_does_not_start_is_one_line(play: Any) -> None:
    result = play(TargetNotReady("the target exited at once"))
    result.assert_outcomes(failed=1, deselected=len(_all()) - 1)
    result.stdout.fnmatch_lines(["the target exited at once"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_broken_kit_says_so_with_its_traceback(play: Any) -> None:
    result = play(RuntimeError("oh no"))
    result.assert_outcomes(failed=1, deselected=len(_all()) - 1)
    result.stdout.fnmatch_lines(["Traceback*", "RuntimeError: oh no", "the kit itself broke*"])


def test_what_a_user_can_cause_is_one_line(play: Any) -> None:
    result = play(UsageError("port 80 is taken"), at="outcome")
    result.assert_outcomes(failed=1, deselected=len(_all()) - 1)
    result.stdout.fnmatch_lines(["port 80 is taken"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_kit_that_breaks_after_the_last_case_is_told_and_never_green(play: Any) -> None:
    result = play(ended([verdict("passed")], HISTORY), at_last=RuntimeError("disk full"))
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    result.stdout.fnmatch_lines(["*= think-conformance =*", "Traceback*", "RuntimeError: disk full"])
    result.stdout.fnmatch_lines(["the kit itself broke*", "run directory: the-run"])


def test_a_report_that_could_not_be_made_is_told(play: Any) -> None:
    result = play(ended([verdict("passed")], HISTORY))
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["the report `a` could not be made", "run directory: the-run"])


def test_a_folder_in_use_ends_the_session(play: Any) -> None:
    result = play(UsageError("the folder is in use: name another with --out"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["*name another with --think-out*"])


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--think-target=refernce",), "*did you mean `reference`*"),
        (("--think-target=reference", "--think-profile=cor"), "*did you mean `core`*"),
        (("--think-profile=core",), "*need --think-target*"),
        (("--think-baseline=x",), "*need --think-target*"),
        (("--think-target=reference", "--think-baseline=x"), "*baseline x cannot be read*"),
        (("--think-target=reference", "-n2"), "*add `-n 0`*"),
        (("--think-target=ws://",), "*no target URL: give ws://HOST:PORT*"),
    ],
)
def test_a_wrong_option_is_a_usage_error(pytester: pytest.Pytester, args: tuple[str, ...], says: str) -> None:
    pytester.makeini(INI)
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([says])


def test_cases_are_found_by_requirement_by_marker_and_beside_other_tests(pytester: pytest.Pytester) -> None:
    pytester.makeini(INI)
    pytester.makepyfile("def test_mine(): pass")
    collect = ("--think-target=reference", "--collect-only", "-q")
    everything = pytester.runpytest_inprocess(*collect)
    assert {f"think::{name}" for name in _all()} <= set(everything.outlines)
    assert any("test_mine" in line for line in everything.outlines)
    by_id = pytester.runpytest_inprocess(*collect, "-k", "CANCEL-05").outlines
    assert f"think::{CASE}" in by_id
    assert "think::resume.probe-when-idle" not in by_id
    by_marker = pytester.runpytest_inprocess(*collect, "-m", "think").outlines
    assert f"think::{CASE}" in by_marker
    assert not any("test_mine" in line for line in by_marker)
    assert not Path("think-runs").exists()
