"""How deep a JSON value from a client may be nested before it is kept.

What one call stack could just read, a deeper one could not write again.
"""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 100


def too_deep(value: Any) -> bool:
    """Whether arrays and objects are nested more than MAX_DEPTH deep."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
