"""What a person sees while cases are played, on stderr: a bar on a terminal, plain lines everywhere else."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from think_conformance.checkers.base import WORST_FIRST, State
from think_conformance.shell.run import Ended
from think_conformance.shell.run import Progress as Told
from think_conformance.shell.store import Store

COLOURS: dict[State, str] = {
    "failed": "bold red",
    "not-testable": "bold red",
    "flaky": "bold red",
    "unexpected-pass": "bold red",
    "inconclusive": "magenta",
    "warned": "yellow",
    "expected-fail": "cyan",
    "passed": "green",
    "not-applicable": "dim",
}


@contextmanager
def progress(total: int, store: Store, console: Console | None = None) -> Iterator[Told]:
    """What to call after each case. A case that needs a look comes with the command that plays it again,
    one that was not played with the reason."""
    console = console or Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal or console.is_dumb_terminal or "CI" in os.environ:
        yield _lines(total, store, console)
    else:
        with _bar(console) as bar:
            yield _live(total, store, bar)


def _lines(total: int, store: Store, console: Console) -> Told:
    """One line per finished case."""
    console.print(f"{total} {'case' if total == 1 else 'cases'}")
    done = 0

    def told(ended: Ended) -> None:
        nonlocal done
        done += 1
        console.print(f"[{done}/{total}] {ended.state:15} {_case(ended)}", markup=False)
        if again := _again(ended, store):
            console.print(f"    {again}", markup=False)

    return told


def _live(total: int, store: Store, bar: Progress) -> Told:
    """A bar with counts; above it a line for each case that did not simply pass."""
    task = bar.add_task("", total=total, counts="")
    counts: Counter[State] = Counter()

    def told(ended: Ended) -> None:
        state = ended.state
        counts[state] += 1
        said = [f"[{COLOURS[s]}]{counts[s]} {s}[/]" for s in WORST_FIRST if s in counts]
        bar.update(task, advance=1, counts="  ".join(said))
        again = _again(ended, store)
        if again or ended.missing:
            bar.console.print(f"[{COLOURS[state]}]{state:15}[/] {escape(_case(ended))}")
        if again:
            bar.console.print(f"    {again}", markup=False)

    return told


def _bar(console: Console) -> Progress:
    columns = (
        SpinnerColumn(),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.fields[counts]}"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True)


def _case(ended: Ended) -> str:
    """Which one, and how long it took or why it was not played."""
    return f"{ended.case} ({ended.missing or f'{ended.took_s:.1f} s'})"


def _again(ended: Ended, store: Store) -> str:
    """The command that plays a case again; empty for one that needs no look."""
    if ended.missing or ended.state in ("passed", "not-applicable", "expected-fail"):
        return ""
    return f"think-conformance replay {store.plan(ended.case)}"
