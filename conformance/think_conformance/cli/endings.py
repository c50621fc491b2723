"""How a command ends: one exit code (`shell/ending.py`), and one line for whatever a user can cause."""

from __future__ import annotations

import asyncio
import signal
import traceback
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

import click

from think_conformance import interrupts
from think_conformance.history.plain import plain
from think_conformance.shell.ending import INTERRUPTED, KIT_BROKE, USAGE, code_of

T = TypeVar("T")

LINE = 4000
"""Characters of one line on stderr."""


class Commands(click.Group):
    """Turns what a user can cause into one line and the right exit code; the rest is our own fault."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            _refuse(error)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.exceptions.Exit:
            raise
        except click.UsageError as error:
            _refuse(error)
        except (click.Abort, KeyboardInterrupt):
            _stop("interrupted", INTERRUPTED)
        except Exception as error:
            code = code_of(error)
            if code != KIT_BROKE:
                _stop(str(error), code)
            traceback.print_exc()
            _stop("the kit itself broke: please report the lines above", code)


def interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Runs it to its end. SIGINT and SIGTERM cancel it, so that it can clean up; CancelledError then."""

    async def main() -> T:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        if interrupts.came():
            task.cancel()
        return await task

    before = signal.getsignal(signal.SIGTERM)
    try:
        return asyncio.run(main())
    finally:
        signal.signal(signal.SIGTERM, before)  # the loop has put the system's own in its place


def tell(text: str) -> None:
    """One line on stderr."""
    click.echo(f"think-conformance: {plain(text, LINE)}", err=True)


def _refuse(error: click.UsageError) -> NoReturn:
    error.show()
    raise SystemExit(USAGE) from None


def _stop(text: str, code: int) -> NoReturn:
    tell(text)
    raise SystemExit(code)
