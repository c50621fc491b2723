"""Reads run directories and writes reports into them.

A run directory holds env.json, verdicts.json, accounting.json and cases/<case>/history.jsonl. Whatever of it
is missing or broken is a UsageError of one line that names the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from think_conformance.baseline import Compared
from think_conformance.catalogue.model import requirements
from think_conformance.errors import UsageError
from think_conformance.history.op import History
from think_conformance.shell.files import write_whole
from think_conformance.shell.recorder import read_history
from think_conformance.shell.store import accounting_of, histories_of, kept, read
from think_reports.model import Environment, RunReport, build


def report(run_dir: Path) -> RunReport:
    """The report of a run directory, finished or not; no verdicts yet are none."""
    return build(
        read(run_dir / "env.json", Environment),
        kept(run_dir / "verdicts.json", list[Compared]) or [],
        histories(run_dir),
        requirements(),
        accounting_of(run_dir),
    )


def write(run_dir: Path, name: str, text: str) -> Path:
    """Write `run_dir/name` whole or not at all, readable by its owner only; its path."""
    path = run_dir / name
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    return path


def histories(run_dir: Path) -> Iterator[tuple[str, History]]:
    """The histories of a run by case, one at a time, so that only one is held in memory."""
    for path in histories_of(run_dir):
        yield path.parent.name, read_history(path)
