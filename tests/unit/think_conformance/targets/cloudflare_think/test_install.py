"""The installation, with stand-ins for npm and node: everything that can go wrong is one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "think_conformance.targets.cloudflare_think"]

NODE = "echo ${NODE_IS-v22.1.0}"

# Puts what the real one does where the real one puts it, and notes that it was called.
NPM = """
echo "$@" >> "$CALLS"
if [ -n "$NPM_WAITS" ]; then read -r _ < "$NPM_WAITS"; fi
if [ -n "$NPM_SAYS" ]; then printf '%b' "$NPM_SAYS" >&2; exit 1; fi
workerd=node_modules/@cloudflare/workerd-this/bin esbuild=node_modules/@esbuild/this/bin
mkdir -p $workerd $esbuild
printf '#!/bin/sh\\necho "workerd $*"\\n' > $workerd/workerd
printf '#!/bin/sh\\n%s\\n' "${ESBUILD:-echo built > worker.js}" > $esbuild/esbuild
chmod +x $workerd/workerd $esbuild/esbuild
if [ -n "$NO_ESBUILD" ]; then rm -r node_modules/@esbuild; fi
if [ -n "$NO_WORKERD" ]; then rm -r node_modules/@cloudflare; fi
"""


class Machine:
    """A machine with these two programs, and an empty cache."""

    def __init__(self, folder: Path) -> None:
        self.cache, self.bin, self.calls = folder / "cache", folder / "bin", folder / "calls"
        self.bin.mkdir()
        for name, body in (("node", NODE), ("npm", NPM)):
            self.program(name, body)

    def program(self, name: str, body: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        own = {"THINK_CONFORMANCE_CACHE": str(self.cache), "CALLS": str(self.calls)}
        path = f"{self.bin}:/bin" if (self.bin / "npm").exists() else str(self.bin)
        return subprocess.Popen(
            [*COMMAND, *words],
            env={**os.environ, **own, "PATH": path, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, **environment: str) -> tuple[int, str]:
        process = self.start(*words, **environment)
        out, err = process.communicate(timeout=60)
        return process.returncode, out + err

    @property
    def npm_calls(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0

    @property
    def kept(self) -> list[str]:
        """What is in the cache, without locks and hashes."""
        return sorted(
            re.sub("-[0-9a-f]{12}", "", p.name) for p in self.cache.glob("*") if p.suffix != ".lock"
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def home(machine: Machine) -> Path:
    (found,) = (path for path in machine.cache.iterdir() if path.is_dir())
    return found


def test_it_is_installed_once_and_served(machine: Machine) -> None:
    code, said = machine.run("install", "0.23.0")
    assert code == 0
    assert said.splitlines()[0].startswith("installing @cloudflare/think 0.23.0 with npm, once")
    assert machine.run("install", "0.23.0") == (0, "")
    assert machine.npm_calls == 1
    assert "--ignore-scripts" in machine.calls.read_text()

    code, said = machine.run("serve", "0.23.0", THINK_PORT="4711", THINK_DATA_DIR="/data")
    assert code == 0
    assert said.startswith("workerd serve ")
    assert "--socket-addr=http=127.0.0.1:4711" in said
    assert "--directory-path=disk=/data" in said


def no_node(machine: Machine) -> dict[str, str]:
    (machine.bin / "node").unlink()
    (machine.bin / "npm").unlink()
    return {}


def npm_says(text: str) -> Callable[[Machine], dict[str, str]]:
    return lambda _: {"NPM_SAYS": text}


@pytest.mark.parametrize(
    ("arrange", "line"),
    [
        (no_node, r"there is no `node` on PATH: install Node\.js"),
        (lambda _: {"NODE_IS": ""}, r"`node` on PATH is broken: put a newer one first"),
        (
            lambda _: {"NO_ESBUILD": "1"},
            r"there is no esbuild in .*: remove it to have it installed anew",
        ),
        (
            lambda _: {"NO_WORKERD": "1"},
            r"npm installed no workerd for this machine: .* as an optional package",
        ),
        (lambda _: {"NODE_IS": "v18.19.0"}, r"Node\.js 20 or newer .* is v18\.19\.0: put a newer one first"),
        (
            npm_says("npm error code ENOTFOUND\\nnpm error network\\n"),
            r"npm cannot reach its registry \(ENOTFOUND\) and its own cache .* connect once, or point THINK_",
        ),
        (npm_says("npm error code EINTEGRITY\\n"), r"npm failed: npm error code EINTEGRITY"),
        (
            lambda _: {"ESBUILD": "echo 'error: Could not resolve agents'; exit 1"},
            r"could not be bundled: error: Could not resolve agents; remove .* to have it installed anew",
        ),
        (
            lambda _: {"THINK_CONFORMANCE_CACHE": "/dev/null/x"},
            r"the cache folder /dev/null/x cannot be used: ",
        ),
    ],
    ids=[
        "no-node",
        "mute-node",
        "no-esbuild",
        "no-workerd",
        "old-node",
        "no-network",
        "npm-fails",
        "no-bundle",
        "no-cache",
    ],
)
def test_what_cannot_be_installed_is_told_in_the_last_line(
    machine: Machine, arrange: Callable[[Machine], dict[str, str]], line: str
) -> None:
    code, said = machine.run("install", "0.23.0", **arrange(machine))
    assert code == 1
    assert re.search(line, said.splitlines()[-1])
    assert not any("part" in name for name in machine.kept)


def test_an_installation_that_was_killed_leaves_nothing_that_is_used(machine: Machine) -> None:
    gate = machine.cache.parent / "gate"
    os.mkfifo(gate)
    first = machine.start("install", "0.23.0", NPM_WAITS=str(gate))
    with gate.open("w"):  # opens when the other end does: npm runs
        first.kill()
        first.communicate()
    assert any("part" in name for name in machine.kept)
    assert machine.run("serve", "0.23.0")[1].rstrip().endswith("run `install 0.23.0` first")
    assert machine.run("install", "0.23.0")[0] == 0
    assert machine.kept == ["cloudflare-think-0.23.0"]


def test_a_copy_that_is_incomplete_is_made_anew(machine: Machine) -> None:
    machine.run("install", "0.23.0")
    next(home(machine).glob("node_modules/@cloudflare/*/bin/workerd")).unlink()
    code, said = machine.run("install", "0.23.0")
    assert (code, machine.npm_calls) == (0, 2)
    assert re.match("the copy in .* is incomplete and is made anew", said)


def test_two_that_install_at_once_install_once(machine: Machine) -> None:
    gate = machine.cache.parent / "gate"
    os.mkfifo(gate)
    first = machine.start("install", "0.23.0", NPM_WAITS=str(gate))
    with gate.open("w") as held:
        second = machine.start("install", "0.23.0", NPM_WAITS=str(gate))
        assert second.stderr is not None
        assert second.stderr.readline().startswith("another run installs into ")
        held.write("go\n")
    for process in (first, second):
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert machine.npm_calls == 1


def test_what_serve_needs_is_named(machine: Machine) -> None:
    machine.run("install", "0.23.0")
    code, said = machine.run("serve", "0.23.0", THINK_PORT="", THINK_DATA_DIR="")
    assert (code, said.startswith("THINK_PORT and THINK_DATA_DIR are not set")) == (1, True)
