"""The command that makes one run of several: of the shards that CI played side by side."""

from __future__ import annotations

from pathlib import Path

import click

from think_conformance.baseline import Baseline
from think_conformance.cli.endings import tell
from think_conformance.cli.options import FOLDER
from think_conformance.shell.logbook import report, summary
from think_conformance.shell.merge import merge as merged
from think_conformance.shell.merge import parts_of
from think_conformance.shell.order import baseline_of
from think_conformance.shell.store import Store, asked_of, fresh_folder

OUT = "folder of the whole [default: think-runs/<time>]"
KNOWN = "known failures of the target, held against all of it [default: that of the runs]"


@click.command()
@click.argument("run_dirs", metavar="RUN_DIR...", nargs=-1, required=True, type=FOLDER)
@click.option("--baseline", type=click.Path(path_type=Path), help=KNOWN)
@click.option("--out", type=click.Path(path_type=Path), help=OUT)
def merge(run_dirs: tuple[Path, ...], baseline: Path | None, out: Path | None) -> None:
    """Make one run directory of several that share no case, and judge them as one."""
    parts = parts_of(run_dirs)
    asked = asked_of(run_dirs[0])
    file = baseline or (None if asked.baseline is None else Path(asked.baseline))
    known = Baseline() if file is None else baseline_of(file, asked.target.name)
    store = Store(out or fresh_folder())
    code = merged(parts, known, store)
    report(store, tell)
    click.echo(summary(store, tell), nl=False)
    raise SystemExit(code)
