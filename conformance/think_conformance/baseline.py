"""The baseline of a target: failures that are known, decided and told somewhere, each until a date.

Owns the file format and how verdicts are held against it. An entry explains one failure; it never hides
that the failure is gone, is another one, or was not looked for.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import date
from typing import Any

import msgspec
from msgspec import Struct

from think_conformance.catalogue.model import requirements
from think_conformance.checkers.agreement import scenario_of
from think_conformance.checkers.base import State, Verdict
from think_conformance.errors import Unknown, UsageError, suggest
from think_conformance.history.plain import plain
from think_conformance.scenarios.base import load as scenarios

BROKEN: tuple[State, ...] = ("failed", "warned", "flaky")
"""States that say a requirement was broken, at least once."""

_KEYS = ("version", "target", "expected")
_REQUIRED = ("id", "reason", "link", "expires")


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One known failure: of the requirement `id` in the scenario `case`, or wherever it fails. `link` is
    where it is told; `expires` is the last day it is honoured; `evidence` is a text that must occur in
    what the check said, else the failure is another one; `sometimes` where it hangs on a race inside the
    target, so that a pass says nothing."""

    id: str
    reason: str
    link: str
    expires: date
    case: str | None = None
    evidence: str | None = None
    sometimes: bool = False

    def __str__(self) -> str:
        return f"{self.id} in {self.case}" if self.case else self.id

    @property
    def told(self) -> str:
        """Why, where and how long it is known."""
        return f"known until {self.expires}: {self.reason} ({self.link})"


class Baseline(Struct, frozen=True, kw_only=True):
    """The entries of a file, held against verdicts as of `today`. `target` is the name of the target they
    are of, if the file says so."""

    target: str | None = None
    entries: tuple[Entry, ...] = ()
    today: date = date.min

    def expired(self, entry: Entry) -> bool:
        """Whether its last day is over."""
        return entry.expires < self.today


class Compared(Verdict, frozen=True, omit_defaults=True):
    """A verdict, and the entry of the baseline that lists it, if one does."""

    baseline: Entry | None = None


def listed(verdict: Verdict) -> str:
    """What the baseline tells of a verdict; empty when it does not list it."""
    return verdict.baseline.told if isinstance(verdict, Compared) and verdict.baseline else ""


# ---- the file -------------------------------------------------------------------------------


def load(text: str, where: str, today: date) -> Baseline:
    """The baseline that a TOML text holds. UsageError, one line, tells the first of what is wrong."""
    baseline, wrong = read(text, today)
    if wrong:
        more = f" (and {len(wrong) - 1} more: see `baseline lint`)" if len(wrong) > 1 else ""
        raise UsageError(f"{where}: {wrong[0]}{more}")
    return baseline


def read(text: str, today: date) -> tuple[Baseline, list[str]]:
    """What a TOML text holds that can be used, and all that is wrong with it, one line each."""
    try:
        table = tomllib.loads(text)
    except ValueError as error:
        return Baseline(), [f"not TOML: {error}"]
    wrong = [*_unknown(table, _KEYS)]
    if table.get("version") != 1:
        wrong.append("`version` is not 1: start the file with `version = 1`")
    target, rows = table.get("target"), table.get("expected", [])
    if not isinstance(target, str | None):
        wrong.append("`target` is not a name: give the `name` of a target file")
    if not isinstance(rows, list):
        wrong.append("`expected` is not a list of tables: start each entry with [[expected]]")
        rows = []
    entries = []
    for number, row in enumerate(rows, 1):
        mistakes = list(_mistakes(row))
        wrong += [f"entry {number}{_named(row)}: {mistake}" for mistake in mistakes]
        if not mistakes:
            entries.append(msgspec.convert(row, Entry))
    wrong += _overlaps(entries)
    return Baseline(target=target, entries=tuple(entries), today=today), wrong


