"""The page that a run leaves."""

from __future__ import annotations

import json
from pathlib import Path

from commands import kit

CASE = "resume.probe-when-idle"


def test_a_failed_run_leaves_a_page_that_tells_why(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = kit("run", "-k", CASE, "--defect", "two-terminals", "--seed", "7", "--out", out)
    assert done.returncode == 1, done.stdout + done.stderr
    page = (out / "report.html").read_text()
    results = json.loads((out / "results.json").read_text())
    for row in results["requirements"]:
        assert row["id"] in page
        assert row["sentence"] in page
    frames = [f for v in results["cases"][0]["verdicts"] if v["state"] == "failed" for f in v["frames"]]
    assert frames
    for frame in frames:
        assert frame.replace('"', "&#34;") in page
    assert f"think-conformance replay {out}/plan/{CASE}.json" in page
    assert "two-terminals" in page
    assert page.count("<svg") == 1


def test_a_passed_run_leaves_a_page_that_claims_no_certainty(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = kit("run", "-k", CASE, "--repeat", "4", "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (out / "report.html").read_text()
    assert "0 failures in 4 cases: at most 75 % of such cases fail (3/n, at 95 %)" in page
    assert "<svg" not in page


def test_a_run_that_never_began_leaves_a_page(tmp_path: Path) -> None:
    target = tmp_path / "none.toml"
    target.write_text('[target]\nname = "none"\nagent = "a"\nstart = ["no-such-think"]\n')
    done = kit("run", "-k", CASE, "--target", target, "--out", tmp_path / "out")
    assert done.returncode == 5
    page = (tmp_path / "out" / "report.html").read_text()
    assert "The case came to no verdict." in page
    assert "Nothing was judged." in page
