"""The watchdog, alone: which groups it holds, and that it ends them when its pipe closes."""

from __future__ import annotations

import signal
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from think_conformance.shell import watchdog


@given(st.lists(st.tuples(st.integers(1, 5), st.booleans())))
def test_armed_is_what_was_armed_last_and_not_disarmed(steps: list[tuple[int, bool]]) -> None:
    lines = [b"%d\n" % (group if arm else -group) for group, arm in steps]
    last = dict(steps)
    assert watchdog.armed(lines) == {group for group, arm in last.items() if arm}


def test_at_the_end_of_its_pipe_it_kills_the_armed_groups_only() -> None:
    armed, disarmed = (
        subprocess.Popen(
            [sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
        )
        for _ in range(2)
    )
    lines = f"{armed.pid}\n{disarmed.pid}\n-{disarmed.pid}\n"
    try:
        subprocess.run(
            [sys.executable, "-I", "-S", watchdog.__file__], input=lines.encode(), check=True, timeout=10
        )
        assert armed.wait(10) == -signal.SIGKILL
        assert disarmed.poll() is None
    finally:
        for process in (armed, disarmed):
            process.kill()
            process.communicate()
