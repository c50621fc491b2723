"""What a fault may do to the connection it struck. Carriers implement it, faults use it.

This is the whole seam between the two: a new fault needs no new carrier, a new carrier no new fault.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from think_proxy.plan import Direction, ProcessAction, Status


class Link(Protocol):
    """One connection, while one firing of one fault acts on it. The direction of the message that
    set it off is held all the time. A carrier ends every wait when the fault is healed or its time
    is up."""

    def discard(self) -> None:
        """The held message will not be forwarded."""

    def hold(self, direction: Direction | None) -> AbstractContextManager[None]:
        """Nothing passes in this direction (None: in both) inside the `with`; nothing is lost."""

    async def wait(self, seconds: float) -> None:
        """Returns when the time has passed, or at once when the fault is healed."""

    def reset(self) -> None:
        """Ends both sides abruptly (TCP RST), after what was forwarded before."""

    def finish(self) -> None:
        """Ends both sides in order (TCP FIN), with no word of farewell in the protocol on top."""

    async def close(self, code: int, reason: str) -> None:
        """Says a WebSocket close to the client as if the server had, then finishes both sides."""

    async def answer(self, status: Status) -> None:
        """Says an HTTP answer to the client as if the server had, then finishes both sides."""

    def shorten(self, keep: int | None, *, clean: bool) -> None:
        """Forwards only the first `keep` bytes of the held event or body (None: half of them); `clean`
        lets the body end properly behind them."""

    def swallow(self) -> None:
        """Takes everything from both sides, endings too, and passes nothing on; both stay connected
        until the fault is healed or its time is up, then they are reset."""

    async def process(self, action: ProcessAction) -> None:
        """Has the owner do this to the target process, and waits until it is done."""
