"""The run directory, while it is written: env.json, plan/, cases/<case>/history.jsonl, verdicts.json."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from think_conformance.checkers.base import Verdict
from think_conformance.plan import Plan
from think_conformance.targets.contract import UsageError


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
                f"the output folder {folder} cannot be written ({error.strerror}): name another one with --out"
            ) from None

    def case(self, case: str) -> Path:
        """The folder of one case, made at first use."""
        folder = self.folder / "cases" / case
        folder.mkdir(exist_ok=True)
        return folder

    def history(self, case: str) -> Path:
        """Where the history of a case is written."""
        return self.case(case) / "history.jsonl"

    def save_plan(self, case: str, plan: Plan) -> None:
        """The plan of a case, as `replay` reads it."""
        self._write(f"plan/{case}.json", msgspec.to_builtins(plan))

    def save_env(self, env: dict[str, Any]) -> None:
        """What was run, by which versions, with which seed."""
        self._write("env.json", env)

    def save_verdicts(self, verdicts: list[Verdict]) -> None:
        """Every verdict so far."""
        self._write("verdicts.json", verdicts)

    def _write(self, name: str, value: Any) -> None:
        """Whole or not at all: a reader never sees half a file."""
        path = self.folder / name
        text = msgspec.json.format(msgspec.json.encode(value), indent=1)
        aside = path.with_suffix(".part")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text + b"\n")
        aside.replace(path)
