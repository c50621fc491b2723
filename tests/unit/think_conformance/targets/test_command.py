"""What a started target gets."""

from __future__ import annotations

import sys
from pathlib import Path

from think_conformance.targets.command import command_line, environment, executable
from think_conformance.targets.contract import Target


def test_the_interpreter_stands_for_its_placeholder_and_arguments_come_last() -> None:
    assert command_line(["{python}", "-m", "x"], ["--defect", "d"]) == [
        sys.executable,
        "-m",
        "x",
        "--defect",
        "d",
    ]


def test_the_contract_wins_over_the_file_and_the_file_over_what_is_inherited() -> None:
    target = Target(name="n", agent="a", start=["x"], env={"A": "file", "THINK_PORT": "1"})
    env = environment(
        target,
        inherited={"A": "kit", "B": "kit"},
        port=9,
        data_dir=Path("/d"),
        extra={"THINK_MODEL_URL": "u"},
    )
    assert env == {"A": "file", "B": "kit", "THINK_PORT": "9", "THINK_DATA_DIR": "/d", "THINK_MODEL_URL": "u"}


def test_a_command_is_found_by_path_or_relative_to_its_folder(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "serve"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    assert executable("bin/serve", str(tmp_path), None) is None
    script.chmod(0o755)
    assert executable("bin/serve", str(tmp_path), None) == str(script)
    assert executable("serve", None, str(script.parent)) == str(script)
    assert executable("serve", None, "/nowhere") is None
