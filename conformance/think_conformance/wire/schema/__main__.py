"""Write the published schemas again: `python -m think_conformance.wire.schema`."""

from __future__ import annotations

from pathlib import Path

from think_conformance.wire.schema import TITLES, schema

for side in TITLES:
    Path(__file__).with_name(f"{side}.json").write_text(schema(side))
