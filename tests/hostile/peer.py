"""A small lawful Think, down to the bytes of its WebSockets, for hostile targets to break. Standard library
alone, so that a target is up in no time.

It keeps everything in memory and plays turns without a model: three words, then the end.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import struct
from typing import Any
from urllib.parse import parse_qs, urlsplit

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, CLOSE = 1, 8

Json = dict[str, Any]


def head(size: int, opcode: int = TEXT, *, fin: bool = True) -> bytes:
    """The head of a frame whose payload has `size` bytes."""
    first = bytes([opcode | (0x80 if fin else 0)])
    if size < 126:
        return first + bytes([size])
    return first + (b"\x7e" + struct.pack(">H", size) if size < 65536 else b"\x7f" + struct.pack(">Q", size))


class Socket:
    """One WebSocket, seen from the server. `client` is the name in its `_pk`, as `a.1`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str) -> None:
        self._reader = reader
        self._writer = writer
        self._whole = asyncio.Lock()  # a turn of one client may meet an answer to another's question
        self.client = parse_qs(urlsplit(target).query).get("_pk", [""])[0]

    async def send(self, frame: object) -> None:
        """Any JSON value as a text frame."""
        await self.send_text(json.dumps(frame).encode())

    async def send_text(self, payload: bytes) -> None:
        """Any bytes as a text frame, which no other frame gets into."""
        async with self._whole:
            await self.write(head(len(payload)) + payload)

    async def write(self, data: bytes) -> None:
        """Bytes as they stand."""
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self) -> Json | None:
        """The next frame; an empty one for what is no JSON object; None at the end."""
        while True:
            first, second = await self._reader.readexactly(2)
            size = second & 0x7F
            if size > 125:
                form = ">H" if size == 126 else ">Q"
                (size,) = struct.unpack(form, await self._reader.readexactly(struct.calcsize(form)))
            mask = await self._reader.readexactly(4)
            body = bytes(b ^ mask[i % 4] for i, b in enumerate(await self._reader.readexactly(size)))
            if first & 0xF == CLOSE:
                async with self._whole:
                    await self.write(head(len(body), CLOSE) + body)
                return None
            if first & 0xF == TEXT:
                return _object(body)


class Peer:
    """The lawful one. What a hostile target does otherwise, it overrides."""

    def __init__(self) -> None:
        self.sockets: list[Socket] = []
        self.messages: list[Json] = []
        self.ended: dict[str, Json] = {}

    def start(self) -> None:
        """The whole program."""
        asyncio.run(self.serve())

    async def serve(self) -> None:
        """Listens where the kit says, for ever."""
        port = int(os.environ["THINK_PORT"])
        server = await asyncio.start_server(self.connected, "127.0.0.1", port)
        await server.serve_forever()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One TCP connection, which carries one request."""
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
            await self.requested(lines[0].split(" ")[1], headers, reader, writer)
        except (OSError, EOFError):
            pass  # the caller went away
        finally:
            writer.close()

    async def requested(self, target: str, headers: dict[str, str], reader: Any, writer: Any) -> None:
        """One request: `target` is its path and query."""
        if "sec-websocket-key" in headers:
            await self.upgrade(target, headers["sec-websocket-key"], reader, writer)
        elif urlsplit(target).path.endswith("/get-messages"):
            await self.answer(writer, json.dumps(self.messages).encode())
        else:
            await self.answer(writer, b"ready")

    async def answer(self, writer: asyncio.StreamWriter, body: bytes, status: str = "200 OK") -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    async def upgrade(self, target: str, key: str, reader: Any, writer: Any) -> None:
        """A WebSocket, from its opening to its end."""
        accept = base64.b64encode(hashlib.sha1(key.encode() + _MAGIC).digest())
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        socket = self.socket(reader, writer, target)
        self.sockets.append(socket)
        try:
            await self.opened(socket)
            while (frame := await socket.receive()) is not None:
                await self.received(socket, frame)
        finally:
            self.sockets.remove(socket)

    def socket(self, reader: Any, writer: Any, target: str) -> Socket:
        return Socket(reader, writer, target)

    async def opened(self, socket: Socket) -> None:
        """A client has come."""
        await socket.send({"type": "cf_agent_chat_messages", "messages": self.messages, "connect": True})

    async def received(self, socket: Socket, frame: Json) -> None:
        """A client says something."""
        match frame.get("type"):
            case "cf_agent_use_chat_request":
                messages = json.loads(frame["init"]["body"])["messages"]
                await self.turn(socket, frame["id"], messages[-1])
            case "cf_agent_stream_resume_request":
                idle = {"type": "cf_agent_stream_resume_none", "reason": "idle"}
                await socket.send({**idle, "probeId": frame["probeId"]})
            case "cf_agent_stream_resume_ack":
                told = self.ended.get(frame["id"], {"id": frame["id"]})
                await socket.send({**response(**told), "body": "", "done": True, "replay": True})

    async def turn(self, socket: Socket, request: str, message: Json) -> None:
        """A whole turn, which everyone sees."""
        self.messages.append(message)
        await self.tell({"type": "cf_agent_chat_messages", "messages": self.messages}, but=socket)
        answer = self.message_id(request)
        chunks = self.chunks(answer)
        for seq, chunk in enumerate(chunks):
            await self.tell(response(id=request, seq=seq, body=json.dumps(chunk), done=False))
        text = "".join(chunk.get("delta", "") for chunk in chunks)
        part = {"type": "text", "text": text, "state": "done"}
        self.messages.append({"id": answer, "role": "assistant", "parts": [part]})
        await self.tell({"type": "cf_agent_chat_messages", "messages": self.messages})
        await self.end(request, message["id"])

    def message_id(self, request: str) -> str:
        return f"answer-to-{request}"

    def chunks(self, answer: str) -> list[Json]:
        """What a turn streams."""
        words = [{"type": "text-delta", "id": "t", "delta": f"{word} "} for word in self.words(answer)]
        start = [{"type": "start", "messageId": answer}, {"type": "text-start", "id": "t"}]
        return [*start, *words, {"type": "text-end", "id": "t"}, {"type": "finish"}]

    def words(self, answer: str) -> list[str]:
        return [f"{number}-{answer}" for number in ("one", "two", "three")]

    async def end(self, request: str, message: str) -> None:
        self.ended[request] = {"id": request, "outcome": "completed", "messageIds": [message]}
        await self.tell(response(**self.ended[request], body="", done=True))

    async def tell(self, frame: object, but: Socket | None = None) -> None:
        """To everyone who is still there."""
        for socket in list(self.sockets):
            if socket is not but:
                with contextlib.suppress(OSError):
                    await socket.send(frame)


def response(**fields: Any) -> Json:
    """A frame of a turn."""
    return {"type": "cf_agent_use_chat_response", **fields}


def _object(body: bytes) -> Json:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
