"""What a target that is started gets: its command line and its environment. Pure."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from think_conformance.targets.contract import Target


def command_line(command: Sequence[str], extra_args: Sequence[str] = ()) -> list[str]:
    """The command with `{python}` replaced by the interpreter that runs the kit, and more arguments."""
    return [part.replace("{python}", sys.executable) for part in command] + list(extra_args)


def environment(
    target: Target, *, inherited: Mapping[str, str], port: int, data_dir: Path, extra: Mapping[str, str]
) -> dict[str, str]:
    """The kit's own environment, under the target file's, under the contract's variables."""
    contract = {"THINK_PORT": str(port), "THINK_DATA_DIR": str(data_dir)}
    return {**inherited, **target.env, **contract, **extra}


def executable(name: str, cwd: str | None, search: str | None) -> str | None:
    """The file that a command's first word runs, or None. A word with a slash is relative to `cwd`."""
    if os.sep in name:
        return shutil.which(str(Path(cwd or ".", name).absolute()))
    return shutil.which(name, path=search)
