"""`target init` and `target check`: every diagnosis, each on an adapter that has just that wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import command, kit, last_line, processes_that_mention
from think_conformance.shell.ports import free_port
from think_conformance.targets.contract import load_target

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"
SERVE = f"{sys.executable} -m think_reference serve"


def described(folder: Path, shell: str, claims: str = "core", **more: str) -> Path:
    """A target file whose `start` is that line of shell; `more` are TOML values."""
    keys = {
        "name": '"t"',
        "agent": '"conformance-agent"',
        "start": f"['/bin/sh', '-c', '''{shell}''']",
        "claims": json.dumps(claims.split()),
        "heartbeat_s": "1",
        "ready_timeout_s": "10",
        **more,
    }
    path = folder / "target.toml"
    path.write_text("\n".join(["[target]", *(f"{key} = {value}" for key, value in keys.items())]))
    return path


def diagnoses(target: Path, code: int = 1) -> dict[str, str]:
    """What `target check` finds, by name; the exit code is that one and nothing is left running."""
    out = target.parent / "out"
    done = kit("target", "check", target, "--out", out)
    assert done.returncode == code, done.stdout + done.stderr
    assert last_line(done.stdout).startswith("passed" if code == 0 else "failed: ")
    assert processes_that_mention(str(target.parent)) == []
    lines = done.stdout.splitlines()[:-1]
    found = dict(line.split(": ", 1) for line in lines)
    assert len(set(lines)) == len(lines), "each is told once"
    assert all("; " in text for text in found.values()), "a cause and a next step"
    return found


def altered(folder: Path, old: str, new: str) -> str:
    """The shell line that serves the Node example with one thing in it changed."""
    text = (EXAMPLE / "think.mjs").read_text()
    assert old in text
    (folder / "think.mjs").write_text(text.replace(old, new))
    return f"exec node {folder}/think.mjs"


def test_the_reference_has_nothing_wrong(tmp_path: Path) -> None:
    target = described(tmp_path, f"exec {SERVE}", "core resume control recovery")
    assert diagnoses(target, 0) == {}


def test_a_target_that_never_answers(tmp_path: Path) -> None:
    found = diagnoses(described(tmp_path, "exec sleep 60", ready_timeout_s="0.3"), 5)
    assert "never answered below 500 within 0.3 s" in found["never-ready"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_check_that_is_interrupted_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    started = tmp_path / "started"
    target = described(tmp_path, f"touch {started}; exec sleep 60", ready_timeout_s="60")
    (tmp_path / "tmp").mkdir()
    running = subprocess.Popen(
        command("target", "check", target, "--out", tmp_path / "out"),
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not started.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    running.send_signal(number)
    _, told = running.communicate(timeout=30)
    assert (running.returncode, "Traceback" in told) == (130, False), told
    assert "interrupted; histories and log so far: " in told
    assert list((tmp_path / "tmp").iterdir()) == []
    assert processes_that_mention(str(tmp_path)) == []


def test_a_target_that_ends_at_once_is_quoted(tmp_path: Path) -> None:
    found = diagnoses(described(tmp_path, "echo no database >&2; exit 3"), 5)
    assert "exited at once with code 3; see" in found["never-ready"]
    assert 'which ends: "no database"' in found["never-ready"]


def test_a_target_that_opens_no_websocket_there(tmp_path: Path) -> None:
    found = diagnoses(described(tmp_path, f"exec {SERVE}", path='"/elsewhere/{name}"'), 5)
    assert "opens no WebSocket at /elsewhere/NAME" in found["never-ready"]


def test_a_target_that_listens_elsewhere(tmp_path: Path) -> None:
    port = free_port()
    found = diagnoses(described(tmp_path, f"THINK_PORT={port} exec {SERVE}", ready_timeout_s="2"))
    assert list(found) == ["port-ignored"]
    assert f"it listens on {port} and not on THINK_PORT" in found["port-ignored"]


@pytest.mark.parametrize("leader", ["exit 0", "exec sleep 60"])
def test_a_target_that_forks_away(leader: str, tmp_path: Path) -> None:
    told, daemon = tmp_path / "pid", tmp_path / "daemon.sh"
    daemon.write_text(f"echo $$ > {told}; exec {SERVE}")
    away = f"setsid /bin/sh {daemon} & until test -s {told}; do sleep 0.01; done; {leader}"
    target = described(tmp_path, away)
    try:
        done = kit("target", "check", target, "--out", tmp_path / "out")
        assert done.returncode == 1, done.stdout + done.stderr
        assert done.stdout.startswith("forks-away: a process outside the target's process group listens")
    finally:
        os.kill(int(told.read_text()), signal.SIGKILL)


def test_a_target_that_keeps_its_data_elsewhere(tmp_path: Path) -> None:
    fresh = f"THINK_DATA_DIR=$(mktemp -d -p {tmp_path}) exec {SERVE}"
    assert list(diagnoses(described(tmp_path, fresh))) == ["forgets"]


@pytest.mark.parametrize("starts", [1, 2])
def test_a_target_that_starts_only_so_often(starts: int, tmp_path: Path) -> None:
    counted = f"echo >> {tmp_path}/starts; test $(wc -l < {tmp_path}/starts) -gt {starts} && exit 7"
    found = diagnoses(described(tmp_path, f"{counted}; exec {SERVE}", "core recovery"))
    assert list(found) == ["no-restart"]
    assert "exited at once with code 7" in found["no-restart"]


def test_a_target_that_asks_another_model(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    found = diagnoses(described(tmp_path, f"THINK_MODEL_URL=http://127.0.0.1:{port}/v1 exec {SERVE}"))
    assert list(found) == ["model-url-ignored"]
    assert "the client was told: " in found["model-url-ignored"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("text(m).trim()", "but not as it was sent"),
        ('"a summary of what the user wants"', "without the user's text"),
    ],
)
def test_a_target_that_changes_the_text(content: str, says: str, tmp_path: Path) -> None:
    serve = altered(tmp_path, "content: text(m)", f"content: {content}")
    found = diagnoses(described(tmp_path, serve, agent='"my-agent"'))
    assert list(found) == ["text-changed"]
    assert says in found["text-changed"]


def test_a_target_that_does_not_ask_for_a_stream(tmp_path: Path) -> None:
    serve = altered(tmp_path, "stream: true", "stream: false")
    found = diagnoses(described(tmp_path, serve, agent='"my-agent"'))
    assert "a call without `stream`: true" in found["model-call-refused"]


def test_a_target_that_does_not_wake_by_itself(tmp_path: Path) -> None:
    asleep = f"exec {SERVE} --defect no-terminal-after-crash"
    found = diagnoses(described(tmp_path, asleep, "core recovery"))
    assert list(found) == ["heartbeat-too-slow"]
    assert "should go on by itself within 1 s, and it did not" in found["heartbeat-too-slow"]


def test_a_target_whose_stop_does_nothing(tmp_path: Path) -> None:
    found = diagnoses(described(tmp_path, f"exec {SERVE} --defect ignores-cancel", "core control"))
    assert list(found) == ["claim-not-honoured"]
    assert "control is claimed" in found["claim-not-honoured"]


def test_a_target_that_does_not_resume(tmp_path: Path) -> None:
    serve = altered(tmp_path, "cf_agent_stream_resume_ack", "no_such_frame")
    found = diagnoses(described(tmp_path, serve, "core resume", agent='"my-agent"'))
    assert list(found) == ["forgets", "claim-not-honoured"]
    assert "resume is claimed" in found["claim-not-honoured"]


def test_a_target_that_cannot_be_evicted(tmp_path: Path) -> None:
    serve = altered(tmp_path, 'method === "evict"', "false")
    found = diagnoses(described(tmp_path, serve, "core recovery", agent='"my-agent"'))
    assert "recovery is claimed, and `evict` is refused: " in found["claim-not-honoured"]


def test_a_target_whose_turns_have_no_end(tmp_path: Path) -> None:
    serve = altered(tmp_path, "this.tell(turn.terminal);", "")
    found = diagnoses(described(tmp_path, serve, agent='"my-agent"'))
    assert list(found) == ["claim-not-honoured"]
    assert "core is claimed, and no terminal frame came" in found["claim-not-honoured"]


def test_a_target_whose_tools_tell_nobody(tmp_path: Path) -> None:
    silent = f"unset THINK_EFFECTS_URL; exec {SERVE}"
    assert list(diagnoses(described(tmp_path, silent, "core control"))) == ["effects-url-ignored"]


def test_a_leg_that_nobody_can_strike(tmp_path: Path) -> None:
    found = diagnoses(described(tmp_path, f"exec {SERVE}", legs='["client", "routing"]'))
    assert "`legs` names routing" in found["claim-not-honoured"]


def test_what_can_be_got_wrong_is_one_line_and_exit_code_4(tmp_path: Path) -> None:
    for args, says in (
        (("check", tmp_path / "none.toml"), "none.toml does not exist"),
        (("check", "ws://127.0.0.1:1"), "only what the kit starts itself can be checked"),
        (("init", tmp_path / "none" / "t.toml"), "cannot write"),
    ):
        done = kit("target", *args, cwd=tmp_path)
        assert done.returncode == 4, done.stdout + done.stderr
        assert says in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_init_writes_a_file_that_loads_and_overwrites_nothing(tmp_path: Path) -> None:
    done = kit("target", "init", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = tmp_path / "my-think.toml"
    assert load_target(str(written)).start == ["node", "server.mjs"]
    written.write_text("mine")
    again = kit("target", "init", cwd=tmp_path)
    assert (again.returncode, written.read_text()) == (4, "mine")
    assert "exists and is left as it is" in again.stderr
