"""The command that holds two runs against each other: what differs, and whether all of it is decided."""

from __future__ import annotations

from pathlib import Path

import click

from think_conformance.checkers.agreement import scenario_of
from think_conformance.cli.options import FOLDER
from think_conformance.differences import table
from think_conformance.differences.decisions import Decisions, decide, load
from think_conformance.differences.rows import compare
from think_conformance.errors import UsageError
from think_conformance.given import text_of
from think_conformance.history.op import History
from think_conformance.shell.recorder import read_history
from think_conformance.shell.store import asked_of, histories_of


@click.command()
@click.argument("a", metavar="RUN_A", type=FOLDER)
@click.argument("b", metavar="RUN_B", type=FOLDER)
@click.option("--decisions", type=click.Path(path_type=Path), help="what differs and stays so, a TOML file")
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text")
def diff(a: Path, b: Path, decisions: Path | None, form: str) -> None:
    """Compare the frames of two runs of the same plans, say of two targets.

    Exit code 0 when every difference is decided, 1 when one is open or a decision is stale, 2 when
    no connection of the two met the same moment, so that nothing was compared.
    """
    names = tuple(asked_of(run).target.name or str(run) for run in (a, b))
    known = [] if decisions is None else _decisions(decisions, names).decision
    comparison = compare(_run(a), _run(b))
    decided = decide(comparison, known)
    if form == "json":
        click.echo(table.as_json(decided, comparison), nl=False)
    else:
        shown = table.text(decided) if form == "text" else table.markdown(decided, *names)
        click.echo(shown, nl=False)
    code = 1 if decided.open or decided.stale else 0 if comparison.compared else 2
    if form == "text":
        click.echo(
            f"{len(decided.rows)} differences, {decided.open} open, {len(decided.stale)} decisions stale; "
            f"{comparison.compared} of {comparison.connections} connections compared -> exit {code}"
        )
    raise SystemExit(code)


def _run(folder: Path) -> dict[str, History]:
    """The histories of a run; of a repeated case the first."""
    files = histories_of(folder)
    if not files:
        raise UsageError(f"{folder} holds no cases/*/history.jsonl: name the folder of a run")
    run: dict[str, History] = {}
    for file in files:
        run.setdefault(scenario_of(file.parent.name), read_history(file))
    return run


def _decisions(file: Path, names: tuple[str, ...]) -> Decisions:
    """The decisions in a file. UsageError, one line, when they are broken or of other targets."""
    found = load(text_of(file, "decisions"), str(file))
    if (found.a, found.b) != names:
        raise UsageError(
            f"{file} is of `{found.a}` against `{found.b}`, the runs are of `{names[0]}` and `{names[1]}`: "
            "name the runs in that order"
        )
    return found
