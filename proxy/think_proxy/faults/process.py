"""`process`: the target process is killed, paused, started again, ... by whoever owns it."""

from __future__ import annotations

from think_proxy.link import Link
from think_proxy.plan import ProcessAction


async def act(link: Link, action: ProcessAction) -> None:
    await link.process(action)
