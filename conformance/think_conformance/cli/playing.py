"""The commands that play cases: `run` the scenarios, `replay` one saved plan. Both leave a run folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from think_conformance.cli.endings import interruptible, tell
from think_conformance.cli.options import FOLDER
from think_conformance.cli.progress import progress
from think_conformance.errors import UsageError
from think_conformance.shell.ending import INTERRUPTED, code_of
from think_conformance.shell.logbook import logbook, summary
from think_conformance.shell.order import Order, again, options, planned
from think_conformance.shell.process import TargetNotReady
from think_conformance.shell.run import Run
from think_conformance.shell.store import Store, fresh_folder, target_of
from think_proxy.carriers.abilities import EMBEDDED
from think_proxy.carriers.choice import PROXIES

Command = TypeVar("Command", bound=Callable[..., Any])


TARGET = "a target file, a URL, or the name of a packaged target [default: reference]"
RERUN = "only what failed, decided nothing or did not run there; its target, unless another is given"
TIME_LIMIT = "seconds for all cases together; what is left then is told, and the exit code is 2"
STDOUT = "what stdout holds"
OUT = "folder of this run [default: think-runs/<time>]"
TIMEOUT = "seconds for one case"
CARRIER = "what carries the faults; a plan it does not do exactly is not played, and told"
BASELINE = "known failures of the target, a TOML file: what it lists must fail, all else must not"


def _shared(command: Command) -> Command:
    """The options of every command that plays."""
    for option in (
        click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help=STDOUT),
        click.option("--out", type=click.Path(path_type=Path), help=OUT),
        click.option("--carrier", type=click.Choice([*PROXIES]), default=EMBEDDED, help=CARRIER),
        click.option("--timeout", "timeout_s", type=float, default=60.0, help=TIMEOUT, show_default=True),
    ):
        command = option(command)
    return command


@click.command()
@click.option("--target", help=TARGET)
@click.option("--profile", "profiles", multiple=True, help="only this profile; may be repeated")
@click.option("--id", "ids", multiple=True, help="only what exercises this requirement; may be repeated")
@click.option("-k", "expression", help="only scenarios that match: words of ids, with and, or, not")
@click.option("--rerun-failed", type=FOLDER, metavar="RUN_DIR", help=RERUN)
@click.option("--shard", metavar="I/N", help="only the I-th of N shares of what is selected; see `merge`")
@click.option("--defect", help="switch a deliberate defect of the target on")
@click.option("--baseline", type=click.Path(path_type=Path), help=BASELINE)
@click.option("--seed", type=int, help="what chance is drawn from [default: random, printed]")
@click.option("--jobs", type=click.IntRange(1), help="cases at a time [default: number of processors]")
@click.option("--repeat", type=click.IntRange(1), default=1, help="times to play each", show_default=True)
@click.option("--time-limit", "time_limit_s", type=float, help=TIME_LIMIT)
@click.option("--revision", type=int, help="score only this frozen set of requirements; the rest is shown")
@_shared
def run(out: Path | None, form: str, target: str | None, **asked: Any) -> None:
    """Play the scenarios against a target and judge what was observed."""
    order = Order(target="reference" if target is None else target, **asked)
    if order.rerun_failed is not None and target is None:
        order = again(order, order.rerun_failed)
    _play(order, out, form)


@click.command()
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", help="another target [default: that of the plan's run, else reference]")
@click.option("--defect", help="another deliberate defect than the plan names")
@click.option("--clean", is_flag=True, help="without the deliberate defect the plan names")
@_shared
def replay(plan: Path, clean: bool, out: Path | None, form: str, **asked: Any) -> None:
    """Play one saved plan again: RUN/plan/CASE.json, or one written by hand (YAML or JSON)."""
    if asked["defect"] is not None and clean:
        raise UsageError("--defect and --clean exclude each other: give one of them")
    scenario = planned(plan)
    planned_defect = scenario.plan.target.defect
    order = Order(
        target=(target_of(plan) or "reference") if asked["target"] is None else asked["target"],
        scenarios=[scenario],
        defect=None if clean else planned_defect if asked["defect"] is None else asked["defect"],
        seed=scenario.plan.seed,
        timeout_s=asked["timeout_s"],
        carrier=asked["carrier"],
    )
    _play(order, out, form)


def _play(order: Order, out: Path | None, form: str) -> None:
    """The whole run, from the first line of output to the exit code."""
    ordered = options(order)
    if form == "text":
        click.echo(f"seed {ordered.seed}")
    store = Store(out or fresh_folder())
    with logbook(order, ordered, store, tell) as ending:
        try:
            with progress(len(ordered.scenarios) * ordered.repeat, store) as told:
                ending.exit_code = _until_done_or_interrupted(Run(ordered, store, told, tell))
        except TargetNotReady as error:
            tell(str(error))
            ending.exit_code = code_of(error)
    click.echo(_results(store) if form == "json" else summary(store, tell), nl=False)
    raise SystemExit(ending.exit_code)


def _results(store: Store) -> str:
    """The content of results.json; empty when it could not be made, which was told."""
    path = store.folder / "results.json"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _until_done_or_interrupted(run: Run) -> int:
    try:
        return interruptible(run.play())
    except asyncio.CancelledError:
        tell("interrupted; what is known so far was written")
        return INTERRUPTED
