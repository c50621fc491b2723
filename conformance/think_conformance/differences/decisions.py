"""The decisions on what differs between two targets: a TOML file, and how rows are held against it.

A decision is of one row, or of all that fit a pattern; it cites the statements it rests on. One that no
row needs any more is stale and has to go, unless what it is of shows in some runs only (`racy`).
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

import msgspec
from msgspec import Struct

from think_conformance.differences.rows import Comparison, Row
from think_conformance.errors import UsageError

_STATEMENT = re.compile(r"[A-Z]+-\d+")


class Decision(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Why a difference stays. `row` is the text of a row, `match` a pattern for it in which `*` stands for
    anything: one of the two. `case`, a pattern too, must fit every case the row shows in. `spec`: ids
    of statements. `racy`: in some runs the row does not show."""

    spec: list[str]
    why: str
    row: str | None = None
    match: str | None = None
    case: str = "*"
    racy: bool = False

    @property
    def pattern(self) -> str:
        """What it is of, in words."""
        return self.row or self.match or ""

    def fits(self, row: Row) -> bool:
        """Whether it is of this row."""
        named = row.text == self.row if self.row is not None else _fits(self.match or "", row.text)
        return named and all(_fits(self.case, case) for case in row.cases)


class Decisions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The decisions on target `a` against target `b`."""

    version: int
    a: str
    b: str
    decision: list[Decision] = []


class Decided(Struct, frozen=True):
    """Every row with the first decision that is of it, and the decisions that are stale."""

    rows: tuple[tuple[Row, Decision | None], ...]
    stale: tuple[Decision, ...]

    @property
    def open(self) -> int:
        """How many rows nobody has decided."""
        return sum(decision is None for _, decision in self.rows)


def load(text: str, where: str) -> Decisions:
    """The decisions a TOML text holds. UsageError, one line, tells what is wrong."""
    try:
        table: Any = tomllib.loads(text)
        found = msgspec.convert(table, Decisions)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{where}: {error}") from None
    if found.version != 1:
        raise UsageError(f"{where}: `version` is not 1: start the file with `version = 1`")
    for number, decision in enumerate(found.decision, 1):
        wrong = _mistake(decision)
        if wrong:
            raise UsageError(f"{where}: decision {number} ({decision.pattern}): {wrong}")
    return found


def _mistake(decision: Decision) -> str:
    if (decision.row is None) == (decision.match is None):
        return "give either `row` or `match`"
    if not decision.why.strip():
        return "`why` is empty"
    strange = [ident for ident in decision.spec if not _STATEMENT.fullmatch(ident)]
    if strange:
        return f"`{strange[0]}` in `spec` is no id of a statement: give ids like WIRE-104"
    return "" if decision.spec else "`spec` names no statement: give ids like WIRE-104"


def decide(comparison: Comparison, decisions: list[Decision]) -> Decided:
    """Hold the rows against the decisions."""
    rows = tuple((row, next((d for d in decisions if d.fits(row)), None)) for row in comparison.rows)
    needed = [decision for _, decision in rows]
    stale = tuple(d for d in decisions if not d.racy and not any(d is n for n in needed))
    return Decided(rows, stale)


def _fits(pattern: str, text: str) -> bool:
    """Whether a text is what the pattern says, `*` being anything."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None
