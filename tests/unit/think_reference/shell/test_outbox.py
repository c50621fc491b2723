"""What waits for one connection is in order and bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from think_conformance.wire.codec import decode_server
from think_conformance.wire.frames import ChatResponse
from think_reference.core.effects import Replay
from think_reference.shell import outbox as module
from think_reference.shell.outbox import LIMIT, TOO_SLOW, Outbox


class Socket:
    """Takes texts while its gate is open."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.changed = asyncio.Condition()
        self.gate = asyncio.Event()
        self.gate.set()
        self.closed: list[str] = []
        self.aborts = 0
        self.aborted = asyncio.Event()

    async def send(self, text: str) -> None:
        await self.gate.wait()
        async with self.changed:
            self.sent.append(text)
            self.changed.notify_all()

    async def has_sent(self, count: int) -> None:
        async with asyncio.timeout(5), self.changed:
            await self.changed.wait_for(lambda: len(self.sent) >= count)

    def close(self, why: str) -> None:
        self.closed.append(why)

    def abort(self) -> None:
        self.aborts += 1
        self.aborted.set()


@asynccontextmanager
async def running() -> AsyncIterator[tuple[Outbox, Socket]]:
    socket = Socket()
    outbox = Outbox(socket.send, socket.close, socket.abort)
    task = asyncio.ensure_future(outbox.run())
    try:
        yield outbox, socket
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_texts_and_replays_leave_in_the_order_they_were_put() -> None:
    async with running() as (outbox, socket):
        outbox.put("first")
        outbox.replay(Replay(1, "r1", ("a", "b"), True))
        outbox.put("last")
        await socket.has_sent(4)
    assert (socket.sent[0], socket.sent[3]) == ("first", "last")
    assert [decode_server(text) for text in socket.sent[1:3]] == [
        ChatResponse(id="r1", body=body, done=False, continuation=True, replay=True, seq=seq)
        for seq, body in enumerate("ab")
    ]


async def test_too_much_waiting_is_told_once_and_dropped() -> None:
    async with running() as (outbox, socket):
        socket.gate.clear()
        for _ in range(9):
            outbox.put("x" * (LIMIT // 8))
        assert socket.closed == [TOO_SLOW]
        outbox.put("more")
        assert socket.closed == [TOO_SLOW]


async def test_what_was_sent_no_longer_counts() -> None:
    async with running() as (outbox, socket):
        for n in range(20):
            outbox.put("x" * (LIMIT // 4))
            await socket.has_sent(n + 1)
        assert socket.closed == []


async def test_one_frame_larger_than_the_limit_gets_through() -> None:
    async with running() as (outbox, socket):
        outbox.put("x" * LIMIT * 2)
        outbox.put("the end")
        await socket.has_sent(2)
        assert socket.closed == []


async def test_a_replay_counts_for_little_but_not_for_nothing() -> None:
    async with running() as (outbox, socket):
        socket.gate.clear()
        big = Replay(1, "r1", ("x" * 100_000,) * 1000)
        for _ in range(5):
            outbox.replay(big)
        assert socket.closed == []
        for _ in range(1100):
            outbox.replay(big)
        assert socket.closed == [TOO_SLOW]


async def test_an_aborted_connection_is_cut_once_and_sends_nothing_that_waits() -> None:
    async with running() as (outbox, socket):
        outbox.put("sent")
        await socket.has_sent(1)
        outbox.put("waiting")
        outbox.abort()
        outbox.put("later")
        for _ in range(5):  # the writer's turns
            await asyncio.sleep(0)
    assert (socket.sent, socket.aborts, socket.closed) == (["sent"], 1, [])


async def test_an_ended_connection_gets_what_waits_and_is_then_closed_with_the_reason() -> None:
    async with running() as (outbox, socket):
        outbox.put("waiting")
        outbox.end("why")
        outbox.put("later")
        outbox.end("again")
        for _ in range(5):  # the writer's turns
            await asyncio.sleep(0)
    assert (socket.sent, socket.closed, socket.aborts) == (["waiting"], ["why"], 0)


async def test_who_does_not_read_is_cut_off_when_its_connection_is_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "END_S", 0.01)
    async with running() as (outbox, socket):
        socket.gate.clear()
        outbox.put("waiting")
        outbox.end("why")
        async with asyncio.timeout(5):
            await socket.aborted.wait()
    assert (socket.sent, socket.closed) == ([], [])
