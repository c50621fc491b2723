"""Running the project's commands as a user does: as processes, with bounded time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def kit(
    *args: str | Path, cwd: Path | None = None, timeout_s: float = 90
) -> subprocess.CompletedProcess[str]:
    """`think-conformance ARGS`, to its end."""
    return subprocess.run(
        command(*args), capture_output=True, text=True, timeout=timeout_s, cwd=cwd, check=False
    )


def command(*args: str | Path) -> list[str]:
    """The kit's command line, by the interpreter of the tests."""
    return [sys.executable, "-m", "think_conformance", *map(str, args)]


def last_line(text: str) -> str:
    """The last line that is not blank."""
    return text.strip().splitlines()[-1]


def processes_that_mention(text: str) -> list[str]:
    """Command lines of living processes that contain `text` in their arguments or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command_line = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if text.encode() in command_line + environment:
            found.append(command_line.replace(b"\0", b" ").decode(errors="replace"))
    return found
