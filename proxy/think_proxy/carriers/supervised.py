"""The carrier mitmproxy: a process of its own, asked about before anything passes, ended whatever happens.

The process carries; here is decided, by the same engine as everywhere, and written down before it is done.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib.metadata import PackageNotFoundError, version

import msgspec

from think_proxy import journal as records
from think_proxy.carriers import questions
from think_proxy.carriers.abilities import MITMPROXY, SOCKET_LEGS, carrier
from think_proxy.carriers.proxy import CLOSE_S, Proxy
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
from think_proxy.carriers.strike import Process, Strike
from think_proxy.engine import Firing, Watch
from think_proxy.journal import Journal
from think_proxy.match import Connection, Exchange, Message
from think_proxy.plan import Direction, Fault, Leg, Status

START_S = 30.0
"""How long the process has until it listens; it takes about a second of an idle processor."""

KNOWN = "11.0"
"""The versions whose internals `mitm.py` knows."""

INSTALL = "install it with: pip install 'think-conformance[mitm]'"


class Unavailable(ValueError):
    """The carrier cannot be used here. One line that says what to do."""


class CarrierBroke(RuntimeError):
    """The process ended, or said what it must not: what was seen since counts for nothing."""


def check_usable(*, tls: bool) -> None:
    """Raises Unavailable without mitmproxy, with another version than is known, or where TLS is to be spoken
    to the server: whom mitmproxy trusts is not what its owner was told to trust."""
    if tls:
        raise Unavailable("the carrier mitmproxy speaks no TLS to a server here: use the embedded one")
    try:
        found = version("mitmproxy")
    except PackageNotFoundError:
        raise Unavailable(f"the carrier mitmproxy is not installed: {INSTALL}") from None
    if not re.match(re.escape(KNOWN) + r"(\.|$)", found):
        raise Unavailable(f"mitmproxy {found} is installed, the carrier needs {KNOWN}: {INSTALL}")


class MitmProxy(Proxy):
    """As `EmbeddedProxy`, but with no process actions and no TLS. Raises Unavailable when it is started where
    it cannot be used, CarrierBroke once its process is gone."""

    def __init__(
        self,
        upstream: tuple[str, int],
        *,
        journal: Journal,
        process: Process | None,
        seed: int = 0,
        host: str = "127.0.0.1",
        port: int = 0,
        leg: Leg = "client",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = tls is not None
        does = carrier(leg, controls_process=False, name=MITMPROXY)
        super().__init__(does, journal=journal, process=None, seed=seed, address=(host, port))
        self._upstream = upstream
        self._sockets = leg in SOCKET_LEGS
        self._eyes: dict[str, Eye] = {}
        self._child: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._closing = False
        self._broke = ""

    async def start(self) -> None:
        check_usable(tls=self._tls)
        try:
            async with asyncio.timeout(START_S):
                reader = await self._launch()
                said = await questions.question(reader)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, ValueError) as error:
            await self.close()
            raise CarrierBroke(f"mitmproxy did not start within {START_S:g} s ({error!r})") from None
        except BaseException:
            await self.close()
            raise
        match said:
            case Listening(port=port):
                self._address = (self._address[0], port)
                self._listening = asyncio.get_running_loop().create_task(self._listen(reader))
            case Failed(errno=errno) if errno:
                await self.close()
                raise OSError(errno, os.strerror(errno))
            case _:
                await self.close()
                raise CarrierBroke(f"mitmproxy did not start: {said}")

    def arm(self, faults: Iterable[Fault], scope: str, *, journal: Journal | None = None) -> None:
        self._check()
        super().arm(faults, scope, journal=journal)

    async def heal(self, scope: str | None) -> None:
        await super().heal(scope)
        self._check()

    async def lost(self) -> str:
        if self._listening is not None:
            await asyncio.wait([self._listening])
        return self._broke

    async def close(self) -> None:
        self._closing = True
        tasks = self._cancelled()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._writer is not None:
            self._writer.close()  # the process ends with its channel
            with suppress(OSError):
                await self._writer.wait_closed()
        if self._listening is not None:
            await asyncio.wait([self._listening])
        if self._child is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._child.wait(), CLOSE_S)
            if self._child.returncode is None:
                self._child.kill()
                await self._child.wait()

    async def _launch(self) -> asyncio.StreamReader:
        ours, theirs = socket.socketpair()
        with theirs:
            settings = Settings(theirs.fileno(), self._sockets, self._upstream, self._address)
            reader, self._writer = await asyncio.open_connection(sock=ours)
            self._child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "think_proxy.carriers.mitm",
                msgspec.json.encode(settings).decode(),
                pass_fds=[theirs.fileno()],
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=DEVNULL,
                start_new_session=True,  # Ctrl-C is for its owner
            )
        return reader

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Answers until the process ends."""
        try:
            while True:
                self._hear(await questions.question(reader))
        except (asyncio.IncompleteReadError, OSError):
            why = "its process ended"
        except ValueError as error:
            why = str(error)
        if not self._closing:
            self._broke = f"the carrier mitmproxy broke: {why}"
            assert self._writer is not None
            self._writer.close()

    def _hear(self, said: Question) -> None:
        match said:
            case Opening(target=target, head=head):
                eye = self._eyes[said.flow] = Eye(self._engine.watch(Connection(target)))
                self._decide(said.ask, eye.watch, "up", Message(head, None, 0, 0))
            case Said(direction=direction, content=content):
                eye = self._eyes[said.flow]
                eye.ordinals[direction] += 1
                shown = None if content is None else Message(content, content, eye.ordinals[direction], None)
                self._decide(said.ask, eye.watch, direction, shown)
            case Requested(target=target, body=body):
                watch = self._engine.watch(Exchange(target, body or b""))
                shown = None if body is None else Message(body, body if said.plain else None, 1, 0)
                self._decide(said.ask, watch, "up", shown)
            case Ended():
                self._end(said)
            case Listening() | Failed():
                raise ValueError(str(said))

    def _decide(self, ask: int, watch: Watch, direction: Direction, message: Message | None) -> None:
        firing = None if message is None else watch.decide(direction, message)
        if message is None or firing is None:
            self._tell(Pass(ask))
            return
        records.fired(self._journal_of(firing.scope), firing, watch, direction, message)
        self._run(MitmStrike(ask, firing, self._tell))

    def _end(self, said: Ended) -> None:
        place = self._eyes.pop(said.flow).watch.place
        if not said.orderly:
            for scope, journal in self._journals.items():
                if place.within(scope):
                    records.retold(journal, place)

    def _tell(self, said: Answer) -> None:
        assert self._writer is not None, "who asks is there"
        self._writer.write(questions.framed(said))

    def _check(self) -> None:
        if self._broke:
            raise CarrierBroke(self._broke)


