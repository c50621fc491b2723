"""The commands of the target files tell what they are for."""

from __future__ import annotations

import subprocess
import sys


def test_help_names_the_commands() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "think_conformance.targets.cloudflare_think", "-h"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert [word for word in ("install", "serve", "document") if word in said] == [
        "install",
        "serve",
        "document",
    ]
