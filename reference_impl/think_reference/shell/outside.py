"""The outside world as the tools of the tested agent know it: one endpoint that is told of effects."""

from __future__ import annotations

from typing import Any

import aiohttp

TIMEOUT_S = 30.0


class EffectsEndpoint:
    """A POST of one JSON object per effect."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def __call__(self, effect: dict[str, Any]) -> None:
        """Report an effect; returns when it was taken, raises OSError or ClientError otherwise."""
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(self._url, json=effect) as answer,
        ):
            if answer.status >= 300:
                raise OSError(f"the effect was refused with status {answer.status}")
