"""Histories written by hand: a small language in which a test tells what was observed, in order.

Every method appends records and returns the index of the last one, so that a test can point at it.
Names are short and fixed: turn `t1` is request `r1` with the user message `u1` and the answer `a1`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from think_conformance.checkers.base import load
from think_conformance.history.op import History, Record
from think_conformance.history.views import View
from think_conformance.wire.codec import dumps
from think_conformance.wire.frames import (
    CancelRequest,
    ChatMessages,
    ChatRequest,
    ChatResponse,
    Frame,
    Message,
    RequestInit,
    ResumeAck,
    ResumeNone,
    ResumeRequest,
    StreamPending,
    StreamResuming,
)

ALL = ("core", "resume", "control", "recovery")
MARKER = "case/t{0}"


def user(number: int | str = 1, ident: str | None = None) -> Message:
    """The user message of a turn, with its marker."""
    text = f"question {number} [[{MARKER.format(number)}]]"
    return {"id": ident or f"u{number}", "role": "user", "parts": [{"type": "text", "text": text}]}


def answer(text: str, ident: str = "a1") -> Message:
    """A stored answer."""
    return {"id": ident, "role": "assistant", "parts": [{"type": "text", "text": text, "state": "done"}]}


class Story:
    """A history in the making. `text` of a case: `history`."""

    def __init__(
        self,
        *,
        exercises: Iterable[str] = (),
        claims: Iterable[str] = ALL,
        facts: bool = False,
        plan: dict[str, Any] | None = None,
    ) -> None:
        self.history: History = []
        self._passed_s = 0.0
        self._opened: dict[str, int] = {}
        self._clients: dict[str, tuple[str, int]] = {}
        self.epoch = 1
        self._calls: dict[str, int] = {}
        heading = {
            "case": "a-case",
            "exercises": list(exercises),
            "claims": list(claims),
            "facts": facts,
            "plan": {"version": 1, **(plan or {})},
        }
        self.record("run", "case", {}, heading)
        self.record("process", "process", {"epoch": 1}, {"action": "ready", "pid": 1})

    def record(self, source: Any, kind: Any, ids: dict[str, Any] | None = None, payload: Any = None) -> int:
        index = len(self.history)
        at = index / 10 + self._passed_s
        self.history.append(Record(index, at, source, kind, ids or {}, payload))
        return index

    def passes(self, seconds: float) -> None:
        """Time goes by in which nothing is observed."""
        self._passed_s += seconds

    # ---- connections ----------------------------------------------------------------------------

    def open(self, client: str = "a") -> str:
        """Opens the next connection of a client and returns its name."""
        self._opened[client] = self._opened.get(client, 0) + 1
        name = f"{client}.{self._opened[client]}"
        self._clients[name] = (client, self.epoch)
        self.record("client", "dial", self._ids(name))
        self.record("client", "open", self._ids(name), {})
        return name

    def close(self, *names: str, code: int = 1006, by: str = "peer") -> int:
        for name in names:
            self.record("client", "close", self._ids(name), {"code": code, "reason": "", "by": by})
        return len(self.history) - 1

    def out(self, name: str, frame: Frame) -> int:
        return self.record("client", "frame-out", self._ids(name), {"frame": msgspec.to_builtins(frame)})

    def get(self, names: str | Iterable[str], frame: Frame) -> int:
        for name in [names] if isinstance(names, str) else names:
            payload = {"frame": msgspec.to_builtins(frame), "size": 1}
            self.record("client", "frame-in", self._ids(name), payload)
        return len(self.history) - 1

    def _ids(self, name: str) -> dict[str, Any]:
        client, epoch = self._clients[name]
        return {"client": client, "connection": name, "epoch": epoch}

    # ---- frames a client sends ------------------------------------------------------------------

    def send(self, name: str, number: int = 1, *, ident: str | None = None, **body: Any) -> int:
        """The chat request of a turn; the model has not been asked yet."""
        listed = body.pop("messages", [user(number)])
        init = RequestInit("POST", dumps({"messages": listed, **body}))
        return self.out(name, ChatRequest(id=ident or f"r{number}", init=init))

    def cancel(self, name: str, request: str = "r1") -> int:
        return self.out(name, CancelRequest(id=request))

    def ack(self, name: str, request: str = "r1") -> int:
        return self.out(name, ResumeAck(id=request))

    def probe(self, name: str, probe: str = "p1") -> int:
        return self.out(name, ResumeRequest(probe_id=probe))

    # ---- frames the target sends ----------------------------------------------------------------

    def offer(self, names: str | Iterable[str], request: str = "r1", probe: str | None = None) -> int:
        return self.get(names, StreamResuming(id=request, probe_id=probe))

    def pending(self, names: str | Iterable[str], request: str = "r1", probe: str | None = None) -> int:
        return self.get(names, StreamPending(id=request, probe_id=probe))

    def idle(self, names: str | Iterable[str], probe: str | None = "p1") -> int:
        return self.get(names, ResumeNone(reason="idle", probe_id=probe))

    def start(self, names: str | Iterable[str], request: str = "r1", message: str = "a1", **more: Any) -> int:
        """The first chunk, seq 0."""
        body = {"type": "start"} if more.get("continuation") else {"type": "start", "messageId": message}
        return self.chunk(names, body, request, **{"seq": 0, **more})

    def words(
        self, names: str | Iterable[str], *texts: str, request: str = "r1", first: int | None = 1, **more: Any
    ) -> int:
        """Text deltas, the first with seq `first`; None: without seq."""
        for offset, text in enumerate(texts):
            body = {"type": "text-delta", "id": "x", "delta": text}
            self.chunk(names, body, request, seq=None if first is None else first + offset, **more)
        return len(self.history) - 1

    def chunk(
        self, names: str | Iterable[str], body: dict[str, Any], request: str = "r1", **more: Any
    ) -> int:
        return self.get(names, ChatResponse(id=request, body=dumps(body), done=False, **more))

    def complete_replay(self, names: str | Iterable[str], request: str = "r1") -> int:
        frame = ChatResponse(id=request, body="", done=False, replay=True, replay_complete=True)
        return self.get(names, frame)

    def terminal(
        self, names: str | Iterable[str], request: str = "r1", outcome: Any = "completed", **more: Any
    ) -> int:
        """`outcome` None is left out; `messages` are the messageIds."""
        ids = more.pop("messages", ["u1"] if outcome is not None else None)
        frame = ChatResponse(id=request, body="", done=True, outcome=outcome, message_ids=ids, **more)
        return self.get(names, frame)

    def failure(self, names: str | Iterable[str], request: str = "r1", *, done: bool, **more: Any) -> int:
        """An error text: shape B when `done`, else the first frame of shape A."""
        return self.get(names, ChatResponse(id=request, body="it broke", done=done, error=True, **more))

    def transcript(self, names: str | Iterable[str], *messages: Message, connect: bool = False) -> int:
        return self.get(names, ChatMessages(messages=list(messages), connect=connect))

    # ---- what happens around the target ---------------------------------------------------------

    def call(self, number: int = 1, *, messages: list[Any] | None = None) -> int:
        """The model is asked for a turn."""
        marker = MARKER.format(number)
        self._calls[marker] = self._calls.get(marker, 0) + 1
        payload = {"messages": messages or [{"role": "user", "content": f"[[{marker}]]"}]}
        return self.record("model", "model-call", self._call_ids(number), payload)

    def gate(self, number: int = 1, gate: str = "g") -> int:
        return self.record("model", "model-gate", {**self._call_ids(number), "gate": gate}, {})

    def call_ends(self, number: int = 1, how: str = "done") -> int:
        return self.record("model", "model-end", self._call_ids(number), {"how": how})

    def _call_ids(self, number: int) -> dict[str, Any]:
        marker = MARKER.format(number)
        return {"marker": marker, "call": self._calls[marker]}

    def kill(self, *open_names: str, calls: Iterable[int] = ()) -> int:
        """SIGKILL; the connections end, the model calls of these turns are hung up on."""
        killed = self.record("process", "process", {"epoch": self.epoch}, {"action": "kill", "pid": 1})
        self.close(*open_names)
        for number in calls:
            self.call_ends(number, "aborted")
        return killed

    def restart(self) -> int:
        self.epoch += 1
        return self.record("process", "process", {"epoch": self.epoch}, {"action": "ready", "pid": 2})

    def operation(self, do: str, kind: str = "invoke", number: int = 0, **payload: Any) -> int:
        return self.record("run", kind, {"operation": number}, {"do": do, **payload})

    def gives_up(self, after_s: float = 7.0) -> int:
        """The run waited for something in vain, that long."""
        self.passes(after_s)
        return self.record("run", "info", {}, {"reason": "operation 3 (wait) was not reached"})

    def fault(
        self,
        name: str = "f",
        *do: Any,
        leg: str = "client",
        fires_on: str | None = None,
        outcome: str = "done",
    ) -> int:
        """A fault that is planned, and fires when `fires_on` names a connection."""
        self.record("proxy", "fault-planned", {"fault": name}, {"leg": leg, "when": {}, "do": list(do)})
        if fires_on is not None:
            ids = {"fault": name, "token": f"{name}#1"}
            self.record("proxy", "fault-fired", ids | {"connection": fires_on}, {"leg": leg, "ordinal": 3})
            self.record("proxy", "fault-done", ids, {"did": [], "outcome": outcome})
        return len(self.history) - 1

    # ---- ends -----------------------------------------------------------------------------------

    def epilogue(self, *messages: Message, acks: Iterable[str] = (), idle: bool = True) -> Story:
        """The whole epilogue: `messages` is the transcript read; each ack gets an empty answer."""
        self.begin()
        name = self.observe()
        if idle:
            self.idle(name, "epilogue-1")
        return self.end(name, *messages, acks=acks, idle=idle)

    def begin(self) -> int:
        self.record("run", "epilogue", {}, {"phase": "begin"})
        return self.record("run", "heal")

    def observe(self) -> str:
        name = self.open("observer")
        self.probe(name, "epilogue-1")
        return name

    def end(self, name: str, *messages: Message, acks: Iterable[str] = (), idle: bool = True) -> Story:
        phase = {"phase": "idle" if idle else "deadline"}
        if not any(record.payload == phase for record in self.history):
            self.record("run", "epilogue", {}, phase)
        asked = {"client": "observer"}
        self.record("run", "invoke", asked, {"do": "get-messages"})
        self.record("run", "ok", asked, {"do": "get-messages", "messages": list(messages)})
        for request in acks:
            self.ack(name, request)
            self.terminal(name, request, None, replay=True)
        self.record("run", "epilogue", {}, {"phase": "end"})
        return self


def plain_turn(story: Story, names: list[str], number: int = 1, text: str = "w1 ") -> None:
    """A whole turn as in section 8.1: asked on the first connection, seen on all of them."""
    request, message = f"r{number}", f"a{number}"
    story.send(names[0], number)
    story.transcript(names[1:], user(number))
    story.call(number)
    story.start(names, request, message)
    story.words(names, text, request=request)
    story.call_ends(number)
    story.transcript(names, user(number), answer(text, message))
    story.terminal(names, request, messages=[f"u{number}"])


def renumbered(records: Iterable[Record]) -> History:
    """The same records with indexes without gaps, for a history that was cut or bent."""
    return [msgspec.structs.replace(record, index=index) for index, record in enumerate(records)]


def held_turn(**case: Any) -> tuple[Story, str, str]:
    """A turn whose model is held at a gate; `a` asked, `b` looks on."""
    story = Story(**case)
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.call()
    story.start([a, b])
    story.words([a, b], "w1 ")
    story.gate()
    return story, a, b


def stopped(outcome: str | None, *, hangs_up: bool = True) -> Story:
    """A held turn that is stopped: the gate is never opened by the plan, nothing but the stop can end it."""
    story, a, b = held_turn()
    story.cancel(b)
    if hangs_up:
        story.call_ends(how="aborted")
    if outcome:
        story.terminal([a, b], outcome=outcome)
    else:
        story.gives_up()
    return story.epilogue(user(), answer("w1 "))


def said(requirement: str, story: Story) -> str:
    """What the check of a requirement says of a story."""
    return load()[requirement](View(story.history)).said