def _mistakes(row: Any) -> Iterator[str]:
    """All that is wrong with one entry by itself."""
    if not isinstance(row, dict):
        yield "it is not a table: start it with [[expected]]"
        return
    missing = [f"`{key}` is missing" for key in _REQUIRED if key not in row]
    yield from (*_unknown(row, Entry.__struct_fields__), *missing)
    if missing:
        return
    try:
        entry = msgspec.convert(row, Entry)
    except msgspec.ValidationError as error:
        yield str(error)
        return
    if entry.id not in requirements():
        yield str(Unknown("requirement", entry.id, requirements()))
    if entry.case is not None and entry.case not in scenarios():
        yield str(Unknown("scenario", entry.case, scenarios()))
    for key in ("reason", "link", "evidence"):
        value = getattr(entry, key)
        if value is not None and not value.strip():
            yield f"`{key}` is empty"


def _unknown(table: dict[str, Any], known: Iterable[str]) -> Iterator[str]:
    keys = list(known)
    return (f"unknown key `{key}`{suggest(key, keys)}" for key in table if key not in keys)


def _named(row: Any) -> str:
    return f" ({row['id']})" if isinstance(row, dict) and "id" in row else ""


def _overlaps(entries: list[Entry]) -> Iterator[str]:
    """Entries of which two would match the same verdict."""
    for number, entry in enumerate(entries):
        for other in entries[:number]:
            told_apart = (
                other.case == entry.case
                and None not in (other.evidence, entry.evidence)
                and other.evidence != entry.evidence
            )
            same = None in (other.case, entry.case) or other.case == entry.case
            if other.id == entry.id and same and not told_apart:
                yield f"the entries `{other}` and `{entry}` match the same verdict: keep one of them"


def skeleton(target: str | None, verdicts: Iterable[Verdict], today: date) -> str:
    """The text of a baseline with an entry for each verdict that says broken, each scenario once. `reason`
    and `link` are empty, which is refused, and the entry is honoured today only: people decide."""
    lines = ["version = 1", *([f"target = {_toml(target)}"] if target else [])]
    broken = {(v.requirement, scenario_of(v.case)): v.reason for v in verdicts if v.state in BROKEN}
    for (requirement, case), said in sorted(broken.items()):
        lines += [
            "",
            "[[expected]]",
            f"# {plain(said)}",
            f"id = {_toml(requirement)}",
            f"case = {_toml(case)}",
        ]
        lines += ['reason = ""', 'link = ""', f"expires = {today}"]
    return "".join(f"{line}\n" for line in lines)


