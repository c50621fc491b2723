"""The commands for who brings an implementation: `target init` writes a target file, `target check` starts
what it describes and tells what is wrong with the adapter."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from pathlib import Path

import click

from think_conformance.cli.endings import interruptible, tell
from think_conformance.errors import UsageError
from think_conformance.history.plain import plain
from think_conformance.shell.ending import INTERRUPTED, NOT_READY
from think_conformance.shell.store import Store, fresh_folder
from think_conformance.shell.trial import on_trial
from think_conformance.targets.contract import load_target

LINE = 1000
"""Characters of one diagnosis."""


@click.group("target")
def target_() -> None:
    """Write a target file, and find out whether the kit can work with what it describes."""


@target_.command()
@click.argument("file", default="my-think.toml", type=click.Path(path_type=Path))
def init(file: Path) -> None:
    """Write a target file with every key explained [default: my-think.toml]. Overwrites nothing."""
    text = files("think_conformance.cli").joinpath("starter.toml").read_text(encoding="utf-8")
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise UsageError(f"{file} exists and is left as it is: name another file") from None
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from None
    click.echo(f"wrote {file}: set `name`, `agent` and `start`, then: think-conformance target check {file}")


@target_.command("check")
@click.argument("file")
@click.option("--out", type=click.Path(path_type=Path), help="folder of logs [default: think-runs/<time>]")
def check(file: str, out: Path | None) -> None:
    """Start a target by itself, probe it, and tell what is wrong with the adapter, a line each.

    Exit code 0 when all is well, 1 with a diagnosis, 5 when it never became ready.
    """
    target = load_target(file)
    if target.kind == "url":
        raise UsageError(f"{file} names a `url`: only what the kit starts itself can be checked; `run` it")
    store = Store(out or fresh_folder())
    try:
        found = interruptible(on_trial(target, store, tell))
    except asyncio.CancelledError:
        tell(f"interrupted; histories and log so far: {store.folder}")
        raise SystemExit(INTERRUPTED) from None
    for diagnosis in found:
        click.echo(plain(str(diagnosis), LINE))
    count = f"{len(found)} {'diagnosis' if len(found) == 1 else 'diagnoses'}"
    click.echo(f"failed: {count}; histories and log: {store.folder}" if found else f"passed: {target.name}")
    never = any(diagnosis.name == "never-ready" for diagnosis in found)
    raise SystemExit(NOT_READY if never else 1 if found else 0)
