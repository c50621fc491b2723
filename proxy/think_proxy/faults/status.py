"""`status`: the client gets this HTTP answer, and the server never gets the request."""

from __future__ import annotations

from think_proxy.link import Link
from think_proxy.plan import Status


async def act(link: Link, status: Status) -> None:
    link.discard()
    await link.answer(status)
