"""`delay`: the held message comes late, and what is behind it in its direction waits with it."""

from __future__ import annotations

from think_proxy.link import Link
from think_proxy.plan import For


async def act(link: Link, delay: For) -> None:
    await link.wait(delay.for_)
