"""`results.json`: the report itself, for machines. Its schema is published in `schema/`."""

from __future__ import annotations

import msgspec

from think_reports.model import RunReport


def render(report: RunReport) -> str:
    """The JSON text of a report."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
