"""One walk over the chunks of a request on one connection: what is out of order, and where.

Only `seq` is read (WIRE-83): a chunk too large to store has none and says nothing (WIRE-82).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from think_conformance.checkers.base import Breach
from think_conformance.history.traffic import Exchange, is_chunk
from think_conformance.wire.codec import loads
from think_conformance.wire.frames import ChatRequest, ChatResponse, ResumeAck, StreamResuming


@dataclass
class Walk:
    """What one exchange showed. `live`: flaws from live chunk to live chunk. `resumed`: flaws of a
    replay, of its seam, and of all that follows an ack. `next`: the seq that must come (None: any).
    `end`: the live terminal and the seq then due, if the connection was owed all that came before: no
    offer stood unanswered by a replay. `asked` counts acks and resends, `replays` the passes over the
    stored stream."""

    exchange: Exchange
    live: list[Breach] = field(default_factory=list)
    resumed: list[Breach] = field(default_factory=list)
    live_chunks: int = 0
    replays: int = 0
    next: int | None = None
    end: tuple[int, int | None] | None = None
    asked: int = 0
    _attached: bool = True
    _in_replay: bool = False
    _at_seam: bool = False
    _low: int | None = None
    _last: int | None = None

    def __post_init__(self) -> None:
        first_send = self.exchange.sender and not self.exchange.raced
        for passed in self.exchange.frames:
            frame = passed.frame
            if isinstance(frame, StreamResuming):
                self._attached = False
            elif isinstance(frame, (ResumeAck, ChatRequest)):
                self.asked += not (first_send and isinstance(frame, ChatRequest))
                first_send = first_send and not isinstance(frame, ChatRequest)
            elif isinstance(frame, ChatResponse):
                self._response(passed.index, frame)

    def _response(self, index: int, frame: ChatResponse) -> None:
        if frame.replay and not frame.done:
            self._attached = True  # only now it is certain that the ack came before the end
        if frame.done and not frame.replay and self._attached and self.end is None:
            self.end = index, self.next
        if frame.replay_complete:
            self._in_replay, self._at_seam = False, True
        if not is_chunk(frame) or frame.seq is None:
            return
        if frame.replay:
            self._replayed(index, frame.seq, frame.body)
        else:
            self._came_live(index, frame.seq)
        self._last = index

    def _replayed(self, index: int, seq: int, body: str) -> None:
        again = self.next is not None and seq < self.next and seq == self._low
        if not self._in_replay or again:
            self.replays += 1
            self._low = seq
            if self.replays > self.asked:
                self._flaw(index, "the stream was replayed more often than it was asked for")
            if seq > 0 and not _opens(body):
                self._flaw(index, f"a replay begins at seq {seq}")
        elif seq != self.next:
            self._flaw(index, f"a replay shows seq {seq} where {self.next} is due")
        self._in_replay, self._at_seam, self.next = True, True, seq + 1

    def _came_live(self, index: int, seq: int) -> None:
        self.live_chunks += 1
        if self.next is None:
            if seq > 0 and self.exchange.sender:
                self._flaw(index, f"the live stream begins at seq {seq}", live=True)
        elif seq != self.next:
            self._flaw(index, f"live seq {seq} came where {self.next} is due", live=not self._at_seam)
        self._in_replay = self._at_seam = False
        self.next = max(self.next or 0, seq + 1)

    def _flaw(self, index: int, what: str, *, live: bool = False) -> None:
        said = f"{self.exchange.connection.name}, {self.exchange.request}: {what}"
        breach = Breach(said, (index,) if self._last is None else (self._last, index))
        if live:
            self.live.append(breach)
        if not live or self.asked:
            self.resumed.append(breach)


def _opens(body: str) -> bool:
    """Whether a chunk begins a stream anew, as after an overflow (TURN-136)."""
    try:
        chunk = loads(body)
    except ValueError:
        return False
    return isinstance(chunk, dict) and chunk.get("type") == "start"
