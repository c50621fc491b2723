"""The command that tells where a requirement or a scenario stands in the source: file and line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

import think_conformance
from think_conformance.catalogue.model import requirements
from think_conformance.checkers import base
from think_conformance.errors import Unknown
from think_conformance.scenarios.base import load

PACKAGE = Path(think_conformance.__path__[0])


@click.command()
@click.argument("ident", metavar="ID")
def where(ident: str) -> None:
    """Tell where a requirement's row, check and scenarios stand, or a scenario: what, then FILE:LINE."""
    rows, scenarios = requirements(), load()
    if ident in rows:
        places = _of_requirement(ident)
    elif ident in scenarios:
        places = iter([("scenario", _scenario(ident))])
    else:
        raise Unknown("requirement or scenario", ident, [*rows, *scenarios])
    for what, place in places:
        click.echo(f"{what:10} {place}")


def _of_requirement(ident: str) -> Iterator[tuple[str, str]]:
    yield "row", _found("catalogue/*.yaml", rf"- id: {re.escape(ident)}$")
    check = base.load().get(ident)
    if check is not None:
        file = inspect.getsourcefile(check.function) or ""
        yield "check", f"{_short(Path(file))}:{inspect.getsourcelines(check.function)[1]}"
    for scenario in load().values():
        if ident in scenario.exercises:
            yield "scenario", f"{_scenario(scenario.id)}  {scenario.id}"


def _scenario(ident: str) -> str:
    return _found("scenarios/*.py", rf'\s*"{re.escape(ident)}",$')


def _found(pattern: str, line: str) -> str:
    """The first line, in the files of a pattern, that reads like this."""
    for file in sorted(PACKAGE.glob(pattern)):
        for number, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if re.match(line, text):
                return f"{_short(file)}:{number}"
    raise LookupError(f"nothing in {pattern} reads like {line}")


def _short(file: Path) -> Path:
    """As seen from where the user is, if it lies below."""
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file
