"""The commands that play nothing: what the kit knows, and what an old run says today."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from think_conformance import baseline as baselines
from think_conformance.accounting import scored
from think_conformance.baseline import Baseline
from think_conformance.catalogue.model import requirements, unproven
from think_conformance.catalogue.revisions import revision, revisions
from think_conformance.checkers.base import exit_code, worst
from think_conformance.checkers.tally import Tally
from think_conformance.cli import explaining
from think_conformance.cli.catalogue_page import page
from think_conformance.cli.options import FOLDER
from think_conformance.errors import Unknown, UsageError
from think_conformance.history.plain import plain
from think_conformance.scenarios.base import load
from think_conformance.shell.ending import USAGE
from think_conformance.shell.judging import judge
from think_conformance.shell.order import baseline_of, baseline_text, today
from think_conformance.shell.store import asked_of
from think_conformance.targets.contract import load_target, packaged_targets
from think_conformance.targets.defects import defects_of

PAGE = "markdown: the page docs/requirements.md, of requirements only"


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
@click.argument("run_dir", type=FOLDER)
@click.option("--baseline", type=click.Path(path_type=Path), help="known failures, as for `run`")
def check(run_dir: Path, baseline: Path | None) -> None:
    """Judge the histories of a run directory again, with the checkers of today."""
    asked = asked_of(run_dir)
    tally = Tally(asked.profiles)
    judged = judge(run_dir, tally)
    known = Baseline() if baseline is None else baseline_of(baseline, asked.target.name)
    played = set(load() if asked.scenarios is None else asked.scenarios) - judged.cut_off
    verdicts = baselines.apply(known, tally.verdicts, played, asked.profiles)
    for verdict in sorted(verdicts, key=lambda v: (v.requirement, v.case)):
        reason = f": {verdict.reason}" if verdict.reason else ""
        click.echo(plain(f"{verdict.state:15} {verdict.requirement:10} {verdict.case}{reason}"))
    counted = scored(verdicts, asked.revision)
    state, code = worst(v.state for v in counted), exit_code(counted)
    rest = f", {len(verdicts) - len(counted)} unscored" if len(counted) < len(verdicts) else ""
    click.echo(f"{state}: {len(counted)} verdicts on {judged.histories} histories{rest} -> exit {code}")
    raise SystemExit(code)


@click.group("baseline")
def baseline_() -> None:
    """Begin a baseline, the known failures of a target, or look through one."""


@baseline_.command()
@click.argument("run_dir", type=FOLDER)
def write(run_dir: Path) -> None:
    """Print a baseline with an entry per failure of a run. Why, where and how long is yours to say."""
    asked = asked_of(run_dir)
    tally = Tally(asked.profiles)
    judge(run_dir, tally)
    click.echo(baselines.skeleton(asked.target.name, tally.verdicts, today()), nl=False)


@baseline_.command()
@click.argument("file", type=click.Path(path_type=Path))
def lint(file: Path) -> None:
    """Tell all that is wrong with a baseline, or has expired, a line each."""
    found, wrong = baselines.read(baseline_text(file), today())
    wrong += [f"{entry} expired on {entry.expires}" for entry in found.entries if found.expired(entry)]
    for line in wrong:
        click.echo(plain(f"{file}: {line}"))
    click.echo(f"entries: {len(found.entries)}, mistakes: {len(wrong)}")
    raise SystemExit(USAGE if wrong else 0)


@click.command("list")
@click.argument("what", type=click.Choice(["requirements", "scenarios", "targets", "defects"]))
@click.option("--target", default="reference", help="whose defects")
@click.option("--format", "form", type=click.Choice(["text", "markdown"]), default="text", help=PAGE)
def list_(what: str, target: str, form: str) -> None:
    """List what the kit knows."""
    if form == "markdown":
        if what != "requirements":
            raise UsageError(f"`list {what}` has no page: only `list requirements` does")
        frozen = {number: revision(number) for number in revisions()}
        for line in page(requirements(), frozen, unproven()):
            click.echo(line)
        return
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
