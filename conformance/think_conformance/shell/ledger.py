"""The outside world of a target: whatever its tools do is a POST to here, counted by key.

`POST /` with `{key, tool, ...}`; the key is `<case>/<effect>`, and the effect is recorded in the history of
that case before it is answered. It is never refused for being a repeat: counting those is the point.
"""

from __future__ import annotations

from aiohttp import web

from think_conformance.shell.ports import LOOPBACK
from think_conformance.shell.recorder import Recorder
from think_conformance.wire.codec import loads

BODY_LIMIT = 1_000_000


class Ledger:
    """One for a run; cases are loaded and unloaded by name."""

    def __init__(self) -> None:
        self._recorders: dict[str, Recorder] = {}
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self, host: str = LOOPBACK, port: int = 0) -> None:
        """Listens; `url` is then where effects go. OSError when the address cannot be had."""
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_post("/", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        bound = self._runner.addresses[0]
        self.url = f"http://{bound[0]}:{bound[1]}/"

    async def close(self) -> None:
        """Stops listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    def load(self, case: str, recorder: Recorder) -> None:
        """Effects whose key starts with `<case>/` belong to this history."""
        self._recorders[case] = recorder

    def unload(self, case: str) -> None:
        """Later effects of that case are refused."""
        self._recorders.pop(case, None)

    async def _serve(self, request: web.Request) -> web.Response:
        try:
            body = loads(await request.read())
        except ValueError as error:
            return web.json_response({"error": str(error)}, status=400)
        key = body.get("key") if isinstance(body, dict) else None
        if not isinstance(key, str):
            return web.json_response({"error": "an effect needs a text `key`"}, status=400)
        recorder = self._recorders.get(key.rpartition("/")[0])
        if recorder is None:
            return web.json_response({"error": "the key belongs to no case that runs"}, status=404)
        recorder.append("effects", "effect", {"key": key}, body)
        return web.json_response({"ok": True, "key": key})