class Eye:
    """What is known of an open WebSocket. ordinals: of the last message in each direction."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.ordinals: dict[Direction, int] = {"up": 0, "down": 0}


class MitmStrike(Strike):
    """A firing at what was asked about: until it is answered, the whole connection is held."""

    def __init__(self, ask: int, firing: Firing, tell: Callable[[Answer], None]) -> None:
        super().__init__(firing, None)
        self._ask = ask
        self._tell = tell
        self._answered = False
        self._lost = False

    def release(self) -> None:
        self._answer(Drop(self._ask) if self._lost else Pass(self._ask))

    def discard(self) -> None:
        self._lost = True

    def hold(self, direction: Direction | None) -> AbstractContextManager[None]:
        return nullcontext()

    def finish(self) -> None:
        self._answer(Finish(self._ask))

    async def answer(self, status: Status) -> None:
        self._answer(Instead(self._ask, status))

    def reset(self) -> None:
        raise NotImplementedError("not armed on this carrier")

    async def close(self, code: int, reason: str) -> None:
        raise NotImplementedError("not armed on this carrier")

    def shorten(self, keep: int | None, *, clean: bool) -> None:
        raise NotImplementedError("not armed on this carrier")

    def swallow(self) -> None:
        raise NotImplementedError("not armed on this carrier")

    def _answer(self, answer: Answer) -> None:
        if not self._answered:
            self._answered = True
            self._tell(answer)
