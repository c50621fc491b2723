"""The command `think-reference`."""

from __future__ import annotations

import asyncio
import sys
from difflib import get_close_matches
from functools import partial
from pathlib import Path

import click

from think_conformance.wire.codec import dumps
from think_reference.agent import ConformanceAgent, nowhere
from think_reference.core.policies import Policies
from think_reference.defects import DEFECTS

USAGE = 4
"""Exit code of a call that cannot work: bad option, port taken, a data folder that cannot be used."""


class Complaint(click.ClickException):
    """One line on standard error."""

    exit_code = USAGE


@click.group()
def cli() -> None:
    """The reference implementation of the Think protocol."""


@cli.command()
@click.option("--port", envvar="THINK_PORT", type=click.IntRange(0, 65535), required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--data-dir", envvar="THINK_DATA_DIR", type=click.Path(path_type=Path), required=True)
@click.option("--model-url", envvar="THINK_MODEL_URL", required=True, help="OpenAI-compatible base URL.")
@click.option("--effects-url", envvar="THINK_EFFECTS_URL", help="Where tools report their effects.")
@click.option("--durable", is_flag=True, help="Wait for the disk at every step: survives power loss.")
@click.option(
    "--unload-after",
    "unload_s",
    type=click.FloatRange(min=0.01),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long an agent is idle before it leaves memory; its sockets stay.",
)
@click.option("--defect", metavar="NAME", help="Misbehave on purpose; see `defects`.")
def serve(
    port: int,
    host: str,
    data_dir: Path,
    model_url: str,
    effects_url: str | None,
    durable: bool,
    unload_s: float,
    defect: str | None,
) -> None:
    """Serve /agents/conformance-agent/<name>. Options also come from THINK_PORT, THINK_DATA_DIR,
    THINK_MODEL_URL and THINK_EFFECTS_URL.

    Ends with 0 after SIGTERM or SIGINT. Ends with 4, and one line that says why and what to do, when it
    cannot serve: a bad option, a port that is taken, a data folder that is read-only or that another
    process serves, a journal with unfinished turns that is locked, read-only or on a full disk. A journal
    that is broken, or of another program or version, is named in one line, is not touched, and makes
    its own agent answer 500; the others are served.
    """
    from think_reference.shell.outside import EffectsEndpoint
    from think_reference.shell.server import CannotServe, Settings, serve

    outside = EffectsEndpoint(effects_url) if effects_url else nowhere
    settings = Settings(
        classes={"ConformanceAgent": partial(ConformanceAgent, outside=outside)},
        host=host,
        port=port,
        folder=data_dir,
        model_url=model_url,
        policies=_policies(defect),
        durable=durable,
        unload_s=unload_s,
    )
    try:
        asyncio.run(serve(settings))
    except CannotServe as error:
        raise Complaint(str(error)) from error


@cli.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def defects(form: str) -> None:
    """List the deliberate defects and the requirements each one breaks."""
    if form == "json":
        rows = [{"name": d.name, "summary": d.summary, "breaks": d.breaks} for d in DEFECTS.values()]
        click.echo(dumps(rows))
        return
    for defect in DEFECTS.values():
        click.echo(f"{defect.name}: {defect.summary} ({', '.join(defect.breaks)})")


def _policies(defect: str | None) -> Policies:
    if defect is None:
        return Policies()
    if defect not in DEFECTS:
        near = get_close_matches(defect, DEFECTS, 1)
        hint = f"; did you mean `{near[0]}`?" if near else f"; there are {', '.join(DEFECTS)}"
        raise Complaint(f"unknown defect `{defect}`{hint}")
    return DEFECTS[defect].policies


def main() -> None:
    """Entry point: a usage error exits with 4, one line on standard error."""
    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"think-reference: {error.format_message()}", err=True)
        sys.exit(USAGE)
    except click.Abort:
        sys.exit(130)
