"""Whatever a target does, the kit ends in time, small, with the right code, and shows nothing live.

The table is `EXPECTED`; `docs/hostile-targets.md` says the same for readers. Targets of one group are run
at the same time: most of them only keep the kit waiting.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from commands import command, last_line, processes_that_mention

HERE = Path(__file__).parent
BOUND_S = 90.0
"""No run of one or two scenarios takes longer, at 3 seconds a case and with all of its group beside it."""
BOUND_MB = 512
"""Peak resident memory of the kit, whatever it is sent."""

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What moves a cursor or turns a line around."""
LIVE = ("<script>alert", "<img src=x")


@dataclass(frozen=True)
class Expected:
    """How a run against a target ends. `says` stands in its output; `failed` are requirements, all of which
    fail; `timeout_s` is for a case: short where it would only be waited for."""

    exit: tuple[int, ...]
    says: str = ""
    failed: str = ""
    timeout_s: float = 20
    echo: bool = False
    escapes: bool = False  # the kit's reach: it tells so, and ends without it


EXPECTED: dict[str, dict[str, Expected]] = {
    "hang": {
        "NeverAnswersHttp": Expected((5,), "never answered below 500 within 10 s"),
        "NeverUpgrades": Expected((5,), "opens no WebSocket at /agents/a/NAME (no answer within 10 s)"),
        "SaysNothing": Expected((2,), "no turn was seen to be accepted", timeout_s=3),
        "StopsInMidFrame": Expected((1,), failed="TURN-150", timeout_s=3),
        "NeverEndsATurn": Expected((1,), failed="TURN-150", timeout_s=3),
        "LetsNobodyIn": Expected((2,), "no turn was seen to be accepted", timeout_s=3),
    },
    "flood by size": {
        "HugeFrames": Expected((2,), "not all was observed: a record `frame-in` of 500", timeout_s=3),
        "EndlessFrame": Expected((2,), timeout_s=3),
        "MoreThanAHistoryHolds": Expected((2,), "bytes is more than a history keeps", timeout_s=3),
        "EndlessTranscript": Expected((2,), "the transcript could not be read"),
    },
    "flood by number": {
        "MillionFrames": Expected((1, 2), timeout_s=3),
    },
    "live content": {
        "LiveContent": Expected((1,), failed="WIRE-209", timeout_s=3, echo=True),
        "InvalidUtf8": Expected((2,), timeout_s=3),
        "ClosesWithLiveContent": Expected((2,), timeout_s=3),
        "DiesWithLiveContent": Expected((5,), "exited at once with code 1"),
    },
    "lies about readiness": {
        "ReadyAndExits": Expected((5,)),
        "ExitsAfterHello": Expected((2,), "no turn was seen to be accepted", timeout_s=3),
        "Daemonizes": Expected((5,), escapes=True),
        "ServesFromOutside": Expected((5,), "outside the target's process group", escapes=True),
    },
    "dies at random": {
        "DiesAtRandom 1": Expected((1, 2, 5), timeout_s=3),
        "DiesAtRandom 2": Expected((1, 2, 5), timeout_s=3),
    },
    "nothing but slow": {
        "Lawful": Expected((0,)),
        "Dribbles": Expected((0,)),
    },
    "reuses ids": {
        "TwoTurnsUnderOneId": Expected((1,), failed="TURN-150 WIRE-85 WIRE-209 KIT-03"),
        "RepeatsMessageIds": Expected((1,), failed="KIT-03", timeout_s=3, echo=True),
    },
    "illegal frames": {
        "BeforeTheirTime": Expected((1,), failed="WIRE-206 WIRE-209"),
        "UnknownOutcome": Expected((1,), failed="WIRE-85"),
        "WrongTypes": Expected((1,), failed="WIRE-85", timeout_s=3, echo=True),
        "ChunksAfterTheTerminal": Expected((1,), failed="WIRE-85 WIRE-209 TURN-151"),
    },
}


def test_the_page_tells_every_target_and_its_exit_code() -> None:
    page = (HERE.parents[1] / "docs" / "hostile-targets.md").read_text()
    told = {
        name: codes for name, codes in re.findall(r"^\| `(\w+)` \|.*\| ([\d, ]+) \|$", page, re.MULTILINE)
    }
    expected = {
        name.partition(" ")[0]: ", ".join(map(str, one.exit))
        for targets in EXPECTED.values()
        for name, one in targets.items()
    }
    assert told == expected


@dataclass(frozen=True)
class Ran:
    """A run of the kit that is over."""

    out: Path
    exit: int
    stdout: str
    stderr: str
    took_s: float
    peak_mb: float


@pytest.mark.parametrize("group", EXPECTED)
def test_the_kit_ends_as_it_should(group: str, tmp_path: Path) -> None:
    targets = EXPECTED[group]
    with ThreadPoolExecutor(len(targets)) as pool:
        ran = dict(
            zip(targets, pool.map(lambda name: run(name, targets[name], tmp_path), targets), strict=True)
        )
    wrong = {name: told for name, one in ran.items() if (told := misfits(targets[name], one))}
    assert not wrong, json.dumps(wrong, indent=1)


