"""Files that are written whole or not at all: a reader never sees half of one."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read. OSError leaves what was there before."""
    aside = path.with_name(f".{path.name}.part")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    aside.replace(path)
