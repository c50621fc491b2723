"""When recovery gives up. So far one bound: attempts without progress (TURN-63, TURN-75, TURN-86)."""

from __future__ import annotations

DEBOUNCE_S = 30.0
"""Interruptions this close together without progress count once: a host in a crash loop is one
fault, not many (TURN-75)."""


def next_attempt(attempt: int, evaluated_at: float, *, progress: bool, now: float) -> int:
    """The number of the recovery attempt that an interruption found at `now` (epoch seconds) leads to.
    `attempt` and `evaluated_at` are those of the last evaluation, 0 if there was none."""
    if attempt == 0 or progress:
        return 1
    return attempt if now - evaluated_at < DEBOUNCE_S else attempt + 1


def exhausted(attempt: int, max_attempts: int) -> bool:
    """Whether this attempt is one too many (`max_attempts_exceeded`)."""
    return attempt > max_attempts
