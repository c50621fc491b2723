"""The command `selftest`: of a defect that is proven, of one that is not, and of one that is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import kit, last_line

SERVE = "import runpy, sys; sys.argv = {argv}; runpy.run_module('think_reference', run_name='__main__')"
LISTED = "import json; print(json.dumps([dict(name='two-terminals', summary='s', breaks={breaks!r})]))"

TARGET = """
[target]
name = "mine"
agent = "conformance-agent"
start = ["{{python}}", "-c", {serve}]
claims = ["core", "resume", "control", "recovery"]
legs = ["client", "model"]
heartbeat_s = 2
defects_command = ["{{python}}", "-c", {listed}]
defect_args = ["--defect"]
"""


def test_a_defect_that_is_proven_and_one_that_nobody_knows(tmp_path: Path) -> None:
    done = kit("selftest", "--defect", "nonsense", "--out", tmp_path / "none")
    assert done.returncode == 4
    assert "nonsense" in done.stderr
    assert not (tmp_path / "none").exists()

    out = tmp_path / "out"
    done = kit("selftest", "--defect", "terminal-before-transcript", "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("seed 7\n")
    assert last_line(done.stdout).startswith("selftest: 1 of 1 defects proven")
    assert "| WIRE-93 | ● |" in (out / "table.md").read_text()
    (proof,) = json.loads((out / "selftest.json").read_text())
    assert (proof["red"], proof["wrong"]) == (["WIRE-93"], "")


@pytest.mark.parametrize(
    ("argv", "breaks", "wrong"),
    [
        ("['x', 'serve', *sys.argv[1:]]", ["WIRE-85"], "red and not its own: TURN-150, WIRE-206, WIRE-209"),
        ("['x', 'serve']", ["WIRE-85"], "nothing turned red"),
    ],
    ids=["too much", "nothing"],
)
def test_a_defect_that_is_not_proven_fails_in_one_line(
    argv: str, breaks: list[str], wrong: str, tmp_path: Path
) -> None:
    target = tmp_path / "mine.toml"
    serve, listed = SERVE.format(argv=argv), LISTED.format(breaks=breaks)
    target.write_text(TARGET.format(serve=json.dumps(serve), listed=json.dumps(listed)))
    done = kit("selftest", "--target", target, "--out", tmp_path / "out")
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[1].startswith("played ")
    assert lines[1].endswith(" exercise what the defects break (all: --full)")
    assert lines[2] == f"NOT PROVEN two-terminals: {wrong}"
    assert any(line.startswith("unproven CANCEL-05 ") for line in lines)
    assert last_line(done.stdout).startswith("selftest: 0 of 1 defects proven")
