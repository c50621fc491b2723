"""`refuse: true`: the connection ends without an answer, as where nobody listens."""

from __future__ import annotations

from think_proxy.link import Link


async def act(link: Link, refuse: bool) -> None:
    if refuse:
        link.discard()
        link.reset()
