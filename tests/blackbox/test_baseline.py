"""Known failures of a target, from the file to the exit code and the reports."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from commands import kit, last_line

pytest_plugins = "pytester"

CASE = "resume.page-refresh"
DEFECT = ("--defect", "doubles-replay")
ENTRY = {
    "id": "WIRE-104",
    "case": CASE,
    "reason": "replays come twice",
    "link": "https://example.org/1",
    "expires": "2099-01-02",
}


def listing(folder: Path, **changed: str | None) -> Path:
    """A baseline of one entry; a value of None leaves its key out."""
    fields = {key: value for key, value in {**ENTRY, **changed}.items() if value is not None}
    lines = [f"{key} = {value if key == 'expires' else json.dumps(value)}" for key, value in fields.items()]
    path = folder / "baseline.toml"
    path.write_text("\n".join(["version = 1", 'target = "reference"', "[[expected]]", *lines]))
    return path


def played(
    out: Path, *args: str | Path, k: str = CASE
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    done = kit("run", "-k", k, "--out", out, *args)
    return done, json.loads((out / "results.json").read_text())


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one case with a defect, without a baseline."""
    out = tmp_path_factory.mktemp("broken") / "out"
    done, results = played(out, *DEFECT)
    assert (done.returncode, results["summary"]["failed"]) == (1, 1), done.stdout + done.stderr
    return out


def test_a_failure_that_is_listed_is_expected_in_every_report(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done, results = played(out, *DEFECT, "--baseline", listing(tmp_path, evidence="req-t1: "))
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 1 expected-fail, 1 case, seed" in last_line(done.stdout)
    assert f"[1/1] expected-fail   {CASE}" in done.stderr
    (case,) = results["cases"]
    assert (case["state"], results["summary"]["expected-fail"]) == ("expected-fail", 1)
    (found,) = [v for v in case["verdicts"] if v["requirement"] == "WIRE-104"]
    assert (found["state"], found["baseline"]) == ("expected-fail", {**ENTRY, "evidence": "req-t1: "})
    suites = ElementTree.parse(out / "junit.xml").getroot()
    assert (suites.get("failures"), suites.get("skipped")) == ("0", "1")
    skipped = suites.find(".//skipped[@type='expected-fail']")
    assert skipped is not None
    assert "replays come twice (https://example.org/1)" in str(skipped.get("message"))
    assert '<a href="https://example.org/1"' in (out / "report.html").read_text()


def test_a_pass_that_is_listed_as_a_failure_fails(tmp_path: Path) -> None:
    done, results = played(tmp_path / "out", "--baseline", listing(tmp_path))
    assert done.returncode == 1, done.stdout + done.stderr
    assert last_line(done.stdout).startswith("unexpected-pass: 1 of ")
    assert results["cases"][0]["state"] == "unexpected-pass"
    assert ElementTree.parse(tmp_path / "out" / "junit.xml").getroot().get("failures") == "1"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"evidence": "less often"}, "the baseline lists another failure"),
        ({"expires": "2020-01-02"}, "its entry in the baseline expired on 2020-01-02"),
    ],
)
def test_a_failure_that_is_not_the_one_listed_fails_and_says_why(
    changed: dict[str, str], says: str, broken: Path, tmp_path: Path
) -> None:
    done = kit("check", broken, "--baseline", listing(tmp_path, **changed))
    assert done.returncode == 1, done.stdout + done.stderr
    assert says in done.stdout
    assert last_line(done.stdout).startswith("failed: ")


def test_a_run_with_an_expired_entry_fails_and_its_summary_says_so(tmp_path: Path) -> None:
    done, _ = played(tmp_path / "out", *DEFECT, "--baseline", listing(tmp_path, expires="2020-01-02"), k=CASE)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "its entry in the baseline expired on 2020-01-02" in done.stdout


def test_a_listed_case_that_the_user_left_out_is_outside_the_run(tmp_path: Path) -> None:
    baseline = listing(tmp_path, case="resume.reset-during-output")
    done, results = played(tmp_path / "out", "--baseline", baseline)
    assert (done.returncode, "not-testable" in results["summary"]) == (0, False), done.stdout


def test_a_listed_case_that_is_out_of_reach_fails(tmp_path: Path) -> None:
    target = tmp_path / "target.toml"
    target.write_text(
        '[target]\nname = "reference"\nagent = "conformance-agent"\nlegs = []\nclaims = ["resume"]\n'
        'start = ["{python}", "-m", "think_reference", "serve"]\n'
    )
    case = "resume.reset-during-output"
    baseline = listing(tmp_path, case=case)
    done, results = played(tmp_path / "out", "--target", target, "--baseline", baseline, k=case)
    assert done.returncode == 1, done.stdout + done.stderr
    assert results["cases"][0]["state"] == "not-testable"
    why = f"the baseline lists WIRE-104 in {case} as failing, which was not seen: not-applicable, needs: leg"
    assert why in done.stdout


