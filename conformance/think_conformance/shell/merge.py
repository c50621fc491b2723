"""Several run directories as one: the shards of a selection, or runs that share no case otherwise.

What was observed is copied and judged again as a whole, so that a baseline is held against all of it. What
did not run stays told with its reason.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from think_conformance import baseline as baselines
from think_conformance.accounting import Accounting, added, scored
from think_conformance.baseline import Baseline
from think_conformance.checkers.base import exit_code
from think_conformance.checkers.tally import Tally
from think_conformance.errors import UsageError
from think_conformance.shell.ending import INTERRUPTED, KIT_BROKE, NOT_READY, USAGE
from think_conformance.shell.judging import judge
from think_conformance.shell.store import Store, histories_of
from think_conformance.wire.codec import loads

T = TypeVar("T")

SAME = ("kit", "target.name", "target.defect", "profiles", "revision", "repeat")
"""What the env.json of runs must have in common for them to be parts of one."""

CUT_SHORT_FIRST = (KIT_BROKE, USAGE, NOT_READY, INTERRUPTED)
"""Exit codes of runs that did not come to their end, the gravest first."""


class Part(msgspec.Struct, frozen=True):
    """One run directory, read."""

    folder: Path
    env: dict[str, Any]
    accounting: Accounting


def parts_of(folders: Sequence[Path]) -> list[Part]:
    """What the directories hold. UsageError for what is no run, or no part of one run with the others."""
    parts = [
        Part(
            folder,
            _read(folder / "env.json", dict[str, Any]),
            _read(folder / "accounting.json", Accounting),
        )
        for folder in folders
    ]
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
    return parts


def merge(parts: Sequence[Part], known: Baseline, store: Store) -> int:
    """Fills the new directory; the exit code of the whole. A part that was cut short cuts all short."""
    profiles = parts[0].env.get("profiles", ())
    tally = Tally(profiles)
    cut_off: set[str] = set()
    for part in parts:
        for name in ("cases", "plan"):
            shutil.copytree(part.folder / name, store.folder / name, dirs_exist_ok=True)
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


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.convert(loads(path.read_bytes()), kind)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name folders of runs") from None
    except ValueError as error:
        raise UsageError(f"{path} is not what a run writes: {error}") from None
