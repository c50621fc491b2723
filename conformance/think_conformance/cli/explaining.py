"""A requirement and a scenario, told to a person. Pure: data in, lines out."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap

from think_conformance import narration
from think_conformance.catalogue.model import Requirement
from think_conformance.checkers import base
from think_conformance.scenarios.base import Scenario
from think_conformance.targets.defects import Defect

WIDTH = 100

SOURCES = {
    "seed": "demanded by the documents the kit is built on",
    "derived": "follows from the invariant",
    "real": "what the real implementation does and its clients rely on",
}


def requirement(row: Requirement, scenarios: Iterable[Scenario], defects: Iterable[Defect]) -> Iterator[str]:
    """Its sentence, how it is judged, the scenarios that exercise it, the deliberate defects it catches."""
    yield f"{row.id}  {row.level}  profile {row.profile}  source {row.source}: {SOURCES[row.source]}"
    yield from _indented(row.sentence)
    if row.reference_only:
        yield from _indented("Only the reference is held to this.")
    judged = base.load().get(row.id)
    if judged is not None:
        yield from ("", "judged by")
        yield from _indented(inspect.getdoc(judged.function) or judged.function.__name__)
    yield from _listed("exercised by", [(s.id, s.title) for s in scenarios if row.id in s.exercises])
    caught = [(d.name, d.summary) for d in defects if row.id in d.breaks]
    yield from _listed("broken by the deliberate defects", caught)


def scenario(one: Scenario, rows: Mapping[str, Requirement]) -> Iterator[str]:
    """Its title, its plan in words, the requirements it exercises."""
    yield one.id
    yield from _indented(one.title)
    yield ""
    for step in narration.tell(one.plan):
        yield from wrap(step, WIDTH, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False)
    yield from _listed("exercises", [(i, rows[i].sentence) for i in one.exercises])


def _indented(text: str) -> list[str]:
    flowing = " ".join(text.split())
    return wrap(flowing, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _listed(heading: str, named: list[tuple[str, str]]) -> Iterator[str]:
    yield from ("", heading)
    widest = max((len(name) for name, _ in named), default=0)
    for name, text in named:
        lines = wrap(text, max(WIDTH - widest - 4, 30), break_on_hyphens=False)
        yield f"  {name:{widest}}  {lines[0]}"
        yield from (f"  {'':{widest}}  {line}" for line in lines[1:])
    if not named:
        yield "  nothing yet"
