"""The frame of a run directory: env.json when a run begins and when it ends, the reports after it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from think_conformance.errors import UsageError
from think_conformance.shell.ending import KIT_BROKE, code_of
from think_conformance.shell.order import Order, environment
from think_conformance.shell.run import Options
from think_conformance.shell.store import Store

Tell = Callable[[str], object]
"""Takes one line for the user."""


class Ending:
    """How a run ends, to be filled in by who runs it; a run whose end nobody told broke the kit."""

    exit_code = KIT_BROKE


@contextmanager
def logbook(order: Order, options: Options, store: Store, tell: Tell) -> Iterator[Ending]:
    """Around a run; whatever happens inside, its end is written down and reported. A report that cannot
    be made is told and changes nothing else."""
    env = environment(order, options)
    store.save_env(env)
    began = time.monotonic()
    ending = Ending()
    try:
        yield ending
    except BaseException as error:
        ending.exit_code = code_of(error)
        raise
    finally:
        env |= {"duration_s": round(time.monotonic() - began, 3), "exit_code": ending.exit_code}
        store.save_env(env)
        report(store, tell)


def report(store: Store, tell: Tell) -> None:
    """Makes every report of a run that has ended, but for the one that is only shown."""
    for door in entry_points(group="think_conformance.reports"):
        if door.name != "text":
            _made(door, store, tell)


def summary(store: Store, tell: Tell) -> str:
    """What a terminal shows of a run that has ended; empty, and told, when it cannot be made."""
    (door,) = entry_points(group="think_conformance.reports", name="text")
    return _made(door, store, tell) or ""


def _made(door: EntryPoint, store: Store, tell: Tell) -> Any:
    """What a door makes of the run. Anybody can register one, so anything can come out of it."""
    try:
        return door.load()(store.folder)
    except (Exception, SystemExit) as error:
        why = str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
        tell(f"the report `{door.name}` could not be made: {why}")
        return None
