"""The deliberate defects of a target, as its own command tells them."""

from __future__ import annotations

import subprocess
import sys

import msgspec

from think_conformance.errors import UsageError
from think_conformance.targets.contract import Target

DEFECTS_TIMEOUT_S = 30


class Defect(msgspec.Struct, frozen=True):
    """A deliberate fault of a target: what it does wrong, and the requirement ids it must break."""

    name: str
    summary: str
    breaks: list[str]


def defects_of(target: Target) -> list[Defect]:
    """Asks the target's own `defects_command`; UsageError when it has none or answers nonsense."""
    if not target.defects_command:
        raise UsageError(f"the target `{target.name}` has no deliberate defects (defects_command)")
    command = [sys.executable if part == "{python}" else part for part in target.defects_command]
    try:
        answer = subprocess.run(command, capture_output=True, check=True, timeout=DEFECTS_TIMEOUT_S)
        return msgspec.json.decode(answer.stdout, type=list[Defect])
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError) as error:
        raise UsageError(f"defects_command of `{target.name}` failed: {error}") from None
