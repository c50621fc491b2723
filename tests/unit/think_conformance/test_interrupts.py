"""An interrupt that Python drops is not lost."""

from __future__ import annotations

import subprocess
import sys

DROPPED = """
import asyncio, os, signal
from think_conformance import interrupts
from think_conformance.cli.endings import interruptible

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.{number})
        for _ in range(1000):  # the handler runs between two of these
            pass

interrupts.listen()
Finalized()
try:
    interruptible(asyncio.sleep(60))
except asyncio.CancelledError:
    print("cancelled")
"""


def test_an_interrupt_that_a_finalizer_swallowed_ends_the_work() -> None:
    for number in ("SIGINT", "SIGTERM"):
        code = DROPPED.format(number=number)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
        assert "Exception ignored" in done.stderr, "it was dropped"
        assert done.stdout == "cancelled\n"
