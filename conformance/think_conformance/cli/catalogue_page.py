"""The catalogue as a page: `docs/requirements.md`. Pure: data in, Markdown out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import get_args

from think_conformance.catalogue.model import Profile, Requirement

COMMAND = "think-conformance list requirements --format markdown"


def page(
    rows: Mapping[str, Requirement], frozen: Mapping[int, Collection[str]], unproven: Collection[str]
) -> Iterator[str]:
    """The lines: a table per profile. `frozen` are the ids of each revision, `unproven` those that no
    deliberate defect turns red yet."""
    musts = sum(row.level == "MUST" for row in rows.values())
    yield "# Requirements"
    yield ""
    yield f"Written by `{COMMAND}`; do not edit."
    yield f"There are {len(rows)} requirements, {musts} of them MUST."
    yield ""
    yield "What one is about, tells `think-conformance explain ID`; where it stands, `where ID`."
    yield "*Since* is the first revision that holds it, a dash where none does yet: under `--revision N`,"
    yield "what is newer than N is shown and scores nothing. *Unproven*: no deliberate defect turns it red."
    profiles: tuple[Profile, ...] = get_args(Profile)
    for profile in profiles:
        found = [row for row in rows.values() if row.profile == profile]
        if found:
            yield from ("", f"## {profile}", "")
            yield "| id | level | what must hold | since |"
            yield "|---|---|---|---|"
            yield from (_row(row, frozen, unproven) for row in found)


def _row(row: Requirement, frozen: Mapping[int, Collection[str]], unproven: Collection[str]) -> str:
    marks = [
        word
        for word, holds in (
            ("derived", row.source == "derived"),
            ("the reference only", row.reference_only),
            ("unproven", row.id in unproven),
        )
        if holds
    ]
    told = f"{row.sentence} *({', '.join(marks)})*" if marks else row.sentence
    since = min((number for number, ids in frozen.items() if row.id in ids), default="–")
    return f"| {row.id} | {row.level} | {told.replace('|', chr(92) + '|')} | {since} |"
