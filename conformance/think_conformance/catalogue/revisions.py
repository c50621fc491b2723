"""Frozen sets of requirements, a file of ids per revision: what a claim of that revision is held to.

Requirements that are newer than a revision are checked all the same, and score nothing under it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from think_conformance.catalogue.model import requirements
from think_conformance.errors import Unknown


def revisions() -> list[int]:
    """The numbers of all revisions, oldest first."""
    names = (entry.name for entry in files("think_conformance.catalogue").joinpath("sets").iterdir())
    return sorted(int(name.removesuffix(".txt")) for name in names if name.endswith(".txt"))


@cache
def revision(number: int) -> frozenset[str]:
    """The ids of a revision. Unknown when there is none of that number; ValueError on an id without a row:
    what was promised once cannot be taken back."""
    if number not in revisions():
        raise Unknown("revision", str(number), map(str, revisions()))
    text = files("think_conformance.catalogue").joinpath("sets", f"{number}.txt").read_text()
    ids = [line for line in text.splitlines() if line and not line.startswith("#")]
    for ident in ids:
        if ident not in requirements():
            raise ValueError(f"catalogue/sets/{number}.txt: `{ident}` has no row any more")
    return frozenset(ids)


def scores(ident: str, number: int | None) -> bool:
    """Whether a requirement counts; without a revision all do."""
    return number is None or ident in revision(number)
