"""One client of the plan: its sockets, one after the other, and all that crosses them.

Owns the client records of the history. Survives anything: what a peer sends is recorded, never raised.
What it sends is held against the rules of a client, but for texts that a plan gives as they stand.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
from aiohttp import ClientWSTimeout, WSMsgType
from yarl import URL

from think_conformance.errors import UsageError
from think_conformance.history.op import Kind
from think_conformance.shell.recorder import PAYLOAD_LIMIT, Recorder
from think_conformance.targets.contract import Target, Tls
from think_conformance.wire.codec import Unreadable, decode_client, decode_server, encode, loads
from think_conformance.wire.frames import (
    Frame,
    Message,
    ResumeAck,
    ResumeRequest,
    RpcRequest,
    RpcResponse,
    StreamResuming,
)
from think_conformance.wire.session import Session

MESSAGE_LIMIT = 64 * 1024 * 1024
"""Bytes one message, or one transcript, may have."""

_SHOWN_TEXT = 2000
_SEND_TIMEOUT_S = 10.0
_CLOSE_TIMEOUT_S = 2.0

# What a connection attempt or a broken connection may raise; all of it is the peer's doing.
_BROKEN = (aiohttp.ClientError, OSError, TimeoutError)


class Endpoint(msgspec.Struct, frozen=True):
    """Where one agent instance is: `url` is its HTTP base (`http://host:port/agents/<agent>/<name>`)."""

    url: str
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    tls: Tls = Tls()

    @classmethod
    def of(cls, target: Target, base: str, instance: str) -> Endpoint:
        """An instance of the target. `base` is `host:port` of a process or a proxy, or the target's URL.
        What runs behind a URL hears its own name, whoever stands in between."""
        origin = base if "://" in base else f"http://{base}"
        host = {"Host": urlsplit(target.url).netloc} if target.url else {}
        return cls(origin + target.path_of(instance), {**host, **target.headers}, target.query, target.tls)

    def at(self, suffix: str = "", **query: str) -> URL:
        """The URL to dial: the base with a suffix, the target's query and more of it."""
        return URL(self.url + suffix, encoded=True).update_query({**self.query, **query})

    def ssl(self) -> ssl.SSLContext | bool:
        """What aiohttp takes. UsageError if the CA file cannot be read."""
        return tls_context(self.tls) if self.url.startswith("https:") else True


def tls_context(tls: Tls) -> ssl.SSLContext:
    """How certificates are checked. UsageError if the CA file cannot be read."""
    try:
        context = ssl.create_default_context(cafile=tls.ca)
    except OSError as error:
        raise UsageError(f"`tls.ca` {tls.ca} cannot be used: {error}") from None
    if not tls.verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class RpcFailed(Exception):
    """A question had no good answer. `definite`: it certainly had no effect; else that is unknown."""

    def __init__(self, definite: bool, text: str) -> None:
        super().__init__(text)
        self.definite = definite
        self.text = text


class IllegalFrame(Exception):
    """The kit's own client was about to send what no client may send: a bug of the kit, never the target's
    doing. The message says which rule it breaks."""


class _Link:
    """One connection and what belongs to it."""

    def __init__(
        self, session: aiohttp.ClientSession, ws: aiohttp.ClientWebSocketResponse, ids: dict[str, Any]
    ) -> None:
        self.session = session
        self.ws = ws
        self.ids = ids
        self.open = True
        self.order = Session()
        self.acked: set[str] = set()
        self.reader: asyncio.Task[None] | None = None


