"""Services that run already: a bare URL, one that was pointed at the kit's model, and the model alone."""

from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commands import command, kit, last_line
from think_conformance.shell.ports import free_port

BARE = ("bare.questions-without-a-turn", "bare.reset-at-the-first-word", "bare.two-turns-two-tabs")


@contextmanager
def running(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process and the first line it says, which tells where it is."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], 30)
        line = process.stdout.readline() if ready else ""
        assert line, "it said nothing"
        yield process, line.strip()
    finally:
        process.kill()
        process.communicate()


@contextmanager
def reference(folder: Path, model_url: str) -> Iterator[str]:
    """A reference that nobody of the kit started; its host and port."""
    serve = ("-m", "think_reference", "serve", "--port", "0", "--data-dir", str(folder))
    with running(sys.executable, *serve, "--model-url", model_url) as (_, said):
        yield said.rpartition("//")[2]


def test_a_bare_url_is_tested_as_far_as_it_goes_and_the_rest_is_told(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("default: [[{text: 'any '}, {text: 'answer'}, done]]\n")
    words = command("model", "--listen", "127.0.0.1:0", "--script", script)
    with running(*words) as (model, url), reference(tmp_path / "data", url) as where:
        out = tmp_path / "out"
        done = kit("run", "--target", f"ws://{where}", "--out", out)
        model.send_signal(signal.SIGINT)
        _, told = model.communicate(timeout=20)
    assert done.returncode == 0, done.stdout + done.stderr
    assert last_line(done.stdout).startswith("passed: ")
    assert "NOT-APPLICABLE: needs: model, restart\n" in done.stdout
    results = json.loads((out / "results.json").read_text())
    states = {case["case"]: case["state"] for case in results["cases"]}
    assert {states[name] for name in BARE} == {"passed"}
    assert states["recovery.kill-during-output"] == "not-applicable"
    assert {v["state"] for c in results["cases"] for v in c["verdicts"] if c["case"] in BARE} == {"passed"}
    assert model.returncode == 0, told
    lines = told.splitlines()
    assert lines[0] == f"think-conformance: the scripted model serves at {url}; Ctrl-C ends it"
    assert "think-conformance: model-call default call 1: 1 messages" in lines
    assert "think-conformance: model-end default call 1: done" in lines


def test_a_service_that_was_pointed_at_the_model_of_the_kit_plays_scripts(tmp_path: Path) -> None:
    port = free_port()
    path = tmp_path / "target.toml"
    with reference(tmp_path / "data", f"http://127.0.0.1:{port}/v1") as where:
        path.write_text(
            f'[target]\nname = "there"\nagent = "conformance-agent"\nurl = "ws://{where}"\n'
            f'model_listen = "127.0.0.1:{port}"\n'
        )
        words = "two-turns or core.model-cut or resume.page-refresh or kill-during-output"
        done = kit("run", "--target", path, "-k", words, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    states = {case["case"]: case["state"] for case in results["cases"]}
    for name in ("core.two-turns-two-tabs", "core.model-cut-in-mid-event", "resume.page-refresh"):
        assert states[name] == "passed"
    (killed,) = [c for c in results["cases"] if c["case"] == "recovery.kill-during-output"]
    assert {v["reason"] for v in killed["verdicts"]} == {"needs: restart"}


@pytest.mark.parametrize("what", ["run", "model"])
def test_an_address_that_is_taken_is_the_users_to_change(what: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        port = foreign.getsockname()[1]
        path = tmp_path / "t.toml"
        path.write_text(
            f'[target]\nname = "x"\nagent = "a"\nurl = "ws://127.0.0.1:1"\nmodel_listen = "{port}"\n'
        )
        run = ("run", "--target", path, "--out", tmp_path / "out")
        done = kit(*run) if what == "run" else kit("model", "--listen", str(port))
    assert done.returncode == 4, done.stderr
    assert f"cannot listen on 127.0.0.1 port {port}: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_url_where_nothing_listens_is_no_verdict(tmp_path: Path) -> None:
    done = kit("run", "--target", f"ws://127.0.0.1:{free_port()}", "--out", tmp_path / "out")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "Cannot connect to host 127.0.0.1" in done.stderr
    assert "Traceback" not in done.stderr


WRONG = {
    "no address": (("--listen", "here"), "--listen: `here` is no address: give HOST:PORT"),
    "no file": (("--script", "none.yaml"), "script none.yaml cannot be read: No such file"),
    "no YAML": (("--script", "broken"), "script broken cannot be read: "),
    "no scripts": (("--script", "list"), "give `turn: [[step, ...], ...]`"),
    "no step": (("--script", "typo"), "did you mean `text`?"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_model_that_cannot_be_served_is_one_line(what: str, tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("[")
    (tmp_path / "list").write_text("[1]")
    (tmp_path / "typo").write_text("default: [[txt]]")
    args, says = WRONG[what]
    done = kit("model", *args, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert says in last_line(done.stderr)
    assert "Traceback" not in done.stderr
