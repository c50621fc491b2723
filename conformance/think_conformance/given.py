"""A file that a user named, read: one home for what can be wrong with any of them."""

from __future__ import annotations

from pathlib import Path

from think_conformance.errors import UsageError

LIMIT = 16_000_000
"""Bytes of such a file. A device that never ends cannot fill the memory."""


def text_of(path: Path, what: str) -> str:
    """Its text, UTF-8. UsageError, one line that begins with `what` it is, when it has none or too much."""
    try:
        with path.open("rb") as file:
            content = file.read(LIMIT + 1)
        if len(content) > LIMIT:
            raise UsageError(f"{what} {path} cannot be read: it has more than {LIMIT} bytes")
        return content.decode()
    except OSError as error:
        raise UsageError(f"{what} {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} {path} cannot be read: {error}") from None
