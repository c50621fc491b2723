"""The command line `think-conformance`. Thin: options in, one engine, one exit code out.

Exit codes: 0 as expected, 1 unexpected failure or pass, 2 inconclusive or nothing checked, 3 the kit
itself broke, 4 usage, 5 the target never became ready, 130 interrupted. Progress and errors go to
stderr; stdout holds the seed first and one summary line last.
"""

from __future__ import annotations

import asyncio
import platform
import random
import secrets
import signal
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Any, NoReturn

import click

from think_conformance.catalogue.model import requirements
from think_conformance.checkers.base import Verdict, exit_code, judge, worst
from think_conformance.scenarios import selection
from think_conformance.scenarios.base import load
from think_conformance.shell.process import TargetNotReady
from think_conformance.shell.recorder import read_history
from think_conformance.shell.run import Options, Run
from think_conformance.shell.store import Store
from think_conformance.targets.contract import UsageError, load_target, packaged_targets
from think_conformance.targets.defects import defects_of

KIT_BROKE, USAGE, NOT_READY, INTERRUPTED = 3, 4, 5, 130


class Commands(click.Group):
    """Turns what a user can cause into one line and the right exit code; the rest is our own fault."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort):
            raise
        except click.UsageError as error:
            error.exit_code = USAGE
            raise
        except (UsageError, ValueError) as error:
            _stop(str(error), USAGE)
        except TargetNotReady as error:
            _stop(str(error), NOT_READY)
        except Exception:
            traceback.print_exc()
            _stop("the kit itself broke: please report the lines above", KIT_BROKE)


def _stop(text: str, code: int) -> NoReturn:
    click.echo(f"think-conformance: {text}", err=True)
    raise SystemExit(code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("think-conformance"))
def main() -> None:
    """Prove that a durable chat agent loses no turn and runs none twice.

    \b
    Start here:
      think-conformance run                       the kit against its own reference
      think-conformance run --target my.toml      against your implementation
      think-conformance list requirements         what is checked
    """


@main.command()
@click.option("--target", default="reference", help="a target file, the name of a packaged target, or a URL")
@click.option("--profile", "profiles", multiple=True, help="only this profile; may be repeated")
@click.option("-k", "expression", help="only scenarios that match: words of ids, with and, or, not")
@click.option("--defect", help="switch a deliberate defect of the target on")
@click.option("--seed", type=int, help="what chance is drawn from [default: random, printed]")
@click.option("--jobs", type=click.IntRange(1), help="cases at a time [default: number of processors]")
@click.option(
    "--repeat", type=click.IntRange(1), default=1, help="play each scenario that often", show_default=True
)
@click.option(
    "--timeout", "timeout_s", type=float, default=60.0, help="seconds for one case", show_default=True
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="folder of this run [default: think-runs/<time>]"
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="what stdout holds"
)
def run(
    target: str,
    profiles: tuple[str, ...],
    expression: str | None,
    defect: str | None,
    seed: int | None,
    jobs: int | None,
    repeat: int,
    timeout_s: float,
    out: Path | None,
    form: str,
) -> None:
    """Play the scenarios against a target and judge what was observed."""
    seed = random.SystemRandom().randrange(2**31) if seed is None else seed
    if form == "text":
        click.echo(f"seed {seed}")
    described = load_target(target)
    chosen = selection.by_profile(load().values(), requirements(), profiles)
    if expression:
        chosen = selection.by_expression(chosen, expression)
    if not chosen:
        raise UsageError("no scenario is selected: loosen --profile or -k")
    if defect:
        known = [d.name for d in defects_of(described)]
        if defect not in known:
            raise selection.Unknown("defect", defect, known)
    store = Store(out or Path("think-runs") / datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f"))
    options = Options(
        target=described,
        scenarios=chosen,
        profiles=frozenset(profiles),
        seed=seed,
        nonce=secrets.token_hex(3),
        jobs=jobs or _processors(),
        repeat=repeat,
        timeout_s=timeout_s,
        defect=defect,
    )
    raise SystemExit(_play(options, store, defect, form))


def _play(options: Options, store: Store, defect: str | None, form: str) -> int:
    env = {
        "kit": version("think-conformance"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "target": {"name": options.target.name, "defect": defect},
        "seed": options.seed,
        "jobs": options.jobs,
        "repeat": options.repeat,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    store.save_env(env)
    total = len(options.scenarios) * options.repeat
    run = Run(options, store, _Progress(total))
    began = time.monotonic()
    code = INTERRUPTED
    try:
        code = _until_done_or_interrupted(run)
    except TargetNotReady as error:
        click.echo(f"think-conformance: {error}", err=True)
        code = NOT_READY
    finally:
        env |= {"duration_s": round(time.monotonic() - began, 3), "exit_code": code}
        store.save_env(env)
        _report(store, form)
    return code


def _until_done_or_interrupted(run: Run) -> int:
    async def main() -> int:
        task = asyncio.ensure_future(run.play())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        try:
            return exit_code(await task)
        except asyncio.CancelledError:
            click.echo("think-conformance: interrupted; what is known so far was written", err=True)
            return INTERRUPTED

    return asyncio.run(main())


class _Progress:
    """One line per finished case, on stderr."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        click.echo(f"{total} cases", err=True)

    def __call__(self, case: str, verdicts: list[Verdict], took_s: float) -> None:
        self._done += 1
        state = worst(v.state for v in verdicts)
        click.echo(f"[{self._done}/{self._total}] {state:14} {case} ({took_s:.1f} s)", err=True)


def _report(store: Store, form: str) -> None:
    """Every registered report writes its file; stdout gets the one that was asked for."""
    doors = {door.name: door for door in entry_points(group="think_conformance.reports")}
    for name, door in doors.items():
        if name != "text":
            door.load()(store.folder)
    if form == "json":
        click.echo((store.folder / "results.json").read_text(), nl=False)
    else:
        click.echo(doors["text"].load()(store.folder), nl=False)


@main.command()
@click.argument("run_dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
def check(run_dir: Path) -> None:
    """Judge the histories of a run directory again, with the checkers of today."""
    files = sorted(run_dir.glob("cases/*/history.jsonl"))
    if not files:
        raise UsageError(f"{run_dir} holds no cases/*/history.jsonl: name the folder of a run")
    verdicts = [v for file in files for v in judge(read_history(file), requirements())]
    for verdict in sorted(verdicts, key=lambda v: (v.requirement, v.case)):
        reason = f": {verdict.reason}" if verdict.reason else ""
        click.echo(f"{verdict.state:14} {verdict.requirement:10} {verdict.case}{_plain(reason)}")
    code = exit_code(verdicts)
    click.echo(
        f"{worst(v.state for v in verdicts)}: {len(verdicts)} verdicts on {len(files)} histories -> exit {code}"
    )
    raise SystemExit(code)


@main.command("list")
@click.argument("what", type=click.Choice(["requirements", "scenarios", "targets", "defects"]))
@click.option("--target", default="reference", help="whose defects")
def list_(what: str, target: str) -> None:
    """List what the kit knows."""
    listings: dict[str, Callable[[], list[str]]] = {
        "requirements": lambda: [
            f"{r.id:10} {r.level:6} {r.profile:10} {r.sentence}" for r in requirements().values()
        ],
        "scenarios": lambda: [f"{s.id:40} {s.title}" for s in load().values()],
        "targets": packaged_targets,
        "defects": lambda: [f"{d.name:28} {d.summary}" for d in defects_of(load_target(target))],
    }
    for line in listings[what]():
        click.echo(line)


def _plain(text: str) -> str:
    """Text that came from a target, made harmless for a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _processors() -> int:
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(main())
