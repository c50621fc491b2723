"""`think-conformance run` on the reference, and what a user can get wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from commands import command, kit, last_line, processes_that_mention


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """One run of everything on the clean reference."""
    out = tmp_path_factory.mktemp("clean") / "out"
    return kit("run", "--target", "reference", "--seed", "7", "--out", out), out


def test_the_clean_reference_passes(clean: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    done, _ = clean
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == "seed 7"
    assert last_line(done.stdout).startswith("passed")


def test_the_run_directory_is_complete(clean: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    _, out = clean
    results = json.loads((out / "results.json").read_text())
    assert (results["schema"], results["seed"], results["exit_code"]) == (1, 7, 0)
    assert json.loads((out / "env.json").read_text())["exit_code"] == 0
    assert ElementTree.parse(out / "junit.xml").getroot().tag == "testsuites"
    for case in results["cases"]:
        assert (out / "plan" / f"{case['case']}.json").exists()
        history = (out / "cases" / case["case"] / "history.jsonl").read_text().splitlines()
        assert [json.loads(line)["index"] for line in history] == list(range(len(history)))


def test_every_planned_fault_fired(clean: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    _, out = clean
    faults = [f for case in json.loads((out / "results.json").read_text())["cases"] for f in case["faults"]]
    assert len(faults) >= 2
    assert all(fault["fired"] for fault in faults)


def test_check_judges_the_same_from_disk(clean: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    _, out = clean
    done = kit("check", out)
    assert done.returncode == 0, done.stdout + done.stderr
    stored = {
        (v["requirement"], v["case"], v["state"]) for v in json.loads((out / "verdicts.json").read_text())
    }
    judged = {
        (line.split()[1], line.split()[2].rstrip(":"), line.split()[0])
        for line in done.stdout.splitlines()[:-1]
    }
    assert judged == stored


def test_check_of_repeats_that_differ_is_flaky(
    clean: tuple[subprocess.CompletedProcess[str], Path], tmp_path: Path
) -> None:
    _, out = clean
    case = "resume.reset-during-output"
    text = (out / "cases" / case / "history.jsonl").read_text()
    for name in (case, f"{case}@2"):
        (tmp_path / "cases" / name).mkdir(parents=True)
        records = [json.loads(line) for line in text.splitlines()]
        records[0]["payload"]["case"] = name
        for record in records:
            if record["kind"] == "fault-fired":
                record["payload"]["ordinal"] = len(name)
        lines = [json.dumps(record) + "\n" for record in records]
        (tmp_path / "cases" / name / "history.jsonl").write_text("".join(lines))
    done = kit("check", tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert last_line(done.stdout).startswith("flaky: ")


def test_check_judges_the_profiles_of_the_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = kit("run", "--profile", "control", "-k", "control.stop-during-output", "--out", out)
    judged = kit("check", out)
    assert (judged.returncode, done.returncode) == (0, 0), judged.stdout + judged.stderr
    assert len(judged.stdout.splitlines()) - 1 == len(json.loads((out / "verdicts.json").read_text()))


def target_file(folder: Path, body: str, agent: str = "a") -> Path:
    path = folder / "target.toml"
    path.write_text(
        f'[target]\nname = "mine"\nagent = "{agent}"\n'
        f'claims = ["core", "resume", "recovery", "control"]\nlegs = ["client", "model"]\n{body}'
    )
    return path


def program(folder: Path, text: str) -> str:
    (folder / "program.py").write_text(text)
    return f'start = ["{{python}}", "{folder / "program.py"}"]\n'


WRONG = {
    "profile": (("--profile", "resum"), 4, "did you mean `resume`?"),
    "requirement": (("-k", "WIRE-1044"), 4, "did you mean `WIRE-104`?"),
    "expression": (("-k", "resume and ("), 4, "cannot be read"),
    "defect": (("--defect", "two-terminal"), 4, "did you mean `two-terminals`?"),
    "target": (("--target", "referense"), 4, "did you mean `reference`?"),
    "option": (("--sede", "7"), 4, "--seed"),
    "timeout": (("--timeout", "nan"), 4, "--timeout is nan"),
    "depth": (("-k", "not " * 10_000 + "resume"), 4, "nested more than"),
    "a URL": (("--target", "ws://"), 4, "no target URL: give ws://HOST:PORT"),
    "a variable that nobody set": (("--target", ""), 4, "no target is called ``"),
    "a word that nobody set": (("-k", ""), 4, "`-k ` cannot be read"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_typo_is_one_line_with_a_suggestion(what: str, tmp_path: Path) -> None:
    args, code, says = WRONG[what]
    done = kit("run", *args, "--out", tmp_path / "out")
    assert done.returncode == code, done.stderr
    assert says in last_line(done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("args", [("--sede",), ("rnu",)])
def test_a_typo_before_the_command_is_no_verdict(args: tuple[str, ...]) -> None:
    done = kit(*args)
    assert (done.returncode, "Traceback" in done.stderr) == (4, False), done.stderr


BAD_FILES = {
    "not toml": ("[target\n", "line"),
    "unknown key": ('[target]\nname="x"\nagent="a"\nstrat=["x"]\n', "strat"),
    "nothing to start": ('[target]\nname="x"\nagent="a"\n', "start"),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_broken_target_file_is_a_usage_error(what: str, tmp_path: Path) -> None:
    text, says = BAD_FILES[what]
    path = tmp_path / "broken.toml"
    path.write_text(text)
    done = kit("run", "--target", path, "--out", tmp_path / "out")
    assert done.returncode == 4
    assert says in last_line(done.stderr)
    assert "broken.toml" in last_line(done.stderr)
    assert "Traceback" not in done.stderr


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    path = target_file(tmp_path, 'start = ["no-such-think"]\n')
    done = kit("run", "--target", path, "--out", tmp_path / "out")
    assert (done.returncode, "no-such-think" in done.stderr) == (5, True), done.stderr
    assert "Traceback" not in done.stderr


def test_a_target_that_exits_at_once(tmp_path: Path) -> None:
    path = target_file(tmp_path, program(tmp_path, "import sys; sys.exit('my database is gone')"))
    done = kit("run", "--target", path, "--out", tmp_path / "out")
    assert done.returncode == 5
    assert "exited" in done.stderr
    assert "my database is gone" in done.stderr


def test_a_target_that_never_answers(tmp_path: Path) -> None:
    path = target_file(tmp_path, program(tmp_path, "import time; time.sleep(60)") + "ready_timeout_s = 1\n")
    done = kit("run", "--target", path, "--out", tmp_path / "out")
    assert done.returncode == 5
    assert "within 1 s" in done.stderr
    assert not processes_that_mention(str(tmp_path))


def test_a_server_that_knows_no_such_agent(tmp_path: Path) -> None:
    silent = (
        "import http.server, os\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(404); self.end_headers()\n"
        "http.server.HTTPServer(('127.0.0.1', int(os.environ['THINK_PORT'])), H).serve_forever()\n"
    )
    done = kit("run", "--target", target_file(tmp_path, program(tmp_path, silent)), "--out", tmp_path / "out")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "opens no WebSocket at /agents/a/NAME" in done.stderr
    assert "404" in done.stderr
    assert not processes_that_mention(str(tmp_path))


def test_a_foreign_process_on_the_chosen_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        port = foreign.getsockname()[1]
        path = target_file(tmp_path, program(tmp_path, "import time; time.sleep(60)") + f"port = {port}\n")
        done = kit("run", "--target", path, "--out", tmp_path / "out")
    assert done.returncode == 4
    assert f"port {port}" in done.stderr


def test_an_output_folder_in_use(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("")
    done = kit("run", "--out", tmp_path / "out")
    assert done.returncode == 4
    assert "in use" in last_line(done.stderr)


def test_an_output_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = kit("run", "--out", tmp_path / "file" / "out")
    assert done.returncode == 4
    assert "cannot be written" in last_line(done.stderr)


def test_check_of_a_folder_without_histories(tmp_path: Path) -> None:
    done = kit("check", tmp_path)
    assert done.returncode == 4
    assert "holds no" in last_line(done.stderr)


def test_check_of_a_broken_history(
    clean: tuple[subprocess.CompletedProcess[str], Path], tmp_path: Path
) -> None:
    _, out = clean
    source = next(out.glob("cases/*/history.jsonl")).read_text()
    folder = tmp_path / "cases" / "x"
    folder.mkdir(parents=True)
    (folder / "history.jsonl").write_text(source[: len(source) // 2])
    done = kit("check", tmp_path)
    assert done.returncode == 4
    assert "history.jsonl" in last_line(done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_writes_what_it_knows_and_leaves_no_process(
    number: signal.Signals, tmp_path: Path
) -> None:
    mark = f"mark-{os.getpid()}-{number}"
    reference = 'start = ["{python}", "-m", "think_reference", "serve"]\n'
    path = target_file(tmp_path, f'{reference}[target.env]\nMARK = "{mark}"\n', agent="conformance-agent")
    out = tmp_path / "out"
    running = subprocess.Popen(
        command("run", "--target", path, "--out", out),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not list(out.glob("cases/*/history.jsonl")) or not processes_that_mention(mark):
        assert time.monotonic() < deadline, "the run did not start"
        time.sleep(0.05)
    running.send_signal(number)
    _, stderr = running.communicate(timeout=30)
    assert running.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert not processes_that_mention(mark)
    assert json.loads((out / "results.json").read_text())["exit_code"] == 130


def test_no_process_outlives_a_killed_kit(tmp_path: Path) -> None:
    mark = f"orphan-{os.getpid()}"
    path = target_file(
        tmp_path, program(tmp_path, "import time; time.sleep(600)") + f'[target.env]\nMARK = "{mark}"\n'
    )
    running = subprocess.Popen(
        command("run", "--target", path, "--out", tmp_path / "out"), stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 30
    while not processes_that_mention(mark):
        assert time.monotonic() < deadline, "the target did not start"
        time.sleep(0.05)
    running.kill()
    running.wait()
    while processes_that_mention(mark):
        assert time.monotonic() < deadline, "the target outlived the kit"
        time.sleep(0.05)


def test_the_seed_is_printed_when_it_is_drawn(tmp_path: Path) -> None:
    path = target_file(tmp_path, 'start = ["no-such-think"]\n')
    done = kit("run", "--target", path, "--out", tmp_path / "out")
    first = done.stdout.splitlines()[0].split()
    assert first[0] == "seed"
    assert json.loads((tmp_path / "out" / "env.json").read_text())["seed"] == int(first[1])


@pytest.mark.parametrize("delay_s", [0.3, 0.6])
def test_an_interrupt_at_the_very_start_is_quiet_too(delay_s: float, tmp_path: Path) -> None:
    running = subprocess.Popen(command("run", "--out", tmp_path / "out"), stderr=subprocess.PIPE, text=True)
    time.sleep(delay_s)  # any moment will do
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=30)
    assert running.returncode != 0
    assert "think_conformance" not in stderr, "a traceback through our own code"


def test_help_teaches(tmp_path: Path) -> None:
    text = kit("--help").stdout + kit("run", "--help").stdout
    for word in ("run --target my.toml", "--profile", "--seed", "--defect", "--baseline"):
        assert word in text