class Client:
    """`endpoint` and `epoch` are asked anew at each connection, since faults move and restart things."""

    def __init__(
        self, name: str, endpoint: Callable[[], Endpoint], recorder: Recorder, epoch: Callable[[], int]
    ) -> None:
        self._name = name
        self._endpoint = endpoint
        self._recorder = recorder
        self._epoch = epoch
        self._link: _Link | None = None
        self._links: list[_Link] = []
        self._attempts = 0
        self._calls = 0
        self.refusal = ""
        """Why the last `connect` or `get_messages` failed."""

    @property
    def connected(self) -> bool:
        return self._link is not None and self._link.open

    async def connect(self, follow: bool = True, timeout_s: float = 10.0) -> bool:
        """Open the next connection. One still open is left as it is, as a page does that lost its network:
        the peer may go on with it until it ends. With `follow`, ask for an active stream and accept
        each offer once. False if it could not be opened; `refusal` says why."""
        self._attempts += 1
        name = f"{self._name}.{self._attempts}"
        ids = {"client": self._name, "connection": name, "epoch": self._epoch()}
        session = _session()
        self._recorder.append("client", "dial", ids)
        try:
            async with asyncio.timeout(timeout_s):
                ws = await _dial(session, self._endpoint(), name)
        except BaseException as error:
            await session.close()
            if not isinstance(error, _BROKEN):
                raise
            self.refusal = _why(error) or f"no answer within {timeout_s:g} s"
            return False
        link = self._link = _Link(session, ws, ids)
        self._links.append(link)
        self._note(link, "open", {})
        if follow:
            # Before anything is read, so that the order of the first frames does not depend on timing.
            await self._say(link, ResumeRequest(probe_id=f"probe-{name}"))
        link.reader = asyncio.create_task(self._read(link, follow))
        return True

    async def send(self, frame: Frame) -> bool:
        """Whether the frame was handed to an open socket. False after a record `frame-out` means: unknown how
        much left. IllegalFrame if no client may send it there and then."""
        return self._link is not None and await self._say(self._link, frame)

    async def send_text(self, text: str) -> bool:
        """As `send`, for any text, legal or not."""
        return self._link is not None and await self._send(self._link, text)

    async def _say(self, link: _Link, frame: Frame) -> bool:
        return link.open and await self._send(link, _legal(frame, link.order))

    async def _send(self, link: _Link, text: str) -> bool:
        if not link.open:
            return False
        self._note(link, "frame-out", _shown(text))
        try:
            async with asyncio.timeout(_SEND_TIMEOUT_S):
                await link.ws.send_str(text)
        except _BROKEN:
            return False
        return True

    async def close(self, code: int = 1000) -> bool:
        """Close all that is open, with a close frame; False if the newest connection was not. Returns
        within a few seconds, whatever the peer does."""
        links, self._links = self._links, []
        was_open = await asyncio.gather(*(self._close(link, code) for link in links))
        return bool(was_open) and was_open[-1]

    async def _close(self, link: _Link, code: int) -> bool:
        if link.reader is None:  # its opening was cut short
            await link.session.close()
            return False
        was_open = link.open
        if was_open:
            self._ended(link, code, "", "self")
            with suppress(*_BROKEN):
                async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                    await link.ws.close(code=code)
            link.reader.cancel()
        await asyncio.wait([link.reader])
        await link.session.close()
        if not link.reader.cancelled():
            link.reader.result()
        return was_open

    async def get_messages(self, timeout_s: float = 10.0) -> list[Message] | None:
        """The transcript over HTTP (WIRE-14). None if there is none in the answer; `refusal` says why."""
        try:
            async with asyncio.timeout(timeout_s), _session() as session:
                messages = loads(await _fetch(session, self._endpoint()))
        except (*_BROKEN, ValueError) as error:
            self.refusal = str(error) or f"no transcript within {timeout_s:g} s"
            return None
        if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
            self.refusal = "the answer is not an array of messages"
            return None
        return messages

    async def rpc(
        self, method: str, args: list[Any], timeout_s: float = 10.0, *, closing_is_ok: bool = False
    ) -> Any:
        """The result of a method (WIRE-30), called on a connection of its own that the history does not
        show. RpcFailed if it failed, or if no answer came; with `closing_is_ok` the end of the
        connection, whatever the code, is the answer None."""
        self._calls += 1
        ident = f"ctl.{self._name}.{self._calls}"
        sent, answer = False, None
        try:
            async with asyncio.timeout(timeout_s), _session() as session:
                ws = await _dial(session, self._endpoint(), ident)
                sent = True
                try:
                    await ws.send_str(_legal(RpcRequest(id=ident, method=method, args=args), Session()))
                    answer = await _answer(ws, ident)
                finally:
                    await ws.close()
        except _BROKEN as error:
            if closing_is_ok and isinstance(error, ConnectionError) and sent:
                return None
            if answer is None:
                raise RpcFailed(not sent, str(error) or f"no answer within {timeout_s:g} s") from None
        assert answer is not None
        if not answer.success:
            raise RpcFailed(True, answer.error or f"`{method}` failed without a reason")
        return None if answer.result is msgspec.UNSET else answer.result

    async def _read(self, link: _Link, follow: bool) -> None:
        while True:
            message = await link.ws.receive()
            if not link.open:
                return
            if self._recorder.full:
                self._ended(link, 1009, "more than the history of a case can hold", "self")
                await link.session.close()
                return
            if message.type is WSMsgType.TEXT:
                shown = _received(message.data)
                self._note(link, "frame-in", shown)
                if "frame" in shown:
                    await self._heed(link, decode_server(message.data), follow)
            elif message.type is WSMsgType.BINARY:
                self._note(link, "frame-in", {"binary": True, "size": len(message.data)})
            else:
                self._ended(link, *_ending(message))
                await link.session.close()
                return

    async def _heed(self, link: _Link, frame: Frame | Unreadable, follow: bool) -> None:
        if isinstance(frame, Unreadable):
            return
        link.order.see(frame)  # whether the target may say it is for the checks to judge
        if follow and isinstance(frame, StreamResuming) and frame.id not in link.acked:
            link.acked.add(frame.id)
            await self._say(link, ResumeAck(id=frame.id))

    def _ended(self, link: _Link, code: int, reason: str, by: str) -> None:
        link.open = False
        self._note(link, "close", {"code": code, "reason": reason, "by": by})

    def _note(self, link: _Link, kind: Kind, payload: dict[str, Any]) -> None:
        self._recorder.append("client", kind, link.ids, payload)


