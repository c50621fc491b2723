"""The catalogue: one row per requirement, in `<family>.yaml`. Loads and refuses bad rows."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
import yaml

Level = Literal["MUST", "SHOULD"]

Profile = Literal[
    "core",
    "resume",
    "control",
    "recovery",
    "tools",
    "overflow",
    "submissions",
    "routing",
    "observability",
    "voice",
]


class Requirement(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One row. `id` is the id of the specification's statement, the join of everything; `source`
    its tag (seed, derived, real); `sentence` what must hold, in one sentence a reader understands
    without the specification; `reference_only` marks a fact, judged on the reference alone."""

    id: str
    level: Level
    profile: Profile
    source: Literal["seed", "derived", "real"]
    sentence: str
    reference_only: bool = False


@cache
def requirements() -> dict[str, Requirement]:
    """All rows by id, in file order. ValueError names the file and the row that is wrong."""
    found: dict[str, Requirement] = {}
    folder = files("think_conformance.catalogue")
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if not entry.name.endswith(".yaml"):
            continue
        try:
            rows = msgspec.convert(yaml.safe_load(entry.read_text()), list[Requirement])
        except (msgspec.ValidationError, yaml.YAMLError) as error:
            raise ValueError(f"catalogue/{entry.name}: {error}") from None
        for row in rows:
            if row.id in found:
                raise ValueError(f"catalogue/{entry.name}: `{row.id}` has two rows")
            found[row.id] = row
    return found


@cache
def unproven() -> dict[str, str]:
    """The requirements that no deliberate defect turns red yet, each with the reason: `unproven.txt`
    holds one id a line and its reason behind it. ValueError on an id without a row, without a reason,
    or listed twice."""
    found: dict[str, str] = {}
    text = files("think_conformance.catalogue").joinpath("unproven.txt").read_text()
    for number, line in enumerate(text.splitlines(), 1):
        ident, _, reason = line.partition(" ")
        if not line or line.startswith("#"):
            continue
        if ident not in requirements() or not reason.strip() or ident in found:
            raise ValueError(
                f"catalogue/unproven.txt:{number}: `{ident}` needs a row, a reason, and one line"
            )
        found[ident] = reason.strip()
    return found
