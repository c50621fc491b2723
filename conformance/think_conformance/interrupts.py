"""Ctrl-C and SIGTERM until an event loop takes them over. Light, since it is there before all imports.

Python drops a KeyboardInterrupt that is raised where nobody can catch it: in a finalizer, or in a callback
of an import. So an interrupt is also remembered, and who starts a loop asks whether there was one.
"""

from __future__ import annotations

import signal

_came = False


def listen() -> None:
    """From now on both signals raise KeyboardInterrupt, and are remembered."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)


def came() -> bool:
    """Whether there was an interrupt, also one that was dropped."""
    return _came


def _interrupt(number: int, frame: object) -> None:
    global _came
    _came = True
    raise KeyboardInterrupt
