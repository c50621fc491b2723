"""The run directory: env.json, plan/, cases/<case>/history.jsonl, verdicts.json, accounting.json. Writes it
as a run goes, and finds the way from a saved plan, or from what is to be played again, back to its run."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from think_conformance.accounting import Accounting
from think_conformance.checkers.agreement import scenario_of
from think_conformance.checkers.base import State, Verdict
from think_conformance.errors import UsageError
from think_conformance.plan import Plan
from think_conformance.shell.files import write_whole
from think_conformance.wire.codec import loads

T = TypeVar("T")


def fresh_folder() -> Path:
    """A run directory that nobody has: `think-runs/<time>` in the current folder."""
    return Path("think-runs") / datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")


def target_of(plan: Path) -> str | None:
    """How the target was named in the run that saved this plan; None for a plan of no run. UsageError
    when the run directory is broken."""
    env = plan.absolute().parent.parent / "env.json"
    if plan.absolute().parent.name != "plan" or not env.exists():
        return None
    try:
        return read(env, _Named).target.spec
    except UsageError as error:
        raise UsageError(f"{error}; name the target with --target") from None


class Called(msgspec.Struct, frozen=True):
    """The name of a target, how the user named it, the deliberate defect that was switched on."""

    name: str | None = None
    spec: str | None = None
    defect: str | None = None


class Asked(msgspec.Struct, frozen=True):
    """What was asked of a run: the profiles judged (empty: all), the scenarios chosen (None: nobody knows),
    the target, the baseline, the revision that scores (None: all does)."""

    profiles: tuple[str, ...] = ()
    scenarios: tuple[str, ...] | None = None
    target: Called = Called()
    baseline: str | None = None
    revision: int | None = None


UNSETTLED: tuple[State, ...] = ("failed", "not-testable", "flaky", "unexpected-pass", "inconclusive")
"""States of a verdict that is not as it should be."""


def asked_of(run_dir: Path) -> Asked:
    """What was asked of a run, by its directory; nothing, for histories of no run. UsageError when the run
    directory is broken."""
    return kept(run_dir / "env.json", Asked) or Asked()


def unsettled(run_dir: Path) -> tuple[Asked, list[str]]:
    """What was asked of a run, and the scenarios of it that did not end as they should, or did not run at
    all though they could have. UsageError when the run directory does not say."""
    asked = asked_of(run_dir)
    if asked.scenarios is None:
        raise UsageError(f"{run_dir} holds no env.json of a run: name the folder of a run")
    told = verdicts_of(run_dir)
    bad = {scenario_of(v.case) for v in told if v.state in UNSETTLED}
    settled = {scenario_of(v.case) for v in told} - bad
    return asked, [scenario for scenario in asked.scenarios if scenario not in settled]


def histories_of(run_dir: Path) -> list[Path]:
    """The files of the histories in a run directory, in order of the name of the case."""
    return sorted(file for file in run_dir.glob("cases/*/history.jsonl") if file.is_file())


def verdicts_of(run_dir: Path) -> list[Verdict]:
    """The verdicts that a run wrote, none where it came to none. UsageError when they are broken."""
    return kept(run_dir / "verdicts.json", list[Verdict]) or []


def accounting_of(run_dir: Path) -> Accounting | None:
    """The account of a run, where it kept one. UsageError when it is broken."""
    return kept(run_dir / "accounting.json", Accounting)


def kept(path: Path, kind: type[T]) -> T | None:
    """What a file of a run directory holds, None where there is no such file. UsageError as `read`."""
    return read(path, kind) if path.exists() else None


def read(path: Path, kind: type[T]) -> T:
    """What a file of a run directory holds. UsageError, one line, for none and for a broken one."""
    try:
        return msgspec.convert(loads(path.read_bytes()), kind)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path} is not what a run writes: {error}") from None


class _Target(msgspec.Struct):
    spec: str


class _Named(msgspec.Struct):
    target: _Target


class Store:
    """A directory of its own for one run; never an existing one with something in it."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise UsageError(f"the output folder {folder} is in use: name a new or empty one with --out")
            self.folder = folder
            for name in ("plan", "cases"):
                (folder / name).mkdir()
        except OSError as error:
            raise UsageError(
                f"the output folder {folder} cannot be written ({error.strerror}): name another --out"
            ) from None

    def case(self, case: str) -> Path:
        """The folder of one case, made at first use."""
        folder = self.folder / "cases" / case
        folder.mkdir(exist_ok=True)
        return folder

    def history(self, case: str) -> Path:
        """Where the history of a case is written."""
        return self.case(case) / "history.jsonl"

    def plan(self, case: str) -> Path:
        """Where the plan of a case is written, as `replay` reads it."""
        return self.folder / "plan" / f"{case}.json"

    def save_plan(self, case: str, plan: Plan) -> None:
        """The plan of a case."""
        self._write(self.plan(case), plan)

    def save_env(self, env: dict[str, Any]) -> None:
        """What was run, by which versions, with which seed."""
        self._write(self.folder / "env.json", env)

    def save_verdicts(self, verdicts: list[Verdict]) -> None:
        """Every verdict so far."""
        self._write(self.folder / "verdicts.json", verdicts)

    def save_accounting(self, accounting: Accounting) -> None:
        """What ran so far, and why the rest did not."""
        self._write(self.folder / "accounting.json", accounting)

    def _write(self, path: Path, value: Any) -> None:
        """Half a surrogate pair, which a target may have sent, is written as its escape. UsageError on a full
        disk."""
        text = json.dumps(msgspec.to_builtins(value), indent=1, ensure_ascii=False, allow_nan=False)
        try:
            write_whole(path, f"{text}\n".encode(errors="backslashreplace"))
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from None
