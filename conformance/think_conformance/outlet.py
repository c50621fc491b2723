"""Standard output and error of the command line: a reader that is gone, or a full disk, ends no run."""

from __future__ import annotations

import os
from typing import Any, TextIO


class Outlet:
    """A text stream. What it cannot write goes nowhere, and so does all that comes after; `error` is the
    first reason why, None when there is none. A pipe that nobody reads is no reason: who closed it knows."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        """All of it, or nothing."""
        try:
            self._stream.write(text)
        except OSError as error:
            self._give_up(error)
        return len(text)

    def flush(self) -> None:
        """As far as it goes."""
        try:
            self._stream.flush()
        except OSError as error:
            self._give_up(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _give_up(self, error: OSError) -> None:
        """The stream leads nowhere from now on, so that what it still holds cannot fail again."""
        if self.error is None and not isinstance(error, BrokenPipeError):
            self.error = error
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
