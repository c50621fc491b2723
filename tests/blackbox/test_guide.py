"""The guide for a new implementation, word for word, and its worked example."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from commands import kit, last_line
from pages import Block, blocks

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "testing-your-implementation.md"
EXAMPLE = ROOT / "docs" / "example"
ENDED = "the block ended with"


def played(shell: list[Block], folder: Path) -> list[tuple[int, str]]:
    """Exit code and output of every block, pasted one after the other into one shell."""
    pasted = "".join(f"{block.content}printf '\\n{ENDED} %s\\n' $?\n" for block in shell)
    done = subprocess.run(
        ["/bin/bash"],
        input=pasted,
        cwd=folder,
        env={**os.environ, "KIT": str(ROOT), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=True,
    )
    pieces = re.split(rf"\n{ENDED} (\d+)\n", done.stdout)
    return [(int(code), output) for output, code in zip(pieces[0::2], pieces[1::2], strict=False)]


def uncounted(text: str) -> str:
    """The kit grows: how many scenarios and requirements there are is not what the page tells."""
    return re.sub(r"\b[0-9]+ (of [0-9]+ )?(?=requirements|cases)", "", text)


def test_every_command_of_the_guide_does_what_it_says(tmp_path: Path) -> None:
    """All but the installation, which has been done for the tests."""
    setup, *page = [block for block in blocks(GUIDE) if block.language in ("sh", "text")]
    assert (setup.info, "pip install ." in setup.content) == ("setup", True)
    endings = played([block for block in page if block.language == "sh"], tmp_path)
    output = ""
    for block in page:
        if block.language == "sh":
            code, output = endings.pop(0)
            expected = int(block.info.removeprefix("exit=") or 0)
            assert code == expected, f"{block.content}ended with {code}:\n{output}"
        else:
            assert uncounted(block.content.strip()) in uncounted(output), (
                f"after {block.content!r} comes:\n{output}"
            )
    assert endings == []


def test_the_ci_job_of_the_guide_is_the_command_that_was_shown() -> None:
    (job,) = [yaml.safe_load(block.content)["jobs"] for block in blocks(GUIDE) if block.language == "yaml"]
    runs = [step["run"] for step in job["conformance"]["steps"] if "run" in step]
    last = [block.content.strip() for block in blocks(GUIDE) if block.language == "sh"][-1]
    assert runs[-1] == f"{last} --out conformance"


def test_the_example_fails_as_its_baseline_says_and_nowhere_else(tmp_path: Path) -> None:
    told = (EXAMPLE / "baseline.toml").read_text()
    command = re.search(r"^#   think-conformance (.*)$", told, re.MULTILINE)
    assert command is not None
    selection = re.search(r'-k "(.*)" --baseline baseline.toml$', command[1])
    assert selection is not None
    done = kit(
        *("run", "--target", "my-think.toml", "-k", selection[1], "--baseline", "baseline.toml"),
        *("--seed", "7", "--out", tmp_path / "out"),
        cwd=EXAMPLE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "out" / "results.json").read_text())["summary"]
    assert summary["expected-fail"] == 3
    assert summary["passed"] > 20
    assert last_line(done.stdout).startswith("passed")


def test_the_example_stays_small_and_needs_nothing() -> None:
    program = (EXAMPLE / "think.mjs").read_text()
    assert len(program.splitlines()) <= 250
    imported = re.findall(r'from "(.*)";$', program, re.MULTILINE)
    assert imported
    assert all(name.startswith("node:") for name in imported)
