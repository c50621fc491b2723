"""Real target processes: ready, not ready, killed, paused, restarted, stopped, orphaned."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from think_conformance.shell import process as module
from think_conformance.shell import watchdog
from think_conformance.shell.process import KilledWhileStarting, TargetNotReady, TargetProcess
from think_conformance.shell.recorder import Recorder
from think_conformance.targets.contract import Target

SERVE = """
import json, os, signal, socket, subprocess, sys
data = os.environ["THINK_DATA_DIR"]
def serve(status="200 OK"):
    server = socket.create_server(("127.0.0.1", int(os.environ["THINK_PORT"])))
    while True:
        connection, _ = server.accept()
        connection.recv(65536)
        connection.sendall(f"HTTP/1.1 {status}\\r\\ncontent-length: 0\\r\\n\\r\\n".encode())
        connection.close()
"""

Make = Callable[..., TargetProcess]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder(None)


@pytest.fixture
async def make(tmp_path: Path, recorder: Recorder) -> AsyncIterator[Make]:
    made: list[TargetProcess] = []

    def build(script: str, args: tuple[str, ...] = (), **settings: Any) -> TargetProcess:
        program = tmp_path / "target.py"
        program.write_text(SERVE + textwrap.dedent(script))
        settings = {"start": ["{python}", "-S", str(program)], **settings}
        process = TargetProcess(
            Target(name="t", agent="a", **settings),
            data_dir=tmp_path / "data",
            log_path=tmp_path / "target.log",
            extra_env={"THINK_MODEL_URL": "http://model"},
            record=recorder.append,
            extra_args=args,
        )
        made.append(process)
        return process

    yield build
    for process in made:
        await process.stop()


def actions(recorder: Recorder) -> list[tuple[int, str]]:
    return [(r.ids["epoch"], r.payload["action"]) for r in recorder.records if r.kind == "process"]


def state(pid: int) -> str:
    """The state letter of a process; Z (nobody has asked for its code yet) counts as gone."""
    try:
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "gone"
    return "gone" if letter in "ZX" else letter


async def until(holds: Callable[[], bool], within_s: float = 10.0) -> None:
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 -- nothing tells of the state of a process that is not ours
            await asyncio.sleep(0.01)


async def status(port: int) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    line = await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    await writer.wait_closed()
    return int(line.split()[1])


async def test_a_started_target_answers_and_got_the_contract(
    make: Make, recorder: Recorder, tmp_path: Path
) -> None:
    process = make(
        """
        open(data + "/got", "w").write(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]))
        serve("404 Not Found")
        """,
        args=("--defect", "d"),
        cwd=str(tmp_path),
        env={"MINE": "1"},
    )
    assert not process.alive
    await process.start()
    assert (process.alive, process.epoch) == (True, 1)
    assert await status(process.port) == 404
    argv, env, cwd = json.loads((tmp_path / "data" / "got").read_text())
    assert argv == ["--defect", "d"]
    assert cwd == str(tmp_path)
    wanted = {
        "THINK_PORT": str(process.port),
        "THINK_DATA_DIR": str(tmp_path / "data"),
        "THINK_MODEL_URL": "http://model",
        "MINE": "1",
    }
    assert wanted.items() <= env.items()
    assert actions(recorder) == [(1, "start"), (1, "ready")]
    assert recorder.records[0].payload["pid"] == process.pid


async def test_a_kill_ends_the_whole_group_and_a_restart_keeps_port_and_data(
    make: Make, recorder: Recorder, tmp_path: Path
) -> None:
    process = make(
        """
        child = subprocess.Popen([sys.executable, "-S", "-c", "import signal; signal.pause()"])
        open(data + "/children", "a").write(f"{child.pid}\\n")
        serve()
        """
    )
    await process.start()
    port, first = process.port, process.pid
    await process.kill()
    assert not process.alive
    await process.restart()
    children = [int(line) for line in (tmp_path / "data" / "children").read_text().split()]
    await until(lambda: state(children[0]) == "gone")
    assert state(children[1]) != "gone"
    assert (process.port, process.epoch) == (port, 2)
    assert process.pid != first
    assert await status(port) == 200
    assert actions(recorder) == [
        (1, "start"),
        (1, "ready"),
        (1, "kill"),
        (1, "exit"),
        (2, "start"),
        (2, "ready"),
    ]
    assert recorder.records[3].payload == {"action": "exit", "pid": first, "code": -signal.SIGKILL}


async def test_a_restart_of_a_running_target_kills_it_first(make: Make, recorder: Recorder) -> None:
    process = make("serve()")
    await process.start()
    await process.restart()
    assert await status(process.port) == 200
    assert actions(recorder)[2:4] == [(1, "kill"), (1, "exit")]


async def test_a_target_that_ends_by_itself_is_seen_and_its_children_end_too(
    make: Make, recorder: Recorder, tmp_path: Path
) -> None:
    process = make(
        """
        child = subprocess.Popen([sys.executable, "-S", "-c", "import signal; signal.pause()"])
        open(data + "/child", "w").write(str(child.pid))
        signal.signal(signal.SIGUSR1, lambda *_: os._exit(7))
        serve()
        """
    )
    await process.start()
    assert process.pid is not None
    os.kill(process.pid, signal.SIGUSR1)
    seen = await recorder.wait_for(lambda r: r.payload["action"] == "exit", 10)
    assert seen is not None
    assert seen.payload["code"] == 7
    assert not process.alive
    await until(lambda: state(int((tmp_path / "data" / "child").read_text())) == "gone")


async def test_term_sends_the_stop_signal_and_a_restart_waits_for_a_polite_end(
    make: Make, recorder: Recorder, tmp_path: Path
) -> None:
    process = make(
        """
        def end(*_):
            open(data + "/ended", "w").write("politely")
            os._exit(0)
        signal.signal(signal.SIGINT, end)
        serve()
        """,
        stop_signal="SIGINT",
    )
    await process.start()
    await process.term()
    await process.restart()
    assert (tmp_path / "data" / "ended").read_text() == "politely"
    assert actions(recorder)[2:5] == [(1, "term"), (1, "exit"), (2, "start")]


async def test_a_paused_target_is_frozen_until_it_may_go_on(make: Make, recorder: Recorder) -> None:
    process = make("serve()")
    await process.start()
    pid = process.pid
    assert pid is not None
    await process.pause()
    await until(lambda: state(pid) == "T")
    assert process.alive
    await process.cont()
    assert await status(process.port) == 200
    assert actions(recorder)[2:] == [(1, "pause"), (1, "continue")]


@pytest.mark.parametrize("paused", [False, True])
async def test_a_target_that_ignores_the_stop_signal_is_killed_after_the_grace(
    make: Make, recorder: Recorder, paused: bool
) -> None:
    process = make("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nserve()", restart_grace_s=0.1)
    await process.start()
    if paused:
        await process.pause()
    await process.stop()
    assert not process.alive
    assert [action for _, action in actions(recorder)][-2:] == ["kill", "exit"]


async def test_a_paused_target_is_stopped_politely(make: Make, recorder: Recorder) -> None:
    process = make("signal.signal(signal.SIGTERM, lambda *_: os._exit(3))\nserve()")
    await process.start()
    await process.pause()
    await process.stop()
    assert recorder.records[-1].payload["code"] == 3


async def test_a_frozen_target_goes_on_when_it_has_to_run(make: Make, recorder: Recorder) -> None:
    process = make("serve()")
    await process.start()
    await process.pause()
    await process.ensure_running()
    assert await status(process.port) == 200
    assert actions(recorder)[2:] == [(1, "pause"), (1, "continue")]
    await process.ensure_running()
    assert len(actions(recorder)) == 4


@pytest.mark.parametrize("paused", [False, True])
async def test_a_target_on_its_way_out_may_end_before_it_starts_again(
    make: Make, recorder: Recorder, tmp_path: Path, paused: bool
) -> None:
    process = make(
        """
        def end(*_):
            import time
            time.sleep(0.2)
            open(data + "/ended", "w").write("politely")
            os._exit(0)
        signal.signal(signal.SIGTERM, end)
        serve()
        """
    )
    await process.start()
    if paused:
        await process.pause()
    await process.term()
    assert process.alive
    await process.ensure_running()
    assert (tmp_path / "data" / "ended").read_text() == "politely"
    assert (process.alive, process.epoch) == (True, 2)
    assert "kill" not in [action for _, action in actions(recorder)]


@pytest.mark.parametrize("way", ["ensure_running", "restart"])
async def test_many_who_want_a_dead_target_to_run_start_it_once(
    make: Make, recorder: Recorder, way: str
) -> None:
    process = make("serve()")
    await process.start()
    await process.kill()
    await asyncio.gather(*(getattr(process, way)() for _ in range(3)))
    assert (process.alive, process.epoch) == (True, 2)
    assert actions(recorder)[4:] == [(2, "start"), (2, "ready")]


@pytest.mark.parametrize("action", ["kill", "term", "pause"])
async def test_a_target_that_is_struck_while_it_starts_is_nobodys_failure(
    make: Make, recorder: Recorder, action: str
) -> None:
    process = make("signal.pause()", ready_timeout_s=1.0)
    starting = asyncio.create_task(process.start())
    await recorder.wait_for(lambda r: r.payload["action"] == "start", 10)
    await getattr(process, action)()
    with pytest.raises(KilledWhileStarting):
        await starting
    assert not process.alive


async def test_an_old_kill_does_not_excuse_a_start_that_fails_for_another_reason(make: Make) -> None:
    process = make("serve()", restart_grace_s=0.1)
    await process.start()
    await process.kill()
    with (
        socket.create_server(("127.0.0.1", process.port)),
        pytest.raises(TargetNotReady, match="is taken"),
    ):
        await process.restart()


@pytest.mark.parametrize(
    ("script", "settings", "told"),
    [
        ("", {"start": ["no-such-command"]}, "command not found: `no-such-command`"),
        ("", {"start": ["./no/such"]}, "command not found: `./no/such`"),
        ("sys.exit(3)", {}, "exited at once with code 3; see .*target.log, which is empty"),
        ("print('a\\n\\x1b[31mboom\\x07', flush=True); sys.exit(1)", {}, r'which ends: "\[31mboom"'),
        ("os.kill(os.getpid(), 9)", {}, "was ended at once by signal 9"),
        ("signal.pause()", {"ready_timeout_s": 0.3}, "never answered below 500 within 0.3 s"),
        ("serve('503 Busy')", {"ready_timeout_s": 0.3}, "never answered below 500 within 0.3 s"),
    ],
)
async def test_a_target_that_does_not_get_ready_is_told_in_one_line_and_ended(
    make: Make, script: str, settings: dict[str, Any], told: str
) -> None:
    process = make(script, **settings)
    with pytest.raises(TargetNotReady, match=told) as caught:
        await process.start()
    assert len(str(caught.value).splitlines()) == 1
    assert not process.alive


async def test_a_taken_port_is_told_before_anything_is_started(make: Make, recorder: Recorder) -> None:
    process = make("serve()")
    with (
        socket.create_server(("127.0.0.1", process.port)),
        pytest.raises(TargetNotReady, match=f"port {process.port} is taken"),
    ):
        await process.start()
    assert recorder.records == []


async def test_an_answer_from_outside_the_group_does_not_count_as_ready(make: Make, tmp_path: Path) -> None:
    process = make(
        """
        if len(sys.argv) > 1:
            open(data + "/daemon", "w").write(str(os.getpid()))
            serve()
        subprocess.Popen([sys.executable, "-S", __file__, "daemon"], start_new_session=True)
        signal.pause()
        """
    )
    try:
        with pytest.raises(TargetNotReady, match="outside the target's process group"):
            await process.start()
    finally:
        os.kill(int((tmp_path / "data" / "daemon").read_text()), signal.SIGKILL)


async def test_the_watchdog_holds_a_group_no_longer_than_it_lives(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening = tmp_path / "listening.py"
    listening.write_text(f"import sys; open({str(tmp_path / 'told')!r}, 'w').write(sys.stdin.read())")
    monkeypatch.setattr(watchdog, "__file__", str(listening))
    process = make("serve()")
    await process.start()
    first = process.pid
    await process.restart()
    second = process.pid
    await process.stop()
    told = [int(line) for line in (tmp_path / "told").read_text().split()]
    assert told == [first, -first, second, -second]  # type: ignore[operator]


KIT = """
import asyncio, sys
from pathlib import Path
from think_conformance.shell import process as module
from think_conformance.shell import watchdog
from think_conformance.shell.process import TargetProcess
from think_conformance.targets.contract import Target
folder = Path(sys.argv[1])
target = Target(name="t", agent="a", start=[sys.executable, "-S", str(folder / "orphan.py")])
process = TargetProcess(target, data_dir=folder / "data", log_path=folder / "log", extra_env={},
                        record=lambda *_: None)
