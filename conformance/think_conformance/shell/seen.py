"""Whether a record of the history is the moment a plan speaks of (`seen`)."""

from __future__ import annotations

from typing import Any

from think_conformance.history.op import Record
from think_proxy.match import contains, contains_nested
from think_proxy.plan import Seen


def sees(seen: Seen, record: Record) -> bool:
    """Everything but `nth`, which counts the records for which this is true."""
    if seen.source not in (None, record.source) or seen.kind not in (None, record.kind):
        return False
    if seen.client not in (None, record.ids.get("client")):
        return False
    if seen.gate not in (None, record.ids.get("gate")):
        return False
    content: Any = record.payload
    if record.kind in ("frame-in", "frame-out") and isinstance(content, dict):
        content = content.get("frame")
    if seen.json is not None and not contains(content, seen.json):
        return False
    return seen.nested is None or contains_nested(content, seen.nested)
