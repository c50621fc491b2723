"""How every case ends: lift all faults, let everything finish, then ask for the truth.

A fresh client `observer` follows whatever still runs until the agent has nothing more to offer, reads
the transcript, and acks every root request id of the plan, so that each accepted turn had a
chance to tell its outcome to somebody. An agent that says `idle` while a turn has no outcome is
watched for as long as it may take to wake: what comes late is no loss.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from think_conformance.history.op import OBSERVER, frame_of
from think_conformance.history.views import View
from think_conformance.shell.process import KilledWhileStarting, TargetNotReady
from think_conformance.wire.frames import ResumeAck, ResumeRequest

if TYPE_CHECKING:
    from think_conformance.shell.case import Case

ANSWERS = ("cf_agent_stream_resume_none", "cf_agent_stream_resuming", "cf_agent_stream_pending")
WORK = ("cf_agent_use_chat_response", "cf_agent_stream_resuming", "cf_agent_stream_pending")
ACK_ANSWER_S = 5.0
PROBE_ANSWER_S = 10.0
LATE_S = 1.0
"""How long a turn without outcome is waited for, on top of the heartbeat within which its agent wakes."""
STARTS = 3
"""How often a target that dies before it can be asked is brought back."""


class Epilogue:
    """Plays the end of one case."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._recorder = case.recorder
        self._asked = 0
        self._heartbeat_s = case.instance.target.heartbeat_s
        self._deadline_s = 10.0 + self._heartbeat_s

    async def play(self) -> None:
        """Bounded by the deadline and a few answers; records where it came to."""
        case = self._case
        self._phase("begin")
        case.recorder.append("run", "heal")
        await case.heal()
        case.world.model.open_all(case.name)
        try:
            await self._connect()
            async with asyncio.timeout(self._deadline_s):
                await self._until_settled()
        except TimeoutError:
            await self._give_up()
        except (TargetNotReady, KilledWhileStarting) as dead:
            self._recorder.append("run", "info", {}, {"reason": str(dead)})
            await self._give_up()
        await self._ack_roots()
        self._phase("end")

    async def _connect(self) -> None:
        """The observer, to a target that runs; what dies while it is dialled comes back first. Raises
        TimeoutError when it lives and lets nobody in, or dies each time; as `start` of a process
        when it does not come back."""
        instance, observer = self._case.instance, self._case.client(OBSERVER)
        for _ in range(STARTS):
            await instance.ensure_running()
            async with asyncio.timeout(self._deadline_s):
                while instance.alive:
                    if await observer.connect():
                        return
                    await asyncio.sleep(0.05)  # nobody tells when a refused port opens
        raise TimeoutError

    async def _until_settled(self) -> None:
        clock = asyncio.get_running_loop().time
        late_s = clock() + self._heartbeat_s + LATE_S
        while True:
            await self._until_idle()
            self._phase("idle")
            await self._read_transcript()
            if self._all_settled():
                return
            since = len(self._recorder.records)
            late = await self._next(lambda f: f.get("done") is True, since, max(late_s - clock(), 0))
            if late is None and not self._stirs(since):
                return

    def _stirs(self, since: int) -> bool:
        """Whether the observer was shown since then that something runs."""
        return any(
            index >= since and frame.get("type") in WORK and frame.get("done") is not True
            for index, frame in self._observed()
        )

    def _all_settled(self) -> bool:
        """Whether an outcome of every turn that was accepted is known. That a stopped one is over may be told
        late, a stored answer says little of one that a crash interrupted, and one that was told to be aborted
        and that nobody stopped may go on."""
        view = View(self._recorder.records)
        return not any(
            (strength := view.evidence(chain).strength) in ("none", "stopped")
            or (strength == "stored" and view.deaths_in(chain))
            or (set(chain.finals) == {"aborted"} and view.deaths and not chain.cancels)
            for chain in view.chains
            if chain.accepted is not None
        )

    async def _give_up(self) -> None:
        self._phase("deadline")
        await self._read_transcript()

    async def _until_idle(self) -> None:
        observer = self._case.client(OBSERVER)
        while True:
            self._asked += 1
            probe = f"epilogue-{self._asked}"
            since = len(self._recorder.records)
            await observer.send(ResumeRequest(probe_id=probe))
            answer = await self._next(lambda f, p=probe: f.get("probeId") == p, since, PROBE_ANSWER_S)
            if answer is None:
                raise TimeoutError
            match answer["type"], answer.get("id"):
                case "cf_agent_stream_resume_none", _:
                    break
                case "cf_agent_stream_resuming", str(ended) if self._ended(ended, since):
                    break  # a failed turn is offered to whoever asks until a newer one is accepted
                case "cf_agent_stream_resuming", running:
                    await self._next(lambda f, r=running: f.get("id") == r and f.get("done") is True, since)
                case _:
                    await self._next(lambda f: f["type"] in ANSWERS[:2] and "probeId" not in f, since)
        await self._case.world.model.quiet(self._case.name)

    def _ended(self, request: str, since: int) -> bool:
        """Whether the observer knew the end of it before it asked; what ends right after may have been
        running when the answer was given."""
        return any(
            index < since and frame.get("id") == request and frame.get("done") is True
            for index, frame in self._observed()
        )

    def _observed(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Every frame on the observer's connections so far, with the index of its record."""
        for record in self._recorder.records:
            frame = frame_of(record) if record.ids.get("client") == OBSERVER else None
            if frame is not None:
                yield record.index, frame

    async def _next(self, matches: Any, since: int, within_s: float = float("inf")) -> dict[str, Any] | None:
        record = await self._recorder.wait_for(
            lambda r: (
                r.index >= since
                and r.kind == "frame-in"
                and r.ids.get("client") == OBSERVER
                and "type" in (frame := frame_of(r) or {})
                and matches(frame)
            ),
            within_s,
        )
        return frame_of(record) if record else None

    async def _ack_roots(self) -> None:
        observer = self._case.client(OBSERVER)
        for root in self._case.roots:
            since = len(self._recorder.records)
            if await observer.send(ResumeAck(id=root)):
                await self._next(
                    lambda f, r=root: f.get("id") == r and f.get("done") is True, since, ACK_ANSWER_S
                )

    async def _read_transcript(self) -> None:
        observer = self._case.client(OBSERVER)
        ids = {"client": OBSERVER}
        self._recorder.append("run", "invoke", ids, {"do": "get-messages"})
        messages = await observer.get_messages()
        if messages is None:
            self._recorder.append("run", "info", ids, {"reason": "the transcript could not be read"})
        else:
            self._recorder.append("run", "ok", ids, {"do": "get-messages", "messages": messages})

    def _phase(self, phase: str) -> None:
        self._recorder.append("run", "epilogue", {}, {"phase": phase})
