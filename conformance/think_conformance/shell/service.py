"""A target that runs already, behind a URL: what a process is to an instance, without any control of it."""

from __future__ import annotations

import ssl

from think_conformance.shell.client import tls_context
from think_conformance.targets.contract import Target


class RunningService:
    """It is taken to live; whether it does, its sockets tell."""

    epoch = 1
    alive = True
    pid = None

    def __init__(self, target: Target) -> None:
        self.address = target.service
        self.tls: ssl.SSLContext | None = tls_context(target.tls) if target.secure else None

    async def start(self) -> None:
        """Nothing to do, as with all below: nobody here may start or end it."""

    async def ensure_running(self) -> None:
        """It does, or it does not."""

    async def stop(self) -> None:
        """It goes on."""
