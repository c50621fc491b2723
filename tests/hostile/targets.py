"""Targets that hang, flood, lie, die and talk rubbish. `python targets.py NAME` is one, started as any target
is; each is the lawful peer but for what its docstring says."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

from peer import Json, Peer, Socket, head, response

for_ever = asyncio.Event


class Lawful(Peer):
    """Does nothing wrong: what the others are blamed for is not this peer's doing."""


# ---- that hang ------------------------------------------------------------------------------


class NeverAnswersHttp(Peer):
    """Accepts every connection and says nothing on it."""

    async def requested(self, *_: Any) -> None:
        await for_ever().wait()


class NeverUpgrades(Peer):
    """Is ready over HTTP and lets every WebSocket wait."""

    async def upgrade(self, *_: Any) -> None:
        await for_ever().wait()


class SaysNothing(Peer):
    """Opens every WebSocket and says nothing on it, nor gives a transcript."""

    async def opened(self, socket: Socket) -> None:
        await for_ever().wait()

    async def requested(self, target: str, *more: Any) -> None:
        if target.endswith("/get-messages"):
            await for_ever().wait()
        await super().requested(target, *more)


class StopsInMidFrame(Peer):
    """Ends in the middle of the frame with the second word, and is silent from then on."""

    async def turn(self, socket: Socket, request: str, message: Json) -> None:
        self.messages.append(message)
        for seq, chunk in enumerate(self.chunks("x")[:3]):
            await self.tell(response(id=request, seq=seq, body=json.dumps(chunk), done=False))
        for other in self.sockets:
            await other.write(head(1000) + b'{"type":"cf_agent_use_')
        await for_ever().wait()


class NeverEndsATurn(Peer):
    """Takes a turn, streams it and never says that it ended; whoever asks is offered its stream."""

    running = ""

    async def end(self, request: str, message: str) -> None:
        self.running = request

    async def received(self, socket: Socket, frame: Json) -> None:
        if self.running and frame.get("type") == "cf_agent_stream_resume_request":
            offer = {"type": "cf_agent_stream_resuming", "id": self.running}
            await socket.send({**offer, "probeId": frame["probeId"]})
        elif not self.running:
            await super().received(socket, frame)


# ---- that flood -----------------------------------------------------------------------------

MEGABYTE = b"x" * 1_000_000


class HugeFrames(Peer):
    """Each word is a frame of 50 MB."""

    async def tell(self, frame: Any, but: Socket | None = None) -> None:
        before, _, after = json.dumps(frame).encode().partition(b"one-")
        if not after:
            return await super().tell(frame, but)
        size = len(before) + len(after) + 50 * len(MEGABYTE)
        for socket in self.sockets:
            await socket.write(head(size) + before)
            for _ in range(50):
                await socket.write(MEGABYTE)
            await socket.write(after)


class EndlessFrame(Peer):
    """Answers a turn with one message of fragments without an end."""

    async def turn(self, socket: Socket, request: str, message: Json) -> None:
        await socket.write(head(len(MEGABYTE), fin=False) + MEGABYTE)
        while True:
            await socket.write(head(len(MEGABYTE), 0, fin=False) + MEGABYTE)


class MoreThanAHistoryHolds(Peer):
    """Answers a turn with words of 900 kB, for ever, and nothing else any more."""

    running = False

    async def turn(self, socket: Socket, request: str, message: Json) -> None:
        self.running = True
        chunk = json.dumps({"type": "text-delta", "id": "t", "delta": "x" * 900_000})
        payload = json.dumps(response(id=request, body=chunk, done=False)).encode()
        while True:
            await socket.write(head(len(payload)) + payload)

    async def received(self, socket: Socket, frame: Json) -> None:
        if not self.running:
            await super().received(socket, frame)


class MillionFrames(Peer):
    """Answers a turn with a million words."""

    async def turn(self, socket: Socket, request: str, message: Json) -> None:
        chunk = json.dumps({"type": "text-delta", "id": "t", "delta": "x"})
        payload = json.dumps(response(id=request, body=chunk, done=False)).encode()
        some = (head(len(payload)) + payload) * 1000
        for _ in range(1000):
            await socket.write(some)