def run(name: str, expected: Expected, folder: Path) -> Ran:
    """The kit against one target, measured, and ended where it does not end."""
    kind, _, seed = name.partition(" ")
    folder = folder / name.replace(" ", "-")
    folder.mkdir()
    path = folder / "target.toml"
    path.write_text(
        f'[target]\nname = "{name}"\nagent = "a"\nclaims = ["core", "resume"]\n'
        f'start = ["{{python}}", "{HERE / "targets.py"}", "{kind}"]\n'
        f'env = {{SEED = "{seed}", OF_TEST = "{folder}"}}\n'
        "ready_timeout_s = 10\nrestart_grace_s = 1\nheartbeat_s = 0.5\n"
    )
    which = "bare.two-turns-two-tabs" + " or core.overlapping-sends-with-echo" * expected.echo
    words = ("--target", path, "-k", which, "--seed", "7", "--out", folder / "out")
    began = time.monotonic()
    with (folder / "stdout").open("w") as stdout, (folder / "stderr").open("w") as stderr:
        kit = subprocess.Popen(
            command("run", *words, "--timeout", str(expected.timeout_s)), stdout=stdout, stderr=stderr
        )
    status, usage = waited(kit.pid)
    kit.returncode = os.waitstatus_to_exitcode(status)
    said = [(folder / file).read_text() for file in ("stdout", "stderr")]
    return Ran(folder / "out", kit.returncode, *said, time.monotonic() - began, usage.ru_maxrss / 1024)


def waited(pid: int) -> tuple[int, object]:
    """How a process ended, and what it took; it is killed at the bound."""
    deadline = time.monotonic() + BOUND_S
    while True:
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            return status, usage
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)  # wait4 knows no deadline


def misfits(expected: Expected, ran: Ran) -> list[str]:
    """All that is wrong with a run."""
    said = ran.stdout + ran.stderr
    told = [] if ran.exit in expected.exit else [f"exit {ran.exit}: {said[-2000:]}"]
    told += ["a traceback"] * ("Traceback" in said)
    told += [] if expected.says in said else [f"does not say {expected.says!r}: {said[-2000:]}"]
    told += [f"{ran.took_s:.0f} s"] * (ran.took_s > BOUND_S)
    told += [f"{ran.peak_mb:.0f} MB"] * (ran.peak_mb > BOUND_MB)
    told += [] if last_line(ran.stdout).endswith(f"-> exit {ran.exit}") else ["no summary"]
    told += [] if expected.escapes else processes_that_mention(str(ran.out.parent))
    return told + misfits_of_reports(expected, ran)


def misfits_of_reports(expected: Expected, ran: Ran) -> list[str]:
    """Every report is there, whole and harmless."""
    results = json.loads((ran.out / "results.json").read_text())
    verdicts = [v for case in results["cases"] for v in case["verdicts"]]
    failed = {v["requirement"] for v in verdicts if v["state"] == "failed"}
    told = [f"{ident} did not fail" for ident in expected.failed.split() if ident not in failed]
    told += [f"a check {v['reason']}" for v in verdicts if "the check threw" in v.get("reason", "")]
    told += [] if results["exit_code"] == ran.exit else ["another exit code in results.json"]
    ElementTree.parse(ran.out / "junit.xml")
    shown = {file: (ran.out / file).read_text() for file in ("report.html", "junit.xml", "results.json")}
    for file, text in {**shown, "stdout": ran.stdout, "stderr": ran.stderr}.items():
        told += [f"{file} shows {found!r}" for found in set(UNSEEN.findall(text))]
    page = shown["report.html"] + shown["junit.xml"]
    return told + [f"a report holds {live}" for live in LIVE if live in page]


# ---- the kit's own frames --------------------------------------------------------------------------

ILLEGAL = {
    "a frame that only servers send": "ResumeNone()",
    "a question that still waits for its answer": "ResumeRequest(probe_id='probe-a.1')",
}


@pytest.mark.parametrize("what", ILLEGAL)
def test_an_illegal_frame_of_the_kits_own_client_is_the_kits_failure(what: str, tmp_path: Path) -> None:
    """Its client says it right behind its first question, to a target that does nothing wrong."""
    program = f"""
import think_conformance.shell.client as part
from think_conformance.wire.frames import *
say = part.Client._say
async def wrong(self, link, frame):
    return await say(self, link, frame) and await say(self, link, {ILLEGAL[what]})
part.Client._say = wrong
from think_conformance.cli import main
main(prog_name="think-conformance")
"""
    path = tmp_path / "target.toml"
    start = f'["{{python}}", "{HERE / "targets.py"}", "SaysNothing"]'
    path.write_text(f'[target]\nname = "x"\nagent = "a"\nstart = {start}\n')
    words = ["run", "--target", path, "-k", "bare.two-turns-two-tabs", "--out", tmp_path / "out"]
    command_line = [sys.executable, "-c", program, *map(str, words)]
    done = subprocess.run(command_line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "IllegalFrame" in done.stderr
    assert last_line(done.stderr).endswith("the kit itself broke: please report the lines above")
    assert json.loads((tmp_path / "out" / "results.json").read_text())["exit_code"] == 3
