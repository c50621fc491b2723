"""What a check is, how verdicts are made and how they add up.

A check is a pure function `History view -> Finding`, registered for one requirement id by
`@check("WIRE-85")`. It never decides about levels, claims or baselines: `judge` does.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

State = Literal[
    "passed",
    "failed",
    "warned",
    "not-applicable",
    "not-testable",
    "inconclusive",
    "expected-fail",
    "unexpected-pass",
    "flaky",
]


class Verdict(Struct, frozen=True, omit_defaults=True):
    """What one history says about one requirement. `evidence` holds indexes into that history."""

    requirement: str
    case: str
    state: State
    reason: str = ""
    evidence: list[int] = []
