"""The run directory: env.json, plan/, cases/<case>/history.jsonl, verdicts.json. Writes it as a run goes,
and finds the way from a saved plan back to its run."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from think_conformance.checkers.base import Verdict
from think_conformance.plan import Plan
from think_conformance.targets.contract import UsageError


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
        return msgspec.json.decode(env.read_bytes(), type=_Env).target.spec
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(
            f"{env} does not say which target was run ({error}): name it with --target"
        ) from None


class _Target(msgspec.Struct):
    spec: str


class _Env(msgspec.Struct):
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
        self._write(self.plan(case), msgspec.to_builtins(plan))

    def save_env(self, env: dict[str, Any]) -> None:
        """What was run, by which versions, with which seed."""
        self._write(self.folder / "env.json", env)

    def save_verdicts(self, verdicts: list[Verdict]) -> None:
        """Every verdict so far."""
        self._write(self.folder / "verdicts.json", verdicts)

    def _write(self, path: Path, value: Any) -> None:
        """Whole or not at all: a reader never sees half a file."""
        text = msgspec.json.format(msgspec.json.encode(value), indent=1)
        aside = path.with_suffix(".part")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text + b"\n")
        aside.replace(path)
