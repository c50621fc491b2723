"""Print the page of a file of decisions: `python -m think_conformance.differences DECISIONS.toml`."""

from __future__ import annotations

import sys
from pathlib import Path

from think_conformance.differences.decisions import load
from think_conformance.differences.table import page

for file in sys.argv[1:]:
    print(page(load(Path(file).read_text(encoding="utf-8"), file)), end="")