def test_an_entry_without_a_case_needs_one_case_that_fails(tmp_path: Path) -> None:
    baseline = listing(tmp_path, case=None)
    fails, _ = played(tmp_path / "fails", *DEFECT, "--baseline", baseline, k="WIRE-104")
    assert fails.returncode == 0, fails.stdout + fails.stderr
    passes, results = played(tmp_path / "passes", "--baseline", baseline, k="WIRE-104")
    assert passes.returncode == 1, passes.stdout + passes.stderr
    assert results["summary"]["unexpected-pass"] == 1


def test_repeats_that_fail_alike_are_expected_together(tmp_path: Path) -> None:
    done, results = played(tmp_path / "out", *DEFECT, "--repeat", "2", "--baseline", listing(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert [case["state"] for case in results["cases"]] == ["expected-fail", "expected-fail"]


def test_check_holds_an_old_run_against_a_baseline(broken: Path, tmp_path: Path) -> None:
    assert kit("check", broken).returncode == 1
    done = kit("check", broken, "--baseline", listing(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"expected-fail   WIRE-104   {CASE}: " in done.stdout


def test_a_listed_case_cannot_be_lost_between_the_run_and_the_check(broken: Path, tmp_path: Path) -> None:
    robbed = tmp_path / "run"
    shutil.copytree(broken, robbed)
    shutil.rmtree(robbed / "cases" / CASE)
    done = kit("check", robbed, "--baseline", listing(tmp_path))
    assert (done.returncode, "is not whole" in last_line(done.stderr)) == (4, True), done.stderr


@pytest.mark.parametrize("verb", ["run", "check"])
def test_a_baseline_that_cannot_be_used_is_one_line(verb: str, broken: Path, tmp_path: Path) -> None:
    args = ("check", broken) if verb == "check" else ("run", "--out", tmp_path / "out")
    wrong = listing(tmp_path, id="WIRE-1044")
    for path, says in ((wrong, "did you mean `WIRE-104`?"), (tmp_path / "none.toml", "none.toml cannot be")):
        done = kit(*args, "--baseline", path)
        assert (done.returncode, says in last_line(done.stderr)) == (4, True), done.stderr
        assert "Traceback" not in done.stderr


def test_a_baseline_is_begun_from_a_run_and_refused_until_it_has_reasons(
    broken: Path, tmp_path: Path
) -> None:
    begun = kit("baseline", "write", broken)
    assert begun.returncode == 0, begun.stderr
    path = tmp_path / "begun.toml"
    path.write_text(begun.stdout)
    linted = kit("baseline", "lint", path)
    assert linted.returncode == 4
    assert linted.stdout.splitlines() == [
        f"{path}: entry 1 (WIRE-104): `reason` is empty",
        f"{path}: entry 1 (WIRE-104): `link` is empty",
        "entries: 0, mistakes: 2",
    ]
    path.write_text(begun.stdout.replace('reason = ""', 'reason = "r"').replace('link = ""', 'link = "l"'))
    assert kit("baseline", "lint", path).returncode == 0
    done = kit("check", broken, "--baseline", path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_lint_tells_what_has_expired(tmp_path: Path) -> None:
    done = kit("baseline", "lint", listing(tmp_path, expires="2020-01-02"))
    assert done.returncode == 4
    assert done.stdout.splitlines()[0].endswith(f"WIRE-104 in {CASE} expired on 2020-01-02")


@pytest.mark.parametrize(("defect", "case", "code"), [(True, CASE, 0), (False, CASE, 1), (False, None, 1)])
def test_pytest_marks_known_failures(
    defect: bool, case: str | None, code: int, pytester: pytest.Pytester
) -> None:
    serve = ["{python}", "-m", "think_reference", "serve", *(DEFECT if defect else ())]
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n")
    pytester.path.joinpath("mine.toml").write_text(
        f'[target]\nname = "reference"\nagent = "conformance-agent"\nstart = {json.dumps(serve)}\n'
        'claims = ["core", "resume", "control", "recovery"]\nlegs = ["client", "model"]\n'
    )
    listing(pytester.path, case=case)
    result = pytester.runpytest_subprocess(
        "--think-target=mine.toml",
        "--think-baseline=baseline.toml",
        "--think-out=out",
        "--alluredir=allure",
        "-k",
        CASE if case else "WIRE-104",
        "-rx",
        timeout=90,
    )
    assert result.ret == code, result.stdout.str()
    if defect:
        result.stdout.fnmatch_lines(["XFAIL*WIRE-104 known until 2099-01-02: replays come twice (https*"])
        (told,) = [json.loads(p.read_text()) for p in (pytester.path / "allure").glob("*-result.json")]
        assert told["status"] == "skipped"
        assert "replays come twice" in told["statusDetails"]["message"]
    else:
        result.stdout.fnmatch_lines(["UNEXPECTED-PASS WIRE-104 *"])
