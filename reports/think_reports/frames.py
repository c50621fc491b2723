"""One record of a history as one short line that a person can read. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from think_conformance.history.op import Record
from think_reports.plain import plain

LINE = 400
"""Characters of one line."""

_TEXT, _ITEMS, _DEPTH = 60, 6, 6
_NAMES = ("connection", "operation", "marker", "call", "gate", "fault")


def line(record: Record, began: float) -> str:
    """`#41 +0.532 s  client b.1 frame-in {…}`: index, seconds since `began`, who, what."""
    names = [str(record.ids[name]) for name in _NAMES if name in record.ids]
    payload = record.payload
    if isinstance(payload, dict) and isinstance(payload.get("frame"), dict):
        payload = payload["frame"]
    shown = "" if payload in (None, {}) else msgspec.json.encode(_brief(payload, _DEPTH)).decode()
    words = [record.source, *names, record.kind, shown]
    return plain(f"#{record.index} +{record.at - began:.3f} s  {' '.join(w for w in words if w)}", LINE)


def _brief(value: Any, depth: int) -> Any:
    """The value with long texts, long lists and deep nesting cut, so that both ends of it show."""
    if isinstance(value, str):
        return plain(value, _TEXT)
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        return "…"
    if isinstance(value, list):
        left = [f"… {len(value) - _ITEMS} more"] if len(value) > _ITEMS else []
        return [_brief(item, depth - 1) for item in value[:_ITEMS]] + left
    keys = list(value)[: 2 * _ITEMS]
    return {plain(str(key), _TEXT): _brief(value[key], depth - 1) for key in keys}
