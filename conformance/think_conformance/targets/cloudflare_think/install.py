"""The one-time installation of a recipe: packages by npm, the bundle by esbuild, into the cache.

One process installs at a time, the others wait for it. What is made appears under its final name only
when it is whole, so that an interrupted installation leaves nothing that looks finished.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from think_conformance.targets.cloudflare_think.recipe import BUNDLE_FLAGS, CACHE_VARIABLE, WORKER, Recipe

NODE_AT_LEAST = 20
NODE_TIMEOUT_S = 20
NPM_TIMEOUT_S = 900
ESBUILD_TIMEOUT_S = 120

# Install scripts would run code of 266 packages; nothing here needs them. The rest keeps a machine
# without network from waiting minutes for its answer.
NPM_FLAGS = (
    "--ignore-scripts",
    "--include=optional",  # workerd and esbuild are: one package per kind of machine
    "--no-audit",
    "--no-fund",
    "--prefer-offline",
    "--fetch-retries=2",
    "--fetch-retry-mintimeout=1000",
    "--fetch-retry-maxtimeout=5000",
)

_OFFLINE = (
    *("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH"),
    *("ENOTCACHED", "ERR_SOCKET_TIMEOUT", "FETCH_ERROR"),
)
"""The codes with which npm tells that there is no network."""

Tell = Callable[[str], None]


class NotInstalled(Exception):
    """The version cannot be installed. The message is one line: why, and what to do next."""


def install(recipe: Recipe, tell: Tell) -> None:
    """Makes `recipe.complete` true; at once where it is. `tell` gets a line per long step. Raises
    NotInstalled."""
    if recipe.complete:
        return
    with _alone(recipe.home, tell):
        if recipe.workerd is None:
            _packages(recipe, tell)
        if not recipe.complete:
            _bundle(recipe, tell)


def _packages(recipe: Recipe, tell: Tell) -> None:
    _check_node(recipe)
    if recipe.home.exists():
        tell(f"the copy in {recipe.home} is incomplete and is made anew")
        shutil.rmtree(recipe.home)
    tell(f"installing @cloudflare/think {recipe.version} with npm, once (400 MB), into {recipe.home}")
    with _whole(recipe.home) as part:
        for source in recipe.sources.iterdir():
            shutil.copy(source, part / source.name)
        said = _run(["npm", "ci", *NPM_FLAGS], part, NPM_TIMEOUT_S)
        if said is not None:
            raise NotInstalled(_npm_failed(said))
    if recipe.workerd is None:
        raise NotInstalled(
            "npm installed no workerd for this machine: it exists for Linux and macOS on x64 and arm64, "
            "as an optional package"
        )


def _bundle(recipe: Recipe, tell: Tell) -> None:
    tell("bundling the worker")
    with _whole(recipe.bundle) as part:
        for source in WORKER.iterdir():
            shutil.copy(source, part / source.name)
        esbuild = recipe.tool("@esbuild/*", "esbuild")
        if esbuild is None:
            raise NotInstalled(f"there is no esbuild in {recipe.home}: remove it to have it installed anew")
        said = _run([str(esbuild), "agent.ts", "--outfile=worker.js", *BUNDLE_FLAGS], part, ESBUILD_TIMEOUT_S)
        if said is not None:
            why = f"the worker could not be bundled: {_first_line(said)}"
            raise NotInstalled(f"{why}; remove {recipe.home} to have it installed anew")


def _check_node(recipe: Recipe) -> None:
    needs = f"@cloudflare/think {recipe.version} is installed with Node.js {NODE_AT_LEAST} or newer and npm"
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise NotInstalled(f"{needs}; there is no `{program}` on PATH: install Node.js")
    try:
        told = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=NODE_TIMEOUT_S)
    except (subprocess.TimeoutExpired, OSError) as error:
        raise NotInstalled(f"{needs}; `node` on PATH does not answer: {error}") from None
    found = told.stdout.strip()
    major = re.match(r"v(\d+)\.", found)
    if major is None or int(major[1]) < NODE_AT_LEAST:
        raise NotInstalled(f"{needs}; `node` on PATH is {found or 'broken'}: put a newer one first on PATH")


def _npm_failed(said: str) -> str:
    codes = re.findall(r"npm (?:error|ERR!) code (\w+)", said)
    if any(code in _OFFLINE for code in codes):
        return (
            f"npm cannot reach its registry ({codes[0]}) and its own cache does not hold all packages: "
            f"connect once, or point {CACHE_VARIABLE} at a folder of a machine that could"
        )
    return f"npm failed: {_first_line(said)}"


def _first_line(said: str) -> str:
    errors = [line.strip() for line in said.splitlines() if "rror" in line]
    return " ".join(errors[:2])[:400] or said.strip()[:400] or "it said nothing"


def _run(command: Sequence[str], folder: Path, timeout_s: float) -> str | None:
    """None when it went well, else what it said."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        return f"Error: `{command[0]}` did not end within {timeout_s:g} s"
    except OSError as error:
        return f"Error: `{command[0]}` cannot be started: {error}"
    return None if done.returncode == 0 else done.stdout


@contextmanager
def _whole(final: Path) -> Iterator[Path]:
    """A folder to fill, beside `final`, which it becomes when all went well; else it is removed. Beside it,
    since esbuild finds the `node_modules` above the bundle."""
    with _usable(final.parent):
        for left in final.parent.glob(f"{final.name}.part-*"):
            shutil.rmtree(left)  # of a process that was killed: nobody else is in here
        part = Path(tempfile.mkdtemp(prefix=f"{final.name}.part-", dir=final.parent))
    try:
        yield part
        with _usable(final.parent):
            if final.exists():
                shutil.rmtree(final)
            part.rename(final)
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _usable(folder: Path) -> Iterator[None]:
    """What cannot be done in there is the fault of the folder."""
    try:
        yield
    except OSError as error:
        raise NotInstalled(
            f"the cache folder {folder} cannot be used: {error}; {CACHE_VARIABLE} names another one"
        ) from None


@contextmanager
def _alone(home: Path, tell: Tell) -> Iterator[None]:
    """Holds a lock that the system lets go when its holder dies."""
    with _usable(home.parent):
        home.parent.mkdir(parents=True, exist_ok=True)
        lock = (home.parent / f"{home.name}.lock").open("w")
    with lock as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"another run installs into {home}; waiting for it")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