class EndlessTranscript(Peer):
    """Its transcript over HTTP never ends."""

    async def requested(self, target: str, headers: dict[str, str], reader: Any, writer: Any) -> None:
        if not target.endswith("/get-messages"):
            return await super().requested(target, headers, reader, writer)
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[")
        while True:
            writer.write(MEGABYTE)
            await writer.drain()


# ---- that answer with what shall not be shown as it stands -----------------------------------

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>]]>&amp;"
CONTROLS = "\x1b[2J\x1b]0;title\x07\r\x00\x08"
BIDI = "\u202egnp.exe\u2066\u200f"
LIVE = f"{SCRIPT}{CONTROLS}{BIDI}"


class LiveContent(Peer):
    """Words, ids and the end of every turn are script, escape codes and bidirectional marks; it fails each
    turn, so that all of it is evidence."""

    def words(self, answer: str) -> list[str]:
        return [LIVE, "\ud83d", LIVE]

    def message_id(self, request: str) -> str:
        return f"{LIVE}{request}"

    async def end(self, request: str, message: str) -> None:
        await self.tell(response(id=request, body=LIVE, done=False, error=True, messageIds=[LIVE]))
        await self.tell(response(id=request, body=LIVE, done=True, outcome="error", messageIds=[LIVE]))
        await self.tell(response(id=request, body=LIVE, done=True, outcome=LIVE, messageIds=[LIVE]))
        await self.tell(response(id=LIVE, body=LIVE, done=True, outcome="completed"))
        await self.tell({"type": LIVE, LIVE: LIVE})


class InvalidUtf8(Peer):
    """Each word is a text frame that is not UTF-8."""

    async def tell(self, frame: Any, but: Socket | None = None) -> None:
        text = json.dumps(frame).encode()
        for socket in list(self.sockets):
            if socket is not but:
                await socket.send_text(text.replace(b"one-", b"\xff\xfe\xed\xa0\x80"))


class ClosesWithLiveContent(Peer):
    """Closes the socket of a turn with a reason that is script and escape codes."""

    async def turn(self, socket: Socket, request: str, message: Json) -> None:
        reason = b"\x0f\xa0" + f"{SCRIPT[:60]}{CONTROLS}{BIDI}".encode()
        await socket.write(head(len(reason), 8) + reason)


class DiesWithLiveContent(Peer):
    """Ends at once; the last line of its log is live."""

    async def serve(self) -> None:
        sys.stderr.buffer.write(LIVE.encode() + b"\xff\xfe\n")
        raise SystemExit(1)


# ---- that lie about readiness ----------------------------------------------------------------

DAEMON_S = 15
"""What got away from the kit ends by itself."""


class LetsNobodyIn(Peer):
    """Lets one client in, who only looked whether it can be reached, and nobody after."""

    async def upgrade(self, target: str, key: str, reader: Any, writer: Any) -> None:
        if "/hello?" not in target:
            return await self.answer(writer, b"not you", "403 Forbidden")
        await super().upgrade(target, key, reader, writer)


class ReadyAndExits(Peer):
    """Ends with its first answer over HTTP."""

    async def answer(self, writer: asyncio.StreamWriter, body: bytes, status: str = "200 OK") -> None:
        await super().answer(writer, body, status)
        os._exit(0)


class ExitsAfterHello(Peer):
    """Ends when the first client comes who is not only looking, however often it is started again."""

    async def opened(self, socket: Socket) -> None:
        if socket.client != "hello.1":
            os._exit(0)


class Daemonizes(Peer):
    """Forks, ends, and serves from a session of its own, which no process group reaches."""

    def start(self) -> None:
        if os.fork():
            os._exit(0)
        os.setsid()
        signal.alarm(DAEMON_S)
        super().start()


class ServesFromOutside(Peer):
    """As before, but its first process stays."""

    def start(self) -> None:
        if os.fork():
            signal.pause()
        os.setsid()
        signal.alarm(DAEMON_S)
        super().start()


# ---- that die at random -----------------------------------------------------------------------


