"""A small lawful world: a server and its clients, played by chance, that yields histories.

Everything the protocol allows may happen in any order: sockets drop with frames in flight, both ways
where the network is `slow`, offers
are acked late or twice, requests are sent again, turns queue up, are stopped, fail, stall or are
interrupted by a crash. No history of this world may ever be judged red.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from histories import Story, answer, user
from think_conformance.wire.codec import dumps
from think_conformance.wire.frames import (
    ChatMessages,
    ChatResponse,
    Frame,
    Message,
    ResumeNone,
    StreamPending,
    StreamResuming,
)

WORDS = 3
CALLS = 8


@dataclass(frozen=True)
class Dialect:
    """How an implementation talks: fields it leaves out, what it remembers, what a crash costs it."""

    outcome: bool = True
    message_ids: bool = True
    seq: bool = True
    remembers: bool = True  # a late ack is told the outcome, not an empty terminal
    lossy: bool = False  # a crash costs the chunks no replay has flushed
    shape: str = "A"
    slow: bool = False  # what clients send is on its way until it arrives


@dataclass
class Turn:
    number: int
    ids: list[str]
    log: list[dict[str, str]] = field(default_factory=list)
    flushed: int = 0
    kept: str = ""  # text that earlier runs have stored
    message: str = ""
    calls: int = 0
    said: int = 0
    outcome: str | None = None
    arrived: bool = False  # a request of it reached the server

    @property
    def id(self) -> str:
        return self.ids[-1]

    @property
    def continuation(self) -> bool:
        return bool(self.kept)

    def text(self) -> str:
        return self.kept + "".join(chunk.get("delta", "") for chunk in self.log)


@dataclass
class Link:
    """One connection: frames on their way to the client, streams it was offered and has not acked."""

    name: str
    follows: bool
    outbox: list[Frame] = field(default_factory=list)
    inbox: list[Callable[[], None]] = field(default_factory=list)
    withheld: set[str] = field(default_factory=set)
    parked: bool = False
    acked: set[str] = field(default_factory=set)


def plan_of(turns: int) -> dict[str, object]:
    """Scripts in which no two calls say the same word."""
    return {
        "model": {
            f"t{n}": [
                [*({"text": f"t{n}c{c}w{w} "} for w in range(WORDS)), "done"] for c in range(1, CALLS + 1)
            ]
            for n in range(1, turns + 1)
        }
    }


class World:
    """The server's state is what is not in the `story`. Each public method is one thing that happens;
    `n` picks which connection, id or amount it concerns."""

    def __init__(self, dialect: Dialect, turns: int = 6) -> None:
        self.dialect = dialect
        self.story = Story(
            plan=plan_of(turns), facts=dialect == Dialect(shape=dialect.shape, slow=dialect.slow)
        )
        self.most = turns
        self.turns: list[Turn] = []
        self.queue: list[Turn] = []
        self.active: Turn | None = None
        self.failed: Turn | None = None
        self.stored: list[Message] = []
        self.links: list[Link] = []
        self.seen: set[str] = set()  # ids that some client was told of

    # ---- what clients do ------------------------------------------------------------------------

    def connect(self, n: int) -> None:
        self._open("abc"[n % 3], follows=n % 4 != 0)

    def _open(self, client: str, *, follows: bool) -> Link:
        link = Link(self.story.open(client), follows)
        self.links.append(link)
        if self.active:
            self._offer(link, self.active.id)
        else:
            if self.queue:
                link.outbox.append(StreamPending(id=self.queue[0].id))
            link.outbox.append(ChatMessages(messages=list(self.stored), connect=True))
        if follows:
            self._probe(link)
        return link

    def drop(self, n: int) -> None:
        if self.links:
            link = self.links.pop(n % len(self.links))
            self._arrive(link, n // 2 % (len(link.inbox) + 1))
            self._deliver(link, n % (len(link.outbox) + 1))
            self.story.close(link.name, code=1006 if n % 2 else 1000, by="peer" if n % 2 else "self")

    def send(self, n: int) -> None:
        link = self._link(n)
        if link and len(self.turns) < self.most:
            turn = Turn(len(self.turns) + 1, [f"r{len(self.turns) + 1}"])
            self.story.send(link.name, turn.number)
            self.turns.append(turn)
            self._reach(link, lambda: self._requested(link, turn))

    def send_in_vain(self, n: int) -> None:
        """The request leaves the client and never arrives."""
        link = self._link(n)
        if link and len(self.turns) < self.most:
            number = len(self.turns) + 1
            self.turns.append(Turn(number, [f"r{number}"]))
            self.story.send(link.name, number)
            self.links.remove(link)
            self.story.close(link.name)

    def send_again(self, n: int) -> None:
        link, turn = self._link(n), self._turn(n)
        if not link or not turn:
            return
        self.story.send(link.name, turn.number)
        self._reach(link, lambda: self._requested(link, turn))

    def _requested(self, link: Link, turn: Turn) -> None:
        if not turn.arrived:
            turn.arrived = True
            self.queue.append(turn)
            self.failed = None
            self.stored.append(user(turn.number))
            self._broadcast(ChatMessages(messages=list(self.stored)), besides=link)
        elif turn in self.queue:
            link.outbox.append(StreamPending(id=turn.id))
        elif turn is self.active and turn.id != turn.ids[0]:
            if self.dialect.outcome:
                link.outbox.append(self._terminal(turn, turn.ids[0], "recovering", replay=True))
            self._offer(link, turn.id)
        elif turn in (self.active, self.failed) and turn.id == turn.ids[0]:
            self._acked(link, turn.id, turn)
        else:
            self._ended(link, turn, turn.ids[0])

    def probe(self, n: int) -> None:
        if link := self._link(n):
            self._probe(link)

    def ack(self, n: int) -> None:
        """Also of ended ids, of others than the offered one, and again."""
        link, turn = self._link(n), self._turn(n // 2)
        if link and turn:
            self._ack(link, self._known_id(turn, n))

    def ack_of_nothing(self, n: int) -> None:
        if link := self._link(n):
            self._ack(link, f"nothing{len(self.story.history)}")

    def cancel(self, n: int) -> None:
        link, turn = self._link(n), self._turn(n // 3)
        if not link or not turn:
            return
        self.story.cancel(link.name, self._known_id(turn, n))
        self._reach(link, lambda: self._cancelled(turn))

    def _cancelled(self, turn: Turn) -> None:
        if turn is self.active:
            self.story.call_ends(turn.number, "aborted")
            self._ends(turn, "aborted")
        elif turn in self.queue:
            self.queue.remove(turn)
            turn.outcome = "aborted"
            self._broadcast(self._terminal(turn, turn.id, "aborted"))
            self._release()

    def _release(self) -> None:
        """Nothing will stream for those who were told to wait."""
        for link in self.links if not (self.active or self.queue) else []:
            if link.parked:
                link.outbox.append(ResumeNone())
            link.parked = False

    # ---- what the server does -------------------------------------------------------------------

    def step(self, n: int = 0) -> None:
        """The next thing the model or the queue brings."""
        if self.active is None:
            if self.queue:
                self._begin(self.queue.pop(0))
            return
        turn = self.active
        if turn.said < WORDS:
            turn.said += 1
            word = f"t{turn.number}c{min(turn.calls, CALLS)}w{turn.said - 1} "
            self._emit({"type": "text-delta", "id": "x", "delta": word})
        else:
            self.story.call_ends(turn.number)
            self._ends(turn, "completed")

    def _begin(self, turn: Turn) -> None:
        self.active, self.failed = turn, None
        turn.calls, turn.said, turn.log, turn.flushed = turn.calls + 1, 0, [], 0
        for link in self.links:
            if link.parked:
                self._offer(link, turn.id)
            link.parked = False
        self.story.call(turn.number)
        if not turn.kept:
            turn.message = f"a{turn.number}.{turn.calls}"
        self._emit({"type": "start"} if turn.continuation else {"type": "start", "messageId": turn.message})

    def fail(self, n: int) -> None:
        if turn := self.active:
            self.story.call_ends(turn.number, "error")
            if self.dialect.shape == "A":
                self._broadcast(ChatResponse(id=turn.id, body="it broke", done=False, error=True))
            self._ends(turn, "error")
            self.failed = turn

    def stall(self, n: int) -> None:
        """Recovery without a crash: the same turn goes on under a new id."""
        if (turn := self.active) and self.dialect.outcome and turn.calls < CALLS:
            self.story.call_ends(turn.number, "aborted")
            self._put_back(turn)
            self._broadcast(ChatMessages(messages=list(self.stored)))
            self._broadcast(self._terminal(turn, turn.ids[-2], "recovering"))

    def crash(self, n: int) -> None:
        turn = self.active
        if turn and turn.calls >= CALLS:
            return
        self.story.kill()
        for link in self.links:
            self._deliver(link, n % (len(link.outbox) + 1), reacts=False)
            self.story.close(link.name)
        self.links = []
        if turn:
            self.story.call_ends(turn.number, "aborted")
            if self.dialect.lossy:
                del turn.log[turn.flushed :]
            self._put_back(turn)
        self.story.restart()

    def _put_back(self, turn: Turn) -> None:
        turn.kept, turn.log = turn.text(), []
        if turn.kept:
            self._store(turn)
        turn.ids.append(f"s{turn.number}.{turn.calls}")
        self.active = None
        self.queue.insert(0, turn)

    def _ends(self, turn: Turn, outcome: str) -> None:
        turn.outcome, self.active = outcome, None
        if turn.text():
            self._store(turn)
        if turn.text() or outcome == "completed":
            self._broadcast(ChatMessages(messages=list(self.stored)))
        self._broadcast(self._terminal(turn, turn.id, outcome))
        for link in self.links:
            link.withheld.discard(turn.id)

    def _store(self, turn: Turn) -> None:
        stored = answer(turn.text(), turn.message)
        known = [i for i, m in enumerate(self.stored) if m["id"] == turn.message]
        if known:
            self.stored[known[0]] = stored
        else:
            at = next(i for i, m in enumerate(self.stored) if m["id"] == f"u{turn.number}")
            self.stored.insert(at + 1, stored)

    def _emit(self, chunk: dict[str, str]) -> None:
        turn = self.active
        assert turn is not None
        turn.log.append(chunk)
        for link in self.links:
            if turn.id not in link.withheld:
                link.outbox.append(self._chunk(turn, len(turn.log) - 1, replay=False))

    # ---- the resume handshake -------------------------------------------------------------------

    def _offer(self, link: Link, request: str, probe: str | None = None) -> None:
        link.withheld.add(request)
        link.outbox.append(StreamResuming(id=request, probe_id=probe))

    def _probe(self, link: Link) -> None:
        probe = f"p{len(self.story.history)}"
        self.story.probe(link.name, probe)
        self._reach(link, lambda: self._probed(link, probe))

    def _probed(self, link: Link, probe: str) -> None:
        if self.active:
            self._offer(link, self.active.id, probe)
        elif self.queue:
            link.parked = True
            link.outbox.append(StreamPending(id=self.queue[0].id, probe_id=probe))
        elif self.failed:
            self._offer(link, self.failed.id, probe)
        else:
            link.outbox.append(ResumeNone(reason="idle", probe_id=probe))

    def _ack(self, link: Link, request: str) -> None:
        self.story.ack(link.name, request)
        link.acked.add(request)
        turn = next((t for t in self.turns if request in t.ids), None)
        self._reach(link, lambda: self._acked(link, request, turn))

    def _acked(self, link: Link, request: str, turn: Turn | None) -> None:
        if turn is None or not turn.arrived:
            if not (self.active or self.queue):
                link.outbox.append(ChatResponse(id=request, body="", done=True, replay=True))
        elif turn is self.active and request == turn.id:
            link.withheld.discard(request)
            turn.flushed = len(turn.log)
            link.outbox += [self._chunk(turn, seq, replay=True) for seq in range(len(turn.log))]
            link.outbox.append(
                ChatResponse(id=request, body="", done=False, replay=True, replay_complete=True)
            )
        elif self.active or turn in self.queue:
            return
        elif turn is self.failed and request == turn.id:
            link.outbox += [self._chunk(turn, seq, replay=True) for seq in range(len(turn.log))]
            ids = [f"u{turn.number}"] if self.dialect.message_ids else None
            link.outbox.append(
                ChatResponse(id=request, body="it broke", done=True, error=True, message_ids=ids)
            )
        else:
            self._ended(link, turn, request)

    def _ended(self, link: Link, turn: Turn, request: str) -> None:
        """What is remembered of a turn that is over."""
        if turn.outcome == "error" or (self.dialect.remembers and self.dialect.outcome):
            link.outbox.append(self._terminal(turn, request, turn.outcome or "", replay=True))
        else:
            link.outbox.append(ChatResponse(id=request, body="", done=True, replay=True))

    # ---- frames ---------------------------------------------------------------------------------

    def _chunk(self, turn: Turn, seq: int, *, replay: bool) -> ChatResponse:
        return ChatResponse(
            id=turn.id,
            body=dumps(turn.log[seq]),
            done=False,
            replay=replay,
            continuation=turn.continuation,
            seq=seq if self.dialect.seq else None,
        )

    def _terminal(self, turn: Turn, request: str, outcome: str, *, replay: bool = False) -> ChatResponse:
        tells = self.dialect.outcome or outcome == "aborted"
        in_one_frame = not tells if replay else self.dialect.shape == "B"
        error = outcome == "error" and in_one_frame
        return ChatResponse(
            id=request,
            body="it broke" if error else "",
            done=True,
            error=error,
            replay=replay,
            outcome=outcome if tells else None,  # type: ignore[arg-type]
            message_ids=[f"u{turn.number}"] if self.dialect.message_ids else None,
        )

    def _broadcast(self, frame: Frame, besides: Link | None = None) -> None:
        for link in self.links:
            if link is not besides:
                link.outbox.append(frame)

    # ---- delivery and the end -------------------------------------------------------------------

    def _reach(self, link: Link, happens: Callable[[], None]) -> None:
        link.inbox.append(happens)
        if not self.dialect.slow:
            self._arrive(link, 1)

    def arrive(self, n: int) -> None:
        if link := self._link(n):
            self._arrive(link, 1 + n // 3)

    def _arrive(self, link: Link, count: int) -> None:
        arrived, link.inbox = link.inbox[:count], link.inbox[count:]
        for happens in arrived:
            happens()

    def deliver(self, n: int) -> None:
        if link := self._link(n):
            self._deliver(link, 1 + n // 3)

    def _deliver(self, link: Link, count: int, *, reacts: bool = True) -> None:
        for frame in link.outbox[:count]:
            self.story.get(link.name, frame)
            self.seen.add(getattr(frame, "id", None) or "")
        arrived, link.outbox = link.outbox[:count], link.outbox[count:]
        for frame in arrived if reacts and link.follows else []:
            if isinstance(frame, StreamResuming) and frame.id not in link.acked:
                self._ack(link, frame.id)

    def _settle(self, link: Link) -> None:
        while link.outbox or link.inbox:
            self._arrive(link, len(link.inbox))
            self._deliver(link, len(link.outbox))

    def epilogue(self) -> Story:
        story = self.story
        story.begin()
        for link in self.links:
            self._arrive(link, len(link.inbox))
        observer = self._open("observer", follows=True)
        while self.active or self.queue:
            self.step()
            self._settle(observer)
        self._settle(observer)
        self._probe(observer)
        self._settle(observer)
        story.record("run", "epilogue", {}, {"phase": "idle"})
        for link in self.links:
            self._settle(link)
        story.record("run", "invoke", {"client": "observer"}, {"do": "get-messages"})
        story.record(
            "run", "ok", {"client": "observer"}, {"do": "get-messages", "messages": list(self.stored)}
        )
        for turn in self.turns:
            self._ack(observer, turn.ids[0])
        self._settle(observer)
        story.record("run", "epilogue", {}, {"phase": "end"})
        return story

    def _link(self, n: int) -> Link | None:
        return self.links[n % len(self.links)] if self.links else None

    def _known_id(self, turn: Turn, n: int) -> str:
        known = [turn.ids[0], *(i for i in turn.ids if i in self.seen)]
        return known[n % len(known)]

    def _turn(self, n: int) -> Turn | None:
        known = [t for t in self.turns if t.arrived or self.dialect.slow]
        return known[n % len(known)] if known else None


ACTIONS = (
    *("step",) * 5,
    *("deliver",) * 4,
    "arrive",
    "arrive",
    "connect",
    "drop",
    "send",
    "send_in_vain",
    "send_again",
    "probe",
    "ack",
    "ack_of_nothing",
    "cancel",
    "fail",
    "stall",
    "crash",
)
"""What may happen next; what is listed several times happens more often."""


def play(dialect: Dialect, actions: Iterable[tuple[str, int]]) -> Story:
    """The history of these actions, with its epilogue."""
    world = World(dialect)
    world.connect(1)
    world.connect(2)
    world.send(0)
    for action, n in actions:
        getattr(world, action)(n)
    return world.epilogue()
