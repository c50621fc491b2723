"""What we ship: the wheel alone, in an empty environment, gives the three commands."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_in_an_empty_environment_gives_the_three_commands(tmp_path: Path) -> None:
    quiet = ["--quiet", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "wheel", *quiet, "--no-deps", "-w", tmp_path, ROOT], check=True, timeout=120)
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    wheel = next(tmp_path.glob("*.whl"))
    subprocess.run([*pip, "--python", python, "install", *quiet, wheel], check=True, timeout=180)
    for name in ("think-conformance", "think-proxy", "think-reference"):
        shown = subprocess.run(
            [tmp_path / "env" / "bin" / name, "--help"],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        assert "Usage:" in shown.stdout
    listed = subprocess.run(
        [tmp_path / "env" / "bin" / "think-conformance", "list", "requirements"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert "TURN-150" in listed.stdout
