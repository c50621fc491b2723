"""The command that serves the scripted model alone, to an agent that is developed or runs elsewhere."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from think_conformance.cli.endings import interruptible, tell
from think_conformance.errors import UsageError
from think_conformance.given import text_of
from think_conformance.history.op import Kind, Source
from think_conformance.plan import Step
from think_conformance.shell.model_script import Scripts
from think_conformance.shell.model_server import ANYBODY, ModelServer
from think_conformance.targets.contract import address

THREE_WORDS: Scripts = {ANYBODY: [[{"text": "w1 "}, {"text": "w2 "}, {"text": "w3 "}, "done"]]}

WHERE = "HOST:PORT, or a port on 127.0.0.1; 0 is any free one"
SCRIPT = f"what it says: `turn: [[step, ...], ...]`, YAML or JSON; the turn `{ANYBODY}` answers all others"


@click.command()
@click.option("--listen", default="127.0.0.1:0", show_default=True, help=WHERE)
@click.option("--script", type=click.Path(path_type=Path), help=SCRIPT + " [default: three words]")
def model(listen: str, script: Path | None) -> None:
    """Serve the scripted model alone, OpenAI-compatible and streaming, until Ctrl-C.

    The turn is what the last marker [[any/TURN]] in a user's message names. Its n-th call gets script n,
    later ones the last. Each call is told, a line for its beginning and its end.
    """
    scripts = THREE_WORDS if script is None else _scripts(script)
    try:
        host, port = address(listen)
    except ValueError as error:
        raise UsageError(f"--listen: {error}") from None
    with suppress(asyncio.CancelledError):  # that is how it ends
        interruptible(_serve(scripts, host, port))


async def _serve(scripts: Scripts, host: str, port: int) -> None:
    server = ModelServer()
    server.serve_anybody(scripts, _Told())
    try:
        try:
            await server.start(host, port)
        except OSError as error:
            raise UsageError(f"cannot listen on {host} port {port}: {error.strerror or error}") from None
        click.echo(server.url)
        tell(f"the scripted model serves at {server.url}; Ctrl-C ends it")
        await asyncio.Event().wait()
    finally:
        await server.close()


class _Told:
    """Shows what happens, a line each; keeps nothing."""

    def append(
        self, source: Source, kind: Kind, ids: dict[str, Any] | None = None, payload: Any = None, /
    ) -> None:
        said = payload if isinstance(payload, dict) else {}
        match kind:
            case "model-call":
                messages = said.get("messages")
                what = f"{len(messages)} messages" if isinstance(messages, list) else "no messages"
            case "model-end":
                what = str(said.get("how"))
            case _:
                what = str(said.get("reason"))
        names = ids or {}
        turn = str(names.get("marker", "")).rpartition("/")[2]
        call = f" {turn} call {names['call']}" if "call" in names else ""
        tell(f"{kind}{call}: {what}")


def _scripts(path: Path) -> Scripts:
    """The scripts of a file. UsageError, one line, when there are none."""
    try:
        loaded = yaml.safe_load(text_of(path, "script"))
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"script {path} cannot be read: {' '.join(str(error).split())}") from None
    try:
        return msgspec.convert(loaded, dict[str, list[list[Step]]])
    except msgspec.ValidationError as error:
        raise UsageError(f"script {path}: {error}; give `turn: [[step, ...], ...]`") from None
