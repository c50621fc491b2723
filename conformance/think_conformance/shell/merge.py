"""Several run directories as one: the shards of a selection, or runs that share no case otherwise.

What was observed is copied and judged again as a whole, so that a baseline is held against all of it. What
did not run stays told with its reason.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from think_conformance import baseline as baselines
from think_conformance.accounting import Accounting, added, scored
from think_conformance.baseline import Baseline
from think_conformance.checkers.base import exit_code
from think_conformance.checkers.tally import Tally
from think_conformance.errors import UsageError
from think_conformance.shell.ending import INTERRUPTED, KIT_BROKE, NOT_READY, USAGE
from think_conformance.shell.judging import judge
from think_conformance.shell.store import Store, histories_of, read

SAME = ("kit", "target.name", "target.defect", "profiles", "revision", "repeat")
"""What the env.json of runs must have in common for them to be parts of one."""

SHOWN = 5
"""Shares that are named when more are missing."""

CUT_SHORT_FIRST = (KIT_BROKE, USAGE, NOT_READY, INTERRUPTED)
"""Exit codes of runs that did not come to their end, the gravest first."""


class _Told(msgspec.Struct):
    """What an env.json must be for `merge` to rely on it."""

    kit: str
    profiles: list[str] = []
    scenarios: list[str] = []
    revision: int | None = None
    shard: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,6}/[0-9]{1,6}$")] | None = None
    cases: int | None = None
    duration_s: float | None = None
    exit_code: int | None = None


class Part(msgspec.Struct, frozen=True):
    """One run directory, read."""

    folder: Path
    env: dict[str, Any]
    accounting: Accounting


def parts_of(folders: Sequence[Path]) -> list[Part]:
    """What the directories hold. UsageError for what is no run, or no part of one run with the others."""
    parts = [_part(folder) for folder in folders]
    first = parts[0]
    owners: dict[str, Path] = {}
    for part in parts:
        for key in SAME:
            if _at(part.env, key) != _at(first.env, key):
                raise UsageError(
                    f"{part.folder} and {first.folder} are no parts of one run: they differ in `{key}`"
                )
        for case in _cases(part):
            if case in owners:
                raise UsageError(
                    f"the case {case} is in {owners[case]} and in {part.folder}: merge shares, not repeats"
                )
            owners[case] = part.folder
    _check_shares(parts)
    return parts


def merge(parts: Sequence[Part], known: Baseline, store: Store) -> int:
    """Fills the new directory; the exit code of the whole. A part that was cut short cuts all short."""
    profiles = parts[0].env.get("profiles", ())
    tally = Tally(profiles)
    cut_off: set[str] = set()
    for part in parts:
        _copy(part, store)
        cut_off |= judge(part.folder, tally).cut_off
    account = added(part.accounting for part in parts)
    played = [name for part in parts for name in part.env.get("scenarios", ())]
    verdicts = baselines.apply(known, tally.verdicts, set(played) - cut_off, profiles)
    code = exit_code(scored(verdicts, parts[0].env.get("revision")))
    # a run that nobody let end has no code at all
    codes = {part.env.get("exit_code", INTERRUPTED) for part in parts}
    code = next((cut for cut in CUT_SHORT_FIRST if cut in codes), code)
    store.save_verdicts(verdicts)
    store.save_accounting(account)
    store.save_env(_env(parts, played, code))
    return code


def _copy(part: Part, store: Store) -> None:
    """The plans and what is in the folders of the cases, plain files only."""
    for file in [*part.folder.glob("plan/*.json"), *part.folder.glob("cases/*/*")]:
        if file.is_file():
            copy = store.folder / file.relative_to(part.folder)
            try:
                copy.parent.mkdir(exist_ok=True)
                shutil.copy(file, copy)
            except OSError as error:
                raise UsageError(f"{file} cannot be copied: {error.strerror}") from None


def _part(folder: Path) -> Part:
    env = folder / "env.json"
    read(env, _Told)
    return Part(folder, read(env, dict[str, Any]), read(folder / "accounting.json", Accounting))


def _check_shares(parts: Sequence[Part]) -> None:
    """UsageError unless the shares of a selection are all there: without one, what it holds was never
    asked, and nobody would be told."""
    shares = [part.env["shard"] for part in parts if part.env.get("shard") is not None]
    for total in {share.partition("/")[2] for share in shares}:
        missing = [share for n in range(int(total)) if (share := f"{n + 1}/{total}") not in shares]
        if missing:
            more = ", …" if len(missing) > SHOWN else ""
            raise UsageError(f"shares are missing: {', '.join(missing[:SHOWN])}{more}; merge all of them")


def _env(parts: Sequence[Part], played: list[str], code: int) -> dict[str, Any]:
    seeds = {part.env.get("seed") for part in parts}
    return {
        **parts[0].env,
        "seed": seeds.pop() if len(seeds) == 1 else None,
        "shard": None,
        "merged": [str(part.folder.resolve()) for part in parts],
        "scenarios": sorted(played),
        "cases": sum(part.env.get("cases") or 0 for part in parts),
        "started": min(str(part.env.get("started")) for part in parts),
        "duration_s": max(part.env.get("duration_s") or 0.0 for part in parts),
        "exit_code": code,
    }


def _at(env: dict[str, Any], key: str) -> Any:
    value: Any = env
    for name in key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _cases(part: Part) -> set[str]:
    played = {file.parent.name for file in histories_of(part.folder)}
    return played | part.accounting.reasons.keys()
