"""`drop: true`: the held message is lost, the connection goes on."""

from __future__ import annotations

from think_proxy.link import Link


async def act(link: Link, drop: bool) -> None:
    if drop:
        link.discard()
