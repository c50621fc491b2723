"""The frame of a run directory: env.json when a run begins and when it ends, the reports after it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points

from think_conformance.shell.order import Order, environment
from think_conformance.shell.run import Options
from think_conformance.shell.store import Store

KIT_BROKE = 3
"""The exit code of a run whose end nobody told."""


class Ending:
    """How a run ends, to be filled in by who runs it."""

    exit_code = KIT_BROKE


@contextmanager
def logbook(order: Order, options: Options, store: Store) -> Iterator[Ending]:
    """Around a run; whatever happens inside, its end is written down and reported."""
    env = environment(order, options)
    store.save_env(env)
    began = time.monotonic()
    ending = Ending()
    try:
        yield ending
    finally:
        env |= {"duration_s": round(time.monotonic() - began, 3), "exit_code": ending.exit_code}
        store.save_env(env)
        for door in doors().values():
            door.load()(store.folder)


def doors() -> dict[str, EntryPoint]:
    """The registered reports that write a file, by name: functions of a run directory."""
    return {
        door.name: door for door in entry_points(group="think_conformance.reports") if door.name != "text"
    }


def summary(store: Store) -> str:
    """What a terminal shows of a run that has ended."""
    (door,) = entry_points(group="think_conformance.reports", name="text")
    text: str = door.load()(store.folder)
    return text
