"""The command line where nobody reads it, where nothing can be written, and where it is not whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import command


def ended(args: list[str], stdout: str, stderr: str = "") -> tuple[int, str]:
    """Exit code, and what came on stderr, of a command line of a shell that sends its output there."""
    redirected = f'"$@" {stdout} {stderr}'
    done = subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", redirected, "sh", *args],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


def test_who_reads_one_line_gets_one_line_and_nobody_complains() -> None:
    assert ended(command("list", "scenarios"), "| head -1 >/dev/null") == (0, "")
    assert ended(command("where", "WIRE-104"), "| true") == (0, "")


def test_a_run_that_nobody_reads_is_played_and_keeps_its_exit_code(tmp_path: Path) -> None:
    run = command("run", "-k", "page-refresh", "--defect", "loses-last-delta", "--out")
    for name, stdout, stderr in (("out", "| true", ""), ("err", ">/dev/null", "2> >(true)")):
        code, told = ended([*run, str(tmp_path / name)], stdout, stderr)
        assert code == 1, told
        assert "Traceback" not in told
        assert json.loads((tmp_path / name / "results.json").read_text())["summary"]["failed"] > 0


def test_a_stdout_that_holds_no_more_is_told_in_one_line() -> None:
    code, told = ended(command("explain", "KIT-04"), ">/dev/full")
    assert (code, told) == (4, "think-conformance: stdout cannot be written: No space left on device\n")
    code, told = ended(command("--help"), ">/dev/full")
    assert (code, told) == (4, "think-conformance: stdout cannot be written: No space left on device\n")


def test_a_kit_that_is_not_whole_gives_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "rich.py").write_text("raise ImportError('half an installation')")
    done = subprocess.run(
        command("run"),
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "half an installation" in done.stderr


def test_a_disk_that_is_full_is_no_fault_of_kit_or_target(tmp_path: Path) -> None:
    limited = ["/bin/bash", "-c", 'ulimit -S -f 8; exec "$@"', "sh"]
    serve = ["/bin/bash", "-c", f"ulimit -S -f unlimited; exec {sys.executable} -m think_reference serve"]
    target = tmp_path / "target.toml"
    target.write_text(f'[target]\nname = "x"\nagent = "conformance-agent"\nstart = {json.dumps(serve)}\n')
    done = subprocess.run(
        [*limited, *command("run", "-k", "page-refresh", "--target", target, "--out", tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert "cannot be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_before_anything_is_played_is_one_like_any_other(
    number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "rich.py").write_text(f"import os, time\nos.kill(os.getpid(), {int(number)})\ntime.sleep(60)")
    done = subprocess.run(
        command("run"),
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "think-conformance: interrupted\n")
