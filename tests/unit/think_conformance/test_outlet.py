"""Standard streams that nobody reads, or that hold no more."""

from __future__ import annotations

import os
from pathlib import Path

from think_conformance.outlet import Outlet


def test_what_is_written_arrives(tmp_path: Path) -> None:
    with (tmp_path / "x").open("w") as stream:
        outlet = Outlet(stream)
        assert outlet.write("said") == 4
        outlet.flush()
        assert (tmp_path / "x").read_text() == "said"
        assert (outlet.error, outlet.name) == (None, str(tmp_path / "x"))


def test_a_pipe_that_nobody_reads_is_no_reason() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as stream:
        outlet = Outlet(stream)
        for _ in range(2):
            outlet.write("x" * 100_000)
            outlet.flush()
    assert outlet.error is None


def test_a_full_disk_is_kept_as_the_reason() -> None:
    with Path("/dev/full").open("w") as stream:
        outlet = Outlet(stream)
        outlet.write("said")
        outlet.flush()
        outlet.write("more")
        outlet.flush()
    assert outlet.error is not None
    assert outlet.error.strerror == "No space left on device"
