"""`cut`: the connection is lost now, and the held message with it."""

from __future__ import annotations

from typing import Literal

from think_proxy.link import Link
from think_proxy.plan import CloseCode


async def act(link: Link, how: Literal["reset", "fin", "blackhole"] | CloseCode) -> None:
    link.discard()
    if isinstance(how, CloseCode):
        await link.close(how.close, how.reason)
    elif how == "reset":
        link.reset()
    elif how == "fin":
        link.finish()
    else:
        link.swallow()
