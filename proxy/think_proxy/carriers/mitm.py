"""The process that carries with mitmproxy, and the only import of it. It decides nothing.

It asks before anything passes, and mitmproxy waits for the answer with all of that connection. While it
waits, nothing more is read of the connection, so that its peers feel it and memory stays bounded. The process
ends with the channel to its owner, whatever else goes on. Its internals are known for the versions that
`supervised.py` accepts.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import traceback
from contextlib import suppress
from http.client import responses
from itertools import count

import msgspec
from mitmproxy import master, options
from mitmproxy.addons import core, next_layer, proxyserver
from mitmproxy.http import Headers, HTTPFlow, Response
from mitmproxy.net.http.http1 import assemble_request_head

from think_proxy.carriers import questions
from think_proxy.carriers.http1 import answer_headers
from think_proxy.carriers.messages import MESSAGE_CAP
from think_proxy.carriers.questions import (
    Answer,
    Drop,
    Ended,
    Failed,
    Finish,
    Instead,
    Listening,
    Opening,
    Pass,
    Question,
    Requested,
    Said,
    Settings,
)

ABNORMAL = 1006
"""What mitmproxy notes as the code of a close that nobody said (RFC 6455 section 7.1.5)."""

MEMORY = 4 * 1024**3
"""Bytes of address space: mitmproxy gathers a WebSocket message without a limit of its own."""


class Asking:
    """The channel: one answer per question."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = count(1)
        self._open: dict[int, asyncio.Future[Answer]] = {}

    def number(self) -> int:
        """Of the next question."""
        return next(self._numbers)

    def tell(self, said: Question) -> None:
        self._writer.write(questions.framed(said))

    async def ask(self, said: Opening | Said | Requested) -> Answer:
        """Its answer."""
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._open[said.ask] = waiting
        self.tell(said)
        return await waiting

    async def listen(self) -> None:
        """Takes answers until the owner is gone, which ends the process."""
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                said = await questions.answer(self._reader)
                self._open.pop(said.ask).set_result(said)
        os._exit(0)  # nothing here is worth an orderly end, and nothing may hinder it


class Carrying:
    """The addon: what mitmproxy calls."""

    def __init__(self, asking: Asking, server: proxyserver.Proxyserver, *, sockets: bool) -> None:
        self._asking = asking
        self._server = server
        self._sockets = sockets

    async def request(self, flow: HTTPFlow) -> None:
        if self._sockets:
            if flow.request.headers.get("upgrade", "").lower() == "websocket":
                head = assemble_request_head(flow.request)
                await self._obey(flow, Opening(self._asking.number(), flow.id, flow.request.path, head))
            return
        body = flow.request.raw_content
        if body is not None and len(body) > MESSAGE_CAP:
            body = None
        plain = flow.request.headers.get("content-encoding", "identity") == "identity"
        await self._obey(flow, Requested(self._asking.number(), flow.request.path, body, plain))

    def responseheaders(self, flow: HTTPFlow) -> None:
        assert flow.response is not None
        flow.response.stream = flow.response.status_code != 101

    async def websocket_message(self, flow: HTTPFlow) -> None:
        assert flow.websocket is not None
        message = flow.websocket.messages[-1]
        del flow.websocket.messages[:-1]
        shown = None if len(message.content) > MESSAGE_CAP else message.content
        said = Said(self._asking.number(), flow.id, "up" if message.from_client else "down", shown)
        if isinstance(await self._held(flow, said), Drop):
            message.drop()

    def websocket_end(self, flow: HTTPFlow) -> None:
        assert flow.websocket is not None
        orderly = bool(flow.websocket.closed_by_client) or flow.websocket.close_code != ABNORMAL
        self._asking.tell(Ended(flow.id, orderly))

    async def _obey(self, flow: HTTPFlow, asked: Opening | Requested) -> None:
        match await self._held(flow, asked):
            case Instead(status=status):
                body = status.body.encode()
                flat = answer_headers(status, len(body)).items()
                headers = Headers([(name.encode(), value.encode("latin-1")) for name, value in flat])
                flow.response = Response.make(status.code, body, headers)
                flow.response.reason = responses.get(status.code, "")
            case Finish():
                flow.kill()
            case Pass():
                pass
            case Drop():
                raise AssertionError("no request is armed to be dropped")

    async def _held(self, flow: HTTPFlow, asked: Opening | Said | Requested) -> Answer:
        # Whatever is read of this connection waits for the same lock, and then for the kernel's buffers. Its
        # turn comes before the answer is obeyed, so that mitmproxy sends no request of one who hung up.
        async with self._server.connections[flow.client_conn.id]._server_event_lock:
            return await self._asking.ask(asked)


async def carry(settings: Settings) -> None:
    """Until the channel ends."""
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=settings.channel))
    asking = Asking(reader, writer)
    listening = asyncio.create_task(asking.listen())
    try:
        await _serve(settings, asking)
    except Exception as error:
        asking.tell(Failed(traceback.format_exception_only(error)[-1].strip()))
    await listening


async def _serve(settings: Settings, asking: Asking) -> None:
    host, port = settings.upstream
    upstream = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    address, number = settings.listen
    made = master.Master(
        options.Options(mode=[f"reverse:http://{upstream}"], listen_host=address, listen_port=number)
    )
    server = proxyserver.Proxyserver()
    addon = Carrying(asking, server, sockets=settings.sockets)
    made.addons.add(core.Core(), server, next_layer.NextLayer(), addon)
    made.options.update(
        keep_host_header=True, connection_strategy="lazy", stream_large_bodies=str(MESSAGE_CAP)
    )
    running = asyncio.create_task(made.run())
    await server.setup_servers()
    [listener] = server.servers
    if isinstance(listener.last_exception, OSError):
        asking.tell(Failed(str(listener.last_exception), listener.last_exception.errno or 0))
    else:
        asking.tell(Listening(listener.listen_addrs[0][1]))
    await running


def _bounded() -> None:
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main() -> None:
    """The program: one argument, the settings as JSON."""
    _bounded()
    asyncio.run(carry(msgspec.json.decode(sys.argv[1], type=Settings)))


if __name__ == "__main__":
    main()
