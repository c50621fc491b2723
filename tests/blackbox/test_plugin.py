"""`pytest --think-target`: one test per case, on the engine of the kit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from commands import processes_that_mention

pytest_plugins = "pytester"

TARGET = """
[target]
name = "mine"
agent = "conformance-agent"
start = ["{python}", "-m", "think_reference", "serve", "--defect", "two-terminals"]
claims = ["core", "resume", "control", "recovery"]
heartbeat_s = 2
"""
CASES = "control.stop-during-output or resume.probe-when-idle or core.model-stalls-and-heals"


@pytest.fixture
def run(pytester: pytest.Pytester) -> Any:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n")
    pytester.path.joinpath("mine.toml").write_text(TARGET)
    return lambda *args: pytester.runpytest_subprocess("--think-target=mine.toml", *args, timeout=60)


def test_each_case_is_a_test(run: Any, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine="def test_mine(): pass")
    result = run("-k", f"{CASES} or test_mine", "--think-out=out", "-rs", "--alluredir=allure")
    result.assert_outcomes(passed=2, failed=1, skipped=1, deselected=result.parseoutcomes()["deselected"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "think-conformance: target mine, seed *",
            "*think resume.probe-when-idle*",
            "FAILED TURN-150 (MUST, core): Every accepted turn reaches exactly one final outcome *",
            "    the turn req-t1 was told to be aborted and completed",
            '    #* client a.1 frame-in {"type":"cf_agent_use_chat_response",*"outcome":"completed"}',
            "again: think-conformance replay out/plan/resume.probe-when-idle.json",
            "run directory: out",
            "SKIPPED*needs: leg model*",
        ]
    )
    out = pytester.path / "out"
    assert json.loads((out / "env.json").read_text())["exit_code"] == 1
    assert {p.name for p in out.iterdir()} >= {"results.json", "junit.xml", "report.html", "verdicts.json"}
    _check_allure(pytester.path / "allure")


def _check_allure(folder: Path) -> None:
    """What Allure was given of the three cases: state, labels, attachments with their content."""
    found = {r["name"]: r for r in (json.loads(p.read_text()) for p in folder.glob("*-result.json"))}
    states = {name: result["status"] for name, result in found.items()}
    assert states == {
        "control.stop-during-output": "passed",
        "resume.probe-when-idle": "failed",
        "core.model-stalls-and-heals": "skipped",
        "test_mine": "passed",
    }
    idle = found["resume.probe-when-idle"]
    labels = {(label["name"], label["value"]) for label in idle["labels"]}
    assert {("tag", "WIRE-102"), ("tag", "TURN-150"), ("suite", "resume")} <= labels
    assert idle["description"].startswith("a client asks an agent that never had a turn")
    attached = {a["name"]: (folder / a["source"]).read_text() for a in idle["attachments"]}
    assert {v["requirement"] for v in json.loads(attached["verdicts.json"])} >= {"TURN-150", "WIRE-102"}
    assert json.loads(attached["plan.json"])["about"]["scenario"] == "resume.probe-when-idle"
    lines = [json.loads(line) for line in attached["history.jsonl"].splitlines()]
    assert [line["index"] for line in lines] == list(range(len(lines)))
    assert "TURN-150" in idle["statusDetails"]["message"]


def test_an_interrupted_session_ends_the_run_and_leaves_no_process(tmp_path: Path) -> None:
    mark = f"pytest-{os.getpid()}"
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    (tmp_path / "mine.toml").write_text(
        '[target]\nname = "mine"\nagent = "conformance-agent"\n'
        'start = ["{python}", "-m", "think_reference", "serve"]\n'
        f'claims = ["core"]\n[target.env]\nMARK = "{mark}"\n'
    )
    running = subprocess.Popen(
        [sys.executable, "-m", "pytest", "--think-target=mine.toml", "--think-out=out"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("out/cases/*/history.jsonl")) or not processes_that_mention(mark):
        assert time.monotonic() < deadline, "the run did not start"
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    stdout, _ = running.communicate(timeout=30)
    assert running.returncode == pytest.ExitCode.INTERRUPTED, stdout
    assert json.loads((tmp_path / "out" / "env.json").read_text())["exit_code"] == 130
    assert not processes_that_mention(mark)


def test_without_a_target_nothing_of_the_kit_is_imported(tmp_path: Path) -> None:
    (tmp_path / "test_light.py").write_text(
        "import sys\n"
        "def test_light():\n"
        "    ours = {m for m in sys.modules if m.startswith(('think_', 'aiohttp', 'jinja2', 'rich'))}\n"
        "    assert ours == {'think_conformance', 'think_conformance.plugin'}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", tmp_path],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
