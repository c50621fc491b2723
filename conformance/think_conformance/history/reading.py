"""The lines of a `history.jsonl`, read back. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from think_conformance.errors import UsageError
from think_conformance.history.op import History, Record
from think_conformance.wire.codec import loads


def read(lines: Iterable[bytes], name: str) -> History:
    """The records. UsageError names the file, as `name`, and the line that is wrong."""
    history: History = []
    for number, line in enumerate(lines, start=1):
        try:
            record = msgspec.convert(loads(line), Record)
        except ValueError as error:
            raise UsageError(f"{name}, line {number}: no record of a history: {error}") from None
        if record.index != len(history):
            raise UsageError(f"{name}, line {number}: index {record.index} where {len(history)} is due")
        history.append(record)
    return history
