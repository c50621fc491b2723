"""The one recorder of a case: orders what was observed, writes it as it goes, and lets others wait for it.

Owns the file `history.jsonl`, written and read. Judges nothing.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import msgspec

from think_conformance.errors import UsageError
from think_conformance.history.op import History, Kind, Record, Source
from think_conformance.history.reading import read
from think_conformance.wire.codec import dumps

PAYLOAD_LIMIT = 1_000_000
"""Bytes of JSON that one payload may take."""

HISTORY_LIMIT = 64_000_000
"""Bytes that the records of a case may take, by their lines and RECORD_COST each; a peer that never ends
cannot fill the memory. Beyond it payloads are dropped and clients stop reading (`full`)."""

RECORD_COST = 500
"""What a record takes in memory besides its content, roughly."""

_encoder = msgspec.json.Encoder()


class Append(Protocol):
    """Whatever takes records: `Recorder.append`, or a function that hands them to several."""

    def __call__(
        self, source: Source, kind: Kind, ids: dict[str, Any] | None = None, payload: Any = None, /
    ) -> object: ...


class Recorder:
    """Appends from any thread; `path` None keeps the history in memory only."""

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._records: History = []
        self._size = 0
        self._wakers: list[Callable[[], object]] = []
        self._path = path
        self._file = None if path is None else _create(path)

    @property
    def records(self) -> History:
        """A copy of what was recorded so far."""
        with self._lock:
            return list(self._records)

    def append(
        self, source: Source, kind: Kind, ids: dict[str, Any] | None = None, payload: Any = None
    ) -> Record:
        """The next record. A payload over a limit becomes `{truncated: true, size}`. UsageError when the disk
        is full."""
        with self._lock:
            kept, encoded = _bounded(payload, HISTORY_LIMIT - self._size)
            record = Record(len(self._records), self._clock(), source, kind, ids or {}, kept)
            line = _line(record, encoded)
            self._size += len(line) + RECORD_COST
            if self._file is not None:
                self._write(self._file, line)
            self._records.append(record)
            for wake in self._wakers:
                wake()
            return record

    @property
    def full(self) -> bool:
        """Whether the case has observed more than it can keep."""
        return self._size > HISTORY_LIMIT

    async def wait_for(
        self, match: Callable[[Record], bool], timeout_s: float, nth: int = 1
    ) -> Record | None:
        """The nth record, from the beginning of the case, that matches; None if the time is up first."""
        loop = asyncio.get_running_loop()
        grown = asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(grown.set)

        with self._lock:
            self._wakers.append(wake)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._nth(match, nth, grown)
        except TimeoutError:
            return None
        finally:
            with self._lock:
                self._wakers.remove(wake)

    async def _nth(self, match: Callable[[Record], bool], nth: int, grown: asyncio.Event) -> Record:
        position = 0
        while True:
            grown.clear()
            while position < len(self._records):
                record = self._records[position]
                position += 1
                if match(record):
                    nth -= 1
                    if nth == 0:
                        return record
            await grown.wait()

    def close(self) -> None:
        """Close the file. What comes later is an error of the kit."""
        if self._file is not None:
            with suppress(OSError):  # of a full disk, which was told when the record came
                self._file.close()

    def _write(self, file: BinaryIO, line: bytes) -> None:
        """A disk that is full is nobody's broken connection."""
        try:
            file.write(line)
            file.flush()
        except OSError as error:
            raise UsageError(f"{self._path} cannot be written: {error.strerror}") from None


def read_history(path: Path) -> History:
    """The records of a file. UsageError names the file and the line that is wrong."""
    try:
        with path.open("rb") as lines:
            return read(lines, str(path))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def _create(path: Path) -> BinaryIO:
    try:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another output folder") from None


def _line(record: Record, payload: bytes) -> bytes:
    """The record as a line, with the payload as it is already encoded."""
    try:
        return _encoder.encode(msgspec.structs.replace(record, payload=msgspec.Raw(payload))) + b"\n"
    except UnicodeError:  # half a surrogate pair in an id that a target chose
        return dumps(record).encode() + b"\n"


def _bounded(payload: Any, room: int) -> tuple[Any, bytes]:
    """The payload to keep and its JSON. What a peer nested too deep to be written counts as too large."""
    try:
        encoded = dumps(payload).encode()
    except RecursionError:
        return _bounded({"truncated": True, "size": 0}, room)
    if len(encoded) > min(PAYLOAD_LIMIT, max(room, 100)):
        return _bounded({"truncated": True, "size": len(encoded)}, PAYLOAD_LIMIT)
    return payload, encoded
