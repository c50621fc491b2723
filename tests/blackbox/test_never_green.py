"""The worst thing the kit could do is a green that tested nothing. So its own parts are broken on purpose."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from commands import kit, last_line

# Each breaks one part of the kit inside its process, then runs the command line as a user does.
BROKEN_PARTS = {
    "clients never connect": """
        import think_conformance.shell.client as part
        connect = part.Client.connect
        async def refuse(self, follow=True, timeout_s=10.0):
            return self._name == "hello" and await connect(self, follow, timeout_s)
        part.Client.connect = refuse
    """,
    "faults are never armed": """
        import think_proxy.carriers.proxy as part
        part.Proxy.arm = lambda self, faults, scope, journal=None: [
            journal("fault-planned", {"fault": fault.id}, {"leg": fault.leg}) for fault in faults
        ]
    """,
    "faults are forgotten altogether": """
        import think_proxy.carriers.proxy as part
        part.Proxy.arm = lambda self, faults, scope, journal=None: None
    """,
    "nobody asks for the truth at the end": """
        import think_conformance.shell.case as part
        async def nothing(self):
            pass
        part.Epilogue.play = nothing
    """,
    "the plan is not played": """
        import think_conformance.shell.case as part
        async def nothing(self):
            pass
        part.Case._operate = nothing
    """,
    "every check throws": """
        import think_conformance.checkers.base as part
        def broken(self, view):
            raise KeyError("a bug in a check")
        part.Check.__call__ = broken
    """,
    "no check is found": """
        import think_conformance.checkers.base as part
        part.load = lambda: {}
    """,
}


def run_broken(code: str, *args: str | Path) -> subprocess.CompletedProcess[str]:
    text = "\n".join(line.removeprefix("        ") for line in code.splitlines())
    program = f"{text}\nfrom think_conformance.cli import main\nmain(prog_name='think-conformance')\n"
    command = [sys.executable, "-c", program, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)


@pytest.mark.parametrize("part", BROKEN_PARTS)
def test_a_broken_part_of_the_kit_is_never_green(part: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run_broken(
        BROKEN_PARTS[part], "run", "-k", "resume.reset-during-output", "--seed", "7", "--out", out
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert last_line(done.stdout).startswith("inconclusive")
    states = [v["state"] for v in json.loads((out / "verdicts.json").read_text())]
    assert "failed" not in states, "a fault of the kit's own must not be blamed on the target"


@pytest.mark.parametrize(
    "bug",
    [
        "ValueError('a bug')",
        "msgspec.ValidationError('a bug')",
        "UnicodeEncodeError('utf-8', 'x', 0, 1, 'a bug')",
    ],
)
def test_a_bug_of_the_kit_is_its_own_fault_and_keeps_its_traceback(bug: str, tmp_path: Path) -> None:
    code = f"""
        import msgspec
        import think_conformance.shell.case as part
        async def broken(self, timeout_s):
            raise {bug}
        part.Case.play = broken
    """
    out = tmp_path / "out"
    done = run_broken(code, "run", "-k", "resume.probe-when-idle", "--seed", "7", "--out", out)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "Traceback" in done.stderr
    assert "in broken" in done.stderr
    assert last_line(done.stderr).endswith("the kit itself broke: please report the lines above")
    for file in ("env.json", "results.json"):
        assert json.loads((out / file).read_text())["exit_code"] == 3


def test_a_kit_that_hears_nothing_is_never_green(tmp_path: Path) -> None:
    """From the history alone this is a target that went mute after it took a turn, which is a failure."""
    deaf = """
        import think_conformance.shell.client as part
        note = part.Client._note
        def deaf(self, link, kind, payload):
            return kind == "frame-in" or note(self, link, kind, payload)
        part.Client._note = deaf
    """
    out = tmp_path / "out"
    done = run_broken(deaf, "run", "-k", "resume.reset-during-output", "--seed", "7", "--out", out)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "passed" not in {v["state"] for v in json.loads((out / "verdicts.json").read_text())}


def test_a_bug_in_the_kit_is_the_kits_own_failure(tmp_path: Path) -> None:
    bug = """
        import think_conformance.shell.case as part
        async def bug(self, timeout_s):
            raise RuntimeError("a bug in the kit")
        part.Case.play = bug
    """
    out = tmp_path / "out"
    done = run_broken(bug, "run", "-k", "resume.reset-during-output", "--out", out)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "a bug in the kit" in done.stderr
    assert json.loads((out / "results.json").read_text())["exit_code"] == 3


PLAN = {
    "version": 1,
    "about": {"scenario": "mine", "title": "one turn", "exercises": ["TURN-150"]},
    "model": {"t1": [[{"text": "w1 "}, "done"]]},
    "operations": [
        {"client": "a", "do": "connect"},
        {"client": "a", "do": "send", "turn": "t1", "text": "Hello."},
    ],
}
FAULT = {"id": "never", "leg": "client", "when": {"json": {"type": "no-such-type"}}, "do": [{"cut": "reset"}]}


def replay(folder: Path, **changes: object) -> tuple[subprocess.CompletedProcess[str], list[dict[str, str]]]:
    plan = folder / "plan.json"
    plan.write_text(json.dumps({**PLAN, **changes}))
    done = kit("replay", plan, "--out", folder / "out")
    return done, json.loads((folder / "out" / "verdicts.json").read_text())


def test_a_plan_as_it_stands_passes(tmp_path: Path) -> None:
    done, verdicts = replay(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {v["state"] for v in verdicts} == {"passed"}


def test_a_fault_that_never_fired_is_inconclusive(tmp_path: Path) -> None:
    done, verdicts = replay(tmp_path, faults=[FAULT])
    assert done.returncode == 2, done.stdout + done.stderr
    assert {v["state"] for v in verdicts} == {"inconclusive"}
    assert "never" in done.stdout


def test_a_case_in_which_nobody_connects_is_inconclusive(tmp_path: Path) -> None:
    done, verdicts = replay(tmp_path, operations=[])
    assert done.returncode == 2, done.stdout + done.stderr
    assert {v["state"] for v in verdicts} == {"inconclusive"}
    assert "no client of the plan connected" in done.stdout


def test_what_is_exercised_and_not_seen_is_inconclusive(tmp_path: Path) -> None:
    about = {"scenario": "mine", "title": "one turn", "exercises": ["TURN-150", "TURN-43"]}
    done, verdicts = replay(tmp_path, about=about)
    assert done.returncode == 2, done.stdout + done.stderr
    assert [v["requirement"] for v in verdicts if v["state"] == "inconclusive"] == ["TURN-43"]


def test_a_step_that_is_never_reached_is_inconclusive(tmp_path: Path) -> None:
    wait = {
        "do": "wait",
        "after": {"seen": {"kind": "frame-in", "json": {"type": "no-such"}}},
        "within_s": 0.3,
    }
    probe = {"client": "a", "do": "probe"}
    done, verdicts = replay(tmp_path, operations=[*PLAN["operations"], wait, probe])  # type: ignore[misc]
    assert done.returncode == 2, done.stdout + done.stderr
    assert "passed" not in {v["state"] for v in verdicts}
    assert "was not reached" in done.stdout


def test_a_plan_that_exercises_nothing_checks_nothing_that_could_be_green(tmp_path: Path) -> None:
    done, verdicts = replay(tmp_path, operations=[], about={"scenario": "mine", "title": "", "exercises": []})
    assert done.returncode == 2, done.stdout + done.stderr
    assert {v["state"] for v in verdicts} <= {"inconclusive"}
