"""`stall`: nothing passes for a while, nothing is lost, then it heals by itself.

The direction of the message that set it off waits in any case, as under every fault; to stall one
direction only, take a moment of that direction.
"""

from __future__ import annotations

from think_proxy.link import Link
from think_proxy.plan import For


async def act(link: Link, stall: For) -> None:
    with link.hold(stall.direction):
        await link.wait(stall.for_)
