"""`think-proxy`: the proxy by itself, between any client and any server. Thin.

The journal goes to stdout, one JSON object a line; words for people go to stderr. Exit codes: 4 for
whatever the user can put right, 3 when the carrier broke, 130 after Ctrl-C.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec

from think_proxy.carriers.abilities import EMBEDDED
from think_proxy.carriers.choice import PROXIES
from think_proxy.carriers.supervised import CarrierBroke, Unavailable
from think_proxy.engine import Unsupported
from think_proxy.plan import FaultPlan, Leg
from think_proxy.plan_file import PlanError, load

BROKE, USAGE = 3, 4

LEGS = ("client", "routing", "model", "effects")


def address(_ctx: click.Context, _option: click.Parameter, value: str) -> tuple[str, int]:
    """`PORT` (on loopback) or `HOST:PORT`."""
    host, _, port = value.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise click.BadParameter(f"`{value}` is no port and no host:port")
    return host.strip("[]") or "127.0.0.1", int(port)


def server(_ctx: click.Context, _option: click.Parameter, value: str) -> tuple[str, int]:
    """`http://host[:port]`; nothing but a host and a port can be used of it."""
    try:
        url = urlsplit(value)
        host, port = url.hostname, 80 if url.port is None else url.port
    except ValueError:
        host = None
    if not host or url.scheme not in ("http", "ws") or url.path not in ("", "/"):
        raise click.BadParameter(f"`{value}` is no http://host:port")
    return host, port


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--listen", callback=address, required=True, help="[host:]port; a bare port is on loopback.")
@click.option("--upstream", callback=server, required=True, help="http://host:port, where connections go.")
@click.option(
    "--leg", type=click.Choice(LEGS), default=LEGS[0], help="The hop it sits on.", show_default=True
)
@click.option("--plan", type=click.Path(path_type=Path), help="Faults to arm (YAML or JSON); none without.")
@click.option("--carrier", type=click.Choice([*PROXIES]), default=EMBEDDED, help="What moves the bytes.")
def command(
    listen: tuple[str, int], upstream: tuple[str, int], leg: Leg, plan: Path | None, carrier: str
) -> int:
    """Passes WebSockets and HTTP on, and strikes at the moments of a plan."""
    faults = read_plan(plan) if plan else FaultPlan(version=1)
    return asyncio.run(serve(listen, upstream, leg, faults, carrier))


def read_plan(path: Path) -> FaultPlan:
    """The plan in a file. ClickException, in one line, when it cannot be had."""
    try:
        return load(path.read_text(encoding="utf-8"), str(path), FaultPlan)
    except PlanError as error:
        raise click.ClickException(str(error)) from None
    except UnicodeError:
        raise click.ClickException(f"{path}: not a text in UTF-8") from None
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from None


async def serve(
    listen: tuple[str, int], upstream: tuple[str, int], leg: Leg, plan: FaultPlan, carrier: str
) -> int:
    """Runs until a signal ends it, or the carrier breaks; returns the exit code that tells which."""
    host, port = listen
    proxy = PROXIES[carrier](
        upstream, journal=write, process=None, seed=plan.seed, host=host, port=port, leg=leg
    )
    try:
        proxy.arm(plan.faults, "")
        await proxy.start()
    except (Unsupported, Unavailable) as error:
        raise click.ClickException(str(error)) from None
    except CarrierBroke as error:
        return _broke(str(error))
    except OSError as error:
        raise click.ClickException(f"cannot listen on {host}:{port}: {error.strerror}") from None
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, _end, ended, number)
    click.echo(f"listening on http://{host}:{proxy.port}, upstream {upstream[0]}:{upstream[1]}", err=True)
    lost = asyncio.create_task(proxy.lost())
    try:
        await asyncio.wait((ended, lost), return_when=asyncio.FIRST_COMPLETED)
        return 128 + ended.result() if ended.done() else _broke(lost.result())
    finally:
        lost.cancel()
        await proxy.close()


def write(kind: str, ids: dict[str, Any], payload: dict[str, Any]) -> None:
    """One record of the journal; `at` is seconds on the monotonic clock."""
    record = {"at": time.monotonic(), "source": "proxy", "kind": kind, "ids": ids, "payload": payload}
    click.echo(msgspec.json.encode(record).decode())


def _broke(why: str) -> int:
    click.echo(f"think-proxy: {why}", err=True)
    return BROKE


def _end(ended: asyncio.Future[int], number: int) -> None:
    if not ended.done():
        ended.set_result(number)


def main() -> None:
    """The entry point. click would end with 2 on bad usage and print several lines."""
    try:
        code = command.main(prog_name="think-proxy", standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"think-proxy: {error.format_message()}", err=True)
        code = USAGE
    except click.Abort:
        code = 130
    sys.exit(code)
