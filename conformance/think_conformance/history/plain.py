"""Text that came from a target, made harmless: nothing in it moves a cursor, turns the line around
or fills the screen."""

from __future__ import annotations

LIMIT = 1000
"""Characters of one text in a report."""


def plain(text: str, limit: int = LIMIT) -> str:
    """`text` with every character that does not print written as its escape (controls, bidirectional
    marks, line breaks, lone surrogates), cut to `limit` characters. Plain text stays as it is."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:limit])
    return shown if len(text) <= limit and len(shown) <= limit else f"{shown[: limit - 1]}…"
