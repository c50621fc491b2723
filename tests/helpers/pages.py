"""The code blocks of a document, so that tests can hold what it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^```(\S+)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One fenced block: its language, the rest of its first line, its content."""

    language: str
    info: str
    content: str


def blocks(page: Path) -> list[Block]:
    """Every fenced block that names a language, in order."""
    return [Block(found[1], found[2] or "", found[3]) for found in FENCE.finditer(page.read_text())]