asyncio.run(process.start())
"""


async def test_nothing_outlives_a_kit_that_is_killed_even_while_it_starts_a_target(tmp_path: Path) -> None:
    pids = tmp_path / "data" / "pids"
    (tmp_path / "orphan.py").write_text(
        textwrap.dedent(
            """
            import os, signal, subprocess, sys
            child = subprocess.Popen([sys.executable, "-S", "-c", "import signal; signal.pause()"])
            path = os.environ["THINK_DATA_DIR"] + "/pids"
            open(path + ".new", "w").write(f"{os.getpid()} {child.pid}")
            os.rename(path + ".new", path)
            signal.pause()
            """
        )
    )
    kit = await asyncio.create_subprocess_exec(sys.executable, "-c", KIT, str(tmp_path))
    try:
        await until(pids.exists)
        target, child = (int(pid) for pid in pids.read_text().split())
        assert state(target) != "gone"
    finally:
        kit.kill()
        await kit.wait()
    await until(lambda: state(target) == "gone" and state(child) == "gone")


async def test_a_stop_that_was_cancelled_can_be_done_again(tmp_path: Path) -> None:
    """An interrupt may strike inside the stop of a target; the clean-up then stops it once more."""
    watchdog = module._Watchdog()
    await watchdog.pipe()
    first = asyncio.create_task(watchdog.close())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await watchdog.close()
