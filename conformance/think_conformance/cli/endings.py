"""How a command ends: one exit code, and one line for whatever a user can cause.

Exit codes: 0 as expected, 1 unexpected failure or pass, 2 inconclusive or nothing checked, 3 the kit
itself broke, 4 usage, 5 the target never became ready, 130 interrupted.
"""

from __future__ import annotations

import traceback
from typing import Any, NoReturn

import click

from think_conformance.shell.logbook import KIT_BROKE
from think_conformance.shell.process import TargetNotReady
from think_conformance.targets.contract import UsageError

USAGE, NOT_READY, INTERRUPTED = 4, 5, 130


class Commands(click.Group):
    """Turns what a user can cause into one line and the right exit code; the rest is our own fault."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort):
            raise
        except click.UsageError as error:
            error.show()
            raise SystemExit(USAGE) from None
        except (UsageError, ValueError) as error:
            _stop(str(error), USAGE)
        except TargetNotReady as error:
            _stop(str(error), NOT_READY)
        except Exception:
            traceback.print_exc()
            _stop("the kit itself broke: please report the lines above", KIT_BROKE)


def tell(text: str) -> None:
    """One line on stderr."""
    click.echo(f"think-conformance: {text}", err=True)


def _stop(text: str, code: int) -> NoReturn:
    tell(text)
    raise SystemExit(code)