def _toml(text: str) -> str:
    return '"' + plain(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


# ---- holding verdicts against it ------------------------------------------------------------


def apply(
    baseline: Baseline, verdicts: Iterable[Verdict], played: Collection[str], profiles: Collection[str] = ()
) -> list[Verdict]:
    """The same verdicts, those that the baseline lists judged anew: broken as listed is `expected-fail`,
    kept is `unexpected-pass`. Broken otherwise, or after the entry expired, stays what it is and says so;
    so does `flaky`, since a failure that comes and goes is another one than was decided on, unless the
    entry says that it does: then a pass is a pass, too. Where neither was
    seen the verdict becomes `not-testable`, and one is added where there is none: an entry that nothing
    confirms could hide anything.

    `played` are the scenarios of the run, `profiles` those judged (empty: all). What the user left out
    by choosing them is outside the run, and nothing is said of it: whoever looks at one case must be able
    to do so with the baseline of all. An entry without a case needs one in which it fails, and is held to
    that where every scenario that exercises the requirement was played."""
    found = list(verdicts)
    told = {scenario_of(verdict.case) for verdict in found}
    by_id: defaultdict[str, list[int]] = defaultdict(list)
    for place, verdict in enumerate(found):
        by_id[verdict.requirement].append(place)
    concerned: defaultdict[int, list[Entry]] = defaultdict(list)
    unseen: list[Verdict] = []
    for entry in baseline.entries:
        places = [n for n in by_id[entry.id] if entry.case in (None, scenario_of(found[n].case))]
        judged = not profiles or requirements()[entry.id].profile in profiles
        due = judged and not baseline.expired(entry) and _cases(entry) <= set(played)
        for n in _concerned(entry, due, {n: found[n].state for n in places}):
            concerned[n].append(entry)
        if due and not places and not entry.sometimes:
            unseen += [_unseen(entry, case, case in told) for case in sorted(_cases(entry))]
    for n, entries in concerned.items():
        found[n] = _held(found[n], entries, baseline)
    return found + unseen


def _cases(entry: Entry) -> set[str]:
    """The scenarios that must have been played before it is missed that nothing fails."""
    if entry.case is not None:
        return {entry.case}
    return {scenario.id for scenario in scenarios().values() if entry.id in scenario.exercises}


def _concerned(entry: Entry, due: bool, states: dict[int, State]) -> list[int]:
    """Of the verdicts that an entry lists, by place, those it has something to say of."""
    broken = [n for n, state in states.items() if state in BROKEN]
    if not due or (broken and entry.case is None):
        return broken
    passed = [n for n, state in states.items() if state == "passed"]
    return passed if passed and entry.case is None else list(states)


def _held(verdict: Verdict, entries: list[Entry], baseline: Baseline) -> Verdict:
    """One verdict held against the entries that list it, of which each explains the breaches it fits."""
    racy = all(entry.sometimes for entry in entries)
    if racy and verdict.state == "passed":
        return verdict
    live = [entry for entry in entries if not baseline.expired(entry)]
    fits = {breach: [e for e in live if (e.evidence or "") in breach] for breach in _breaches(verdict)}
    first = next((found[0] for found in fits.values() if found), entries[0])
    state, said = _stated(verdict, entries, live, fits, racy)
    if state == "passed":
        state, said = "unexpected-pass", f"passed, although the baseline lists {first}: remove the entry"
    return Compared(
        requirement=verdict.requirement,
        case=verdict.case,
        state=state,
        reason=said,
        evidence=verdict.evidence,
        breaches=verdict.breaches,
        repeats=verdict.repeats,
        baseline=first,
    )


def _breaches(verdict: Verdict) -> list[str]:
    """What the check said of each breach; nothing of a repeat that shows none."""
    return verdict.breaches or ([verdict.reason] if verdict.evidence else [])


def _stated(
    verdict: Verdict, entries: list[Entry], live: list[Entry], fits: dict[str, list[Entry]], racy: bool
) -> tuple[State, str]:
    """The state, and why it is that."""
    said, state = verdict.reason, verdict.state
    if state == "passed":
        return state, said
    if state not in BROKEN:
        seen = f"{state}, {said}" if said else state
        return "not-testable", f"the baseline lists {entries[0]} as failing, which was not seen: {seen}"
    comes_and_goes = racy and bool(verdict.repeats) and {"passed", *BROKEN}.issuperset(verdict.repeats)
    if state == "flaky" and not comes_and_goes:
        return state, f"{said}; the baseline lists {entries[0]} as failing every time"
    if not live:
        return state, f"{said}; its entry in the baseline expired on {entries[0].expires}"
    if not all(fits.values()):
        return state, f"{said}; the baseline lists another failure, with other evidence"
    explained = [entry for found in fits.values() for entry in found]
    missed = [entry for entry in live if entry not in explained and not entry.sometimes]
    if missed and state != "flaky":
        return (
            state,
            f"{said}; the baseline lists another failure too, which was not seen: {missed[0].evidence}",
        )
    return "expected-fail", said


def _unseen(entry: Entry, case: str, told: bool) -> Verdict:
    """What is said of a case without a verdict on what is listed; `told`: it has others."""
    why = "the case shows nothing of it" if told else "the case was not played"
    reason = f"the baseline lists {entry} as failing, which was not seen: {why}"
    return Compared(requirement=entry.id, case=case, state="not-testable", reason=reason, baseline=entry)