def _legal(frame: Frame, order: Session) -> str:
    """The text of a frame that is sent next on a connection. IllegalFrame if no client may."""
    text = encode(frame)
    shown = decode_client(text)
    if isinstance(shown, Unreadable):
        raise IllegalFrame(f"no frame of a client, {shown.detail}: {text[:_SHOWN_TEXT]}")
    if broken := order.see(shown):
        raise IllegalFrame(f"{broken.spec}, {broken.reason}: {text[:_SHOWN_TEXT]}")
    return text


def _session() -> aiohttp.ClientSession:
    tracing = aiohttp.TraceConfig()
    tracing.on_request_redirect.append(_stay)
    return aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        trace_configs=[tracing],
    )


async def _stay(
    session: aiohttp.ClientSession, context: object, answer: aiohttp.TraceRequestRedirectParams
) -> None:
    """Follows no redirect: it leads past the proxy, and the headers hold tokens."""
    raise aiohttp.ClientError(f"HTTP status {answer.response.status}, a redirect")


def _why(error: BaseException) -> str:
    """Why a connection was not opened; of an answer its status."""
    match error:
        case aiohttp.WSServerHandshakeError():
            return f"HTTP status {error.status}"
        case aiohttp.ClientResponseError():
            return "the answer is not HTTP"
        case _:
            return str(error)


async def _dial(
    session: aiohttp.ClientSession, endpoint: Endpoint, connection: str
) -> aiohttp.ClientWebSocketResponse:
    return await session.ws_connect(
        endpoint.at(_pk=connection),
        headers=endpoint.headers,
        ssl=endpoint.ssl(),
        max_msg_size=MESSAGE_LIMIT,
        timeout=ClientWSTimeout(ws_close=_CLOSE_TIMEOUT_S),
    )


async def _answer(ws: aiohttp.ClientWebSocketResponse, ident: str) -> RpcResponse:
    while True:
        message = await ws.receive()
        if message.type is WSMsgType.TEXT:
            frame = decode_server(message.data)
            if isinstance(frame, RpcResponse) and frame.id == ident and frame.done is not False:
                return frame
        elif message.type is not WSMsgType.BINARY:
            code, reason, _ = _ending(message)
            raise ConnectionResetError(f"closed with code {code} before the answer came {reason}".rstrip())


async def _fetch(session: aiohttp.ClientSession, endpoint: Endpoint) -> bytes:
    """The body of get-messages; ValueError if it is an error or too large."""
    url = endpoint.at("/get-messages")
    async with session.get(
        url, headers=endpoint.headers, ssl=endpoint.ssl(), allow_redirects=False
    ) as answer:
        if answer.status != 200:
            raise ValueError(f"answered with status {answer.status}")
        body = bytearray()
        async for piece in answer.content.iter_chunked(64 * 1024):
            body += piece
            if len(body) > MESSAGE_LIMIT:
                raise ValueError(f"more than {MESSAGE_LIMIT} bytes")
    return bytes(body)


def _shown(text: str) -> dict[str, Any]:
    """A frame as the history keeps it: parsed, or as text where it is no JSON object."""
    try:
        frame = loads(text)
    except ValueError:
        frame = None
    return {"frame": frame} if isinstance(frame, dict) else {"text": text}


def _received(text: str) -> dict[str, Any]:
    size = len(text.encode())
    if size > PAYLOAD_LIMIT:  # told before its parts take many times the memory
        return {"truncated": True, "size": size}
    shown = _shown(text)
    if "text" in shown:
        shown["text"] = text[:_SHOWN_TEXT]
    return {**shown, "size": size}


def _ending(message: aiohttp.WSMessage) -> tuple[int, str, str]:
    """(code, reason, by) of a connection that ended. Read from the message alone: aiohttp's own
    `close_code` is 1000 after a bare end of file."""
    if message.type is WSMsgType.CLOSE:
        return message.data or 1005, message.extra or "", "peer"
    if isinstance(message.data, aiohttp.WebSocketError):
        return int(message.data.code), str(message.data), "self"
    return 1006, "", "peer"
