"""Ends process groups when the kit dies. Run by its path as a process of its own, whose standard input
is a pipe the kit holds: a line `<group>` arms, `-<group>` disarms, end of file means the kit is gone.

Imports next to nothing, so that it starts in a few milliseconds.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable


def armed(lines: Iterable[bytes]) -> set[int]:
    """The groups still armed when the lines end."""
    groups: set[int] = set()
    for line in lines:
        number = int(line)
        if number > 0:
            groups.add(number)
        else:
            groups.discard(-number)
    return groups


def main() -> None:
    """Wait for the end of the kit, then end what it left."""
    for group in armed(sys.stdin.buffer):
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            continue  # it ended by itself


if __name__ == "__main__":
    main()