class DiesAtRandom(Peer):
    """Ends with every tenth thing it does or so, drawn from a seed; its memory is lost each time."""

    def __init__(self) -> None:
        super().__init__()
        lives = Path(os.environ["THINK_DATA_DIR"]) / "lives"
        life = len(lives.read_bytes()) if lives.exists() else 0
        lives.write_bytes(b"x" * (life + 1))
        self._chance = random.Random(f"{os.environ['SEED']}/{life}")

    async def tell(self, frame: object, but: Socket | None = None) -> None:
        if self._chance.random() < 0.1:
            os._exit(1)
        await super().tell(frame, but)

    async def received(self, socket: Socket, frame: Json) -> None:
        if self._chance.random() < 0.1:
            os._exit(1)
        await super().received(socket, frame)


# ---- that are slow ------------------------------------------------------------------------------


PIECE = 8


class Dribbles(Peer):
    """Does everything right, a few bytes at a time."""

    def socket(self, *parts: Any) -> Socket:
        return _Dribbling(*parts)

    async def answer(self, writer: asyncio.StreamWriter, body: bytes, status: str = "200 OK") -> None:
        whole = (
            f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
        )
        for start in range(0, len(whole), PIECE):
            writer.write(whole[start : start + PIECE])
            await writer.drain()
            await asyncio.sleep(0)


class _Dribbling(Socket):
    async def write(self, data: bytes) -> None:
        for start in range(0, len(data), PIECE):
            await super().write(data[start : start + PIECE])
            await asyncio.sleep(0)


# ---- that reuse ids -------------------------------------------------------------------------------


class TwoTurnsUnderOneId(Peer):
    """Tells every turn under the id of the first."""

    first = ""

    async def turn(self, socket: Socket, request: str, message: Json) -> None:
        self.first = self.first or request
        await super().turn(socket, self.first, message)


class RepeatsMessageIds(Peer):
    """Every answer has the same id."""

    def message_id(self, request: str) -> str:
        return "the-answer"


# ---- that send what they must not -----------------------------------------------------------------


class BeforeTheirTime(Peer):
    """Frames of turns and answers that nobody asked for, to whoever comes."""

    async def opened(self, socket: Socket) -> None:
        for request in ("req-t1", "req-t2"):
            chunk = json.dumps({"type": "text-delta", "id": "t", "delta": "too early "})
            await socket.send(response(id=request, body=chunk, done=False, replay=True, seq=7))
            await socket.send(response(id=request, body="", done=True, outcome="aborted"))
        await socket.send({"type": "cf_agent_stream_pending", "id": "req-t9", "probeId": "never"})
        await socket.send({"type": "rpc", "id": "never", "success": True, "done": True})
        await super().opened(socket)


class UnknownOutcome(Peer):
    """Turns end in a way that there is not."""

    async def end(self, request: str, message: str) -> None:
        await self.tell(response(id=request, body="", done=True, outcome="exploded", messageIds=[message]))


class WrongTypes(Peer):
    """Every field of every frame has a type that it must not have, and some are nested without end."""

    async def tell(self, frame: Any, but: Socket | None = None) -> None:
        for wrong in (None, 0, -1e308, True, [], {}, [[{}]], {"id": []}, ""):
            await super().tell({key: (key == "type" and frame[key]) or wrong for key in frame})
        for key in frame:
            await super().tell({**frame, key: 2**80})
        deep = b"[" * 100_000 + b"]" * 100_000
        for socket in self.sockets:
            await socket.send_text(b'{"type":"cf_agent_chat_messages","messages":' + deep + b"}")
            await socket.send_text(b'{"type":"cf_agent_use_chat_response","id":"req-t1","done":NaN}')
            await socket.send_text(b"")

    async def opened(self, socket: Socket) -> None:
        await self.tell({"type": "cf_agent_chat_messages", "messages": [], "connect": True})


class ChunksAfterTheTerminal(Peer):
    """Goes on with every turn after its end, and ends it again."""

    async def end(self, request: str, message: str) -> None:
        await super().end(request, message)
        chunk = json.dumps({"type": "text-delta", "id": "t", "delta": "more "})
        await self.tell(response(id=request, seq=7, body=chunk, done=False))
        await super().end(request, message)


TARGETS = {
    kind.__name__: kind
    for kind in vars().copy().values()
    if isinstance(kind, type) and issubclass(kind, Peer)
}


if __name__ == "__main__":
    TARGETS[sys.argv[1]]().start()
