"""Two runs of the same plans, side by side: a row for everything in which they differ.

The text of a row is the same in every case it shows in, `what: A / B`, so that a person decides it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import groupby

from msgspec import Struct

from think_conformance.differences.labels import Label
from think_conformance.differences.shapes import shapes
from think_conformance.differences.voices import SPOKEN, Voice, Voices, voices
from think_conformance.errors import UsageError
from think_conformance.history.op import History
from think_conformance.history.plain import plain

Run = Mapping[str, History]
"""The histories of a run by the name of their case."""

Hunk = tuple[tuple[Label, ...], tuple[Label, ...]]

NOTHING = "nothing"
LONGEST = 600
"""Characters of the text of a row."""
PLANNED = ("configure", "model", "operations", "faults")


class Example(Struct, frozen=True):
    """Where a row shows: the case, whose frames (a connection, a turn, a request), the record in each run."""

    case: str
    whose: str = ""
    a: int | None = None
    b: int | None = None


class Row(Struct, frozen=True):
    """One difference: what it is about, what A has and what B has, the cases it shows in, an example."""

    what: str
    a: str
    b: str
    cases: tuple[str, ...]
    example: Example

    @property
    def text(self) -> str:
        """The row as decisions name it."""
        return plain(f"{self.what}: {self.a} / {self.b}", LONGEST)


class Comparison(Struct, frozen=True):
    """The rows, most cases first; how many connections both runs have, and how many of them met the agent
    at the same moment, so that their frames could be compared."""

    rows: tuple[Row, ...]
    connections: int
    compared: int


def compare(a: Run, b: Run) -> Comparison:
    """What differs between two runs. UsageError when they have no case in common or played another plan."""
    shared = sorted(a.keys() & b.keys())
    if not shared:
        raise UsageError("the two runs have no case in common: play the same scenarios in both")
    for case in shared:
        if _plan(a[case]) != _plan(b[case]):
            raise UsageError(f"case {case} was played by different plans: play both runs with the same kit")
    spoken = {case: (voices(a[case]), voices(b[case])) for case in shared}
    pairs = [
        (left[key], right[key])
        for left, right in spoken.values()
        for key in left.keys() & right.keys()
        if key[0] == "frames"
    ]
    found = [
        *_lonely_cases(a, b),
        *_shapes(a, b, shared),
        *(row for case in shared for row in _sequences(case, *spoken[case])),
    ]
    compared = sum(_same_moment(left, right) for left, right in pairs)
    return Comparison(tuple(_grouped(found)), len(pairs), compared)


def _grouped(found: Iterable[Row]) -> list[Row]:
    """One row a text."""
    by_text: dict[str, list[Row]] = {}
    for row in found:
        by_text.setdefault(row.text, []).append(row)
    rows = [
        Row(first.what, first.a, first.b, tuple(sorted({r.cases[0] for r in same})), first.example)
        for same in by_text.values()
        for first in same[:1]
    ]
    return sorted(rows, key=lambda row: (-len(row.cases), row.text))


def _plan(history: History) -> list[object]:
    payload = history[0].payload if history and history[0].kind == "case" else None
    plan = payload.get("plan") if isinstance(payload, dict) else None
    if not isinstance(plan, dict):
        raise UsageError("a history does not start with its case record")
    return [plan.get(key) for key in PLANNED]


def _lonely_cases(a: Run, b: Run) -> Iterator[Row]:
    for case in sorted(a.keys() ^ b.keys()):
        played = ("played", NOTHING) if case in a else (NOTHING, "played")
        yield Row(f"case {case}", *played, (case,), Example(case))


def _shapes(a: Run, b: Run, shared: list[str]) -> Iterator[Row]:
    left, right = (shapes((case, run[case]) for case in shared) for run in (a, b))
    for heading in sorted(left.keys() & right.keys()):
        for text, (case, record) in left[heading].items():
            if text not in right[heading]:
                yield Row(f"shape of {heading}", text, NOTHING, (case,), Example(case, a=record))
        for text, (case, record) in right[heading].items():
            if text not in left[heading]:
                yield Row(f"shape of {heading}", NOTHING, text, (case,), Example(case, b=record))


# ---- sequences ------------------------------------------------------------------------------


def _sequences(case: str, left: Voices, right: Voices) -> Iterator[Row]:
    for key in sorted(left.keys() | right.keys()):
        what, whose = key
        if what not in SPOKEN or (key in left and key in right):
            yield from _differences(case, what, whose, left.get(key, Voice()), right.get(key, Voice()))
        elif what == "frames":
            there = ("one more", NOTHING) if key in left else (NOTHING, "one more")
            yield Row("connection", *there, (case,), Example(case, whose))


def _same_moment(a: Voice, b: Voice) -> bool:
    """Whether both connections came while the same was going on: else their frames have to differ."""
    return a.met is not None and a.met == b.met


def _differences(case: str, what: str, whose: str, a: Voice, b: Voice) -> Iterator[Row]:
    if not _same_moment(a, b):
        return
    hunks = _hunks(a, b)
    while hunks:
        left, right = hunks.pop(0)
        twin = next((hunk for hunk in hunks if hunk == (right, left) and not (left and right)), None)
        if twin is not None:  # the same labels, elsewhere: one move is one difference
            hunks.remove(twin)
            order = ("earlier", "later") if left else ("later", "earlier")
            what_moved = f"order of {what}, {_said(left or right)}"
            first, second = (left, twin[1]) if left else (twin[0], right)
            yield Row(what_moved, *order, (case,), _example(case, whose, first, second))
        else:
            yield Row(what, _said(left), _said(right), (case,), _example(case, whose, left, right))


def _example(case: str, whose: str, a: tuple[Label, ...], b: tuple[Label, ...]) -> Example:
    return Example(case, whose, a[0].record if a else None, b[0].record if b else None)


def _hunks(a: Voice, b: Voice) -> list[Hunk]:
    """What stands in A where what in B. Behind the end of a connection that did not last, nothing is due."""
    found = []
    opcodes = SequenceMatcher(None, a.labels, b.labels, autojunk=False).get_opcodes()
    for tag, start, end, begin, until in opcodes:
        lost = (start == len(a.labels) and not a.whole) or (begin == len(b.labels) and not b.whole)
        if tag != "equal" and not lost:
            found.append((tuple(a.labels[start:end]), tuple(b.labels[begin:until])))
    return found


def _said(labels: tuple[Label, ...]) -> str:
    """Labels in words; a run of chunks of one request by its first and last."""
    words: list[str] = []
    for (chunk, _), group in groupby(labels, key=lambda said: (said.chunk, said.request)):
        run = list(group)
        if chunk and len(run) > 2:
            words.append(f"{run[0].text} … {run[-1]}")
        else:
            words += [str(said) for said in run]
    return ", ".join(words) or NOTHING
