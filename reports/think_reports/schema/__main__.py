"""Write the published schema again: `python -m think_reports.schema`."""

from __future__ import annotations

from pathlib import Path

from think_reports.schema import schema

Path(__file__).with_name("results.json").write_text(schema())
