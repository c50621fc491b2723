"""The command line `think-conformance`. Thin: options in, one engine, one exit code out.

`endings.py` owns the exit codes, `playing.py` the commands that play cases, `reading.py` and
`differing.py` those that only read, `finding.py` where things stand, `merging.py` several runs as one,
`selftesting.py` what proves the checks, `serving.py` the model alone, `adopting.py` what a new target
needs. Progress and errors go to stderr; stdout holds the seed first and one summary line last.
"""

from __future__ import annotations

from importlib.metadata import version

import click

from think_conformance.cli import (
    adopting,
    differing,
    finding,
    merging,
    playing,
    reading,
    selftesting,
    serving,
)
from think_conformance.cli.endings import Commands


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("think-conformance"))
def main() -> None:
    """Prove that a durable chat agent loses no turn and runs none twice.

    \b
    Start here:
      think-conformance run                       the kit against its own reference
      think-conformance target init my.toml       a target file for your implementation
      think-conformance target check my.toml      can the kit work with it?
      think-conformance run --target my.toml      against your implementation
      think-conformance run --target ws://HOST    against one that runs already
      think-conformance replay RUN/plan/CASE.json one case again
      think-conformance explain WIRE-104          what a requirement or a scenario is about
      think-conformance list requirements         what is checked
    """


for command in (
    playing.run,
    playing.replay,
    reading.explain,
    reading.check,
    reading.list_,
    reading.baseline_,
    differing.diff,
    serving.model,
    selftesting.selftest,
    finding.where,
    merging.merge,
    adopting.target_,
):
    main.add_command(command)
