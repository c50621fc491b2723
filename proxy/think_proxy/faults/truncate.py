"""`truncate`: the held event or body breaks off, and the connection ends there."""

from __future__ import annotations

from think_proxy.link import Link
from think_proxy.plan import Truncate


async def act(link: Link, truncate: Truncate) -> None:
    link.shorten(truncate.keep, clean=truncate.end == "clean")
    if truncate.end == "reset":
        link.reset()
    else:
        link.finish()
