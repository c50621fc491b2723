"""The time that the core is given. Epoch seconds: the journal keeps them across restarts."""

from __future__ import annotations

import time


def now() -> float:
    """Seconds since the epoch."""
    return time.time()
