"""The commands that play nothing: what the kit knows, and what an old run says today."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from think_conformance.catalogue.model import requirements
from think_conformance.checkers.base import worst
from think_conformance.checkers.tally import Tally
from think_conformance.cli import explaining
from think_conformance.errors import Unknown, UsageError
from think_conformance.history.plain import plain
from think_conformance.scenarios.base import load
from think_conformance.shell.recorder import read_history
from think_conformance.shell.store import profiles_of
from think_conformance.targets.contract import load_target, packaged_targets
from think_conformance.targets.defects import defects_of


@click.command()
@click.argument("ident", metavar="ID")
@click.option("--target", default="reference", help="whose defects")
def explain(ident: str, target: str) -> None:
    """Explain a requirement or a scenario: what it says, what shows it, what breaks it."""
    rows, scenarios = requirements(), load()
    if ident in rows:
        described = load_target(target)
        defects = defects_of(described) if described.defects_command else []
        lines = explaining.requirement(rows[ident], scenarios.values(), defects)
    elif ident in scenarios:
        lines = explaining.scenario(scenarios[ident], rows)
    else:
        raise Unknown("requirement or scenario", ident, [*rows, *scenarios])
    click.echo("\n".join(lines))


@click.command()
@click.argument("run_dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
def check(run_dir: Path) -> None:
    """Judge the histories of a run directory again, with the checkers of today."""
    files = sorted(run_dir.glob("cases/*/history.jsonl"))
    if not files and not (run_dir / "env.json").exists():
        raise UsageError(f"{run_dir} holds no cases/*/history.jsonl: name the folder of a run")
    tally = Tally(profiles_of(run_dir))
    for file in files:
        history = read_history(file)
        try:
            tally.judge(file.parent.name, history)
        except UsageError as error:
            raise UsageError(f"{file}: {error}") from None
    verdicts = tally.verdicts
    for verdict in sorted(verdicts, key=lambda v: (v.requirement, v.case)):
        reason = f": {verdict.reason}" if verdict.reason else ""
        click.echo(plain(f"{verdict.state:14} {verdict.requirement:10} {verdict.case}{reason}"))
    state = worst(v.state for v in verdicts)
    click.echo(f"{state}: {len(verdicts)} verdicts on {len(files)} histories -> exit {tally.exit_code}")
    raise SystemExit(tally.exit_code)


@click.command("list")
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
