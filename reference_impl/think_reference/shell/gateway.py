"""The HTTP and WebSocket front: routes, `get-messages`, chat sockets (wire protocol section 1)."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from aiohttp import WSCloseCode, WSMsgType, web

from think_conformance.wire.codec import dumps
from think_reference.shell.host import Host
from think_reference.shell.journal import JournalError, LoadError
from think_reference.shell.outbox import Outbox

_log = logging.getLogger(__name__)

MAX_FRAME = 4 * 1024 * 1024
CLOSE_S = 2.0


class Gateway:
    """Routes `/agents/{class}/{name}[/...]` to the agents of a host."""

    def __init__(self, host: Host, prefix: str = "agents") -> None:
        self._host, self._prefix = host, prefix
        self._closing: set[asyncio.Task[None]] = set()

    def application(self) -> web.Application:
        """The web application to serve."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._route)
        app.on_shutdown.append(self._shut)
        return app

    async def _route(self, request: web.Request) -> web.StreamResponse:
        # segments are taken as they stand, so that an encoded slash stays inside its own (WIRE-18)
        path = request.raw_path.partition("?")[0]
        segments = path.split("/")
        if not path.isascii():
            return web.Response(status=400, text="Invalid request")
        if len(segments) < 4 or segments[0] or segments[1] != self._prefix or not all(segments[2:4]):
            return web.Response(status=404, text="Not found")
        kind, name = segments[2:4]
        if not self._host.serves(kind):
            return web.Response(status=400, text="Invalid request")
        try:
            driver = self._host.agent(kind, name)
        except JournalError as error:
            _log.error("%s", error)
            return web.Response(status=503, text=str(error))
        except LoadError as error:
            return web.Response(status=500, text=str(error))
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._chat(request, kind, name)
        if path.endswith("/get-messages"):
            return web.Response(text=dumps(driver.messages), content_type="application/json")
        return web.Response(status=404, text="Not implemented")

    async def _chat(self, request: web.Request, kind: str, name: str) -> web.WebSocketResponse:
        """One chat socket. A `_pk` in the query names it for its client; nothing here depends on it,
        since two sockets may share one (WIRE-16)."""
        socket = web.WebSocketResponse(compress=False, max_msg_size=MAX_FRAME, timeout=CLOSE_S)
        await socket.prepare(request)
        try:  # again: it may have been dropped while the socket was prepared
            driver = self._host.agent(kind, name)
        except (JournalError, LoadError) as error:
            await socket.close(code=WSCloseCode.INTERNAL_ERROR, message=str(error).encode()[:120])
            return socket
        outbox = Outbox(socket.send_str, partial(self._close, request, socket), partial(_abort, request))
        writer = asyncio.ensure_future(outbox.run())
        conn = driver.connect(outbox)
        try:
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    driver.receive(conn, message.data)
        finally:
            driver.disconnect(conn)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
        return socket

    def _close(self, request: web.Request, socket: web.WebSocketResponse, why: str) -> None:
        task = asyncio.ensure_future(_close(request, socket, why))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _shut(self, app: web.Application) -> None:
        for task in self._closing:
            task.cancel()


async def _close(request: web.Request, socket: web.WebSocketResponse, why: str) -> None:
    """Say why, then cut: who does not read would not read that either."""
    try:
        async with asyncio.timeout(CLOSE_S):
            await socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=why.encode(), drain=False)
    except (TimeoutError, ConnectionError):
        pass
    finally:
        _abort(request)


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
