"""Any interleaving of clients, model and crashes keeps the promises of the protocol."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reference_world import World, responses, user
from think_conformance.wire.chunks import MessageBuilder
from think_conformance.wire.codec import loads
from think_conformance.wire.frames import ChatResponse, Message, ServerFrame, StreamResuming
from think_reference.agent import Think
from think_reference.core.application import Tool
from think_reference.core.prompt import GO_ON

CLIENTS = ("a", "b")
CLIENT = st.sampled_from(CLIENTS)
TURN = st.sampled_from(["r1", "r2", "r3"])


class Prepared(Think):
    """Holds each turn before its stream; gives up soon."""

    prepare_delay_ms = 500
    max_attempts = 2


class Plain(Think):
    """Gives up soon."""

    max_attempts = 2


async def _never(call_id: str, given: dict[str, Any]) -> None:
    raise AssertionError("the core runs nothing")


class Tooled(Plain):
    """Offers a tool."""

    tools = {"look": Tool("Looks.", {"type": "object"}, _never)}


class Interleavings(RuleBasedStateMachine):
    """Each rule is one thing that can happen; the invariants hold after every one. Two clients
    always come back; `acks` are the answers each connection asked for."""

    @initialize(application=st.sampled_from([Plain, Tooled, Prepared]))
    def start(self, application: type[Think]) -> None:
        self.world = World(application)
        self.acks: dict[int, list[str]] = {}
        self.conns: dict[str, int] = {}
        for client in CLIENTS:
            self._connect(client)
        self.send("a", "r1", None)

    def _connect(self, client: str) -> None:
        conn = len(self.acks) + 1
        self.conns[client], self.acks[conn] = conn, []
        self.world.connect(conn)

    @rule(client=CLIENT)
    def reconnect(self, client: str) -> None:
        self.world.disconnect(self.conns[client])
        self._connect(client)

    @rule(client=CLIENT, turn=TURN, echo=st.sampled_from([None, "server", "own"]))
    def send(self, client: str, turn: str, echo: str | None) -> None:
        """`echo`: the list repeats the conversation, the streaming answer included, with answers under
        the server's ids or under made-up ones (WIRE-61)."""
        conn = self.conns[client]
        if turn in {t.id for t in self.world.rows.turns}:
            self.acks[conn].append(turn)
        own = user(f"u-{turn}")
        known = [m for m in self._conversation() if m["id"] != own["id"]] if echo else []
        if echo == "own":
            known = [m if m["role"] == "user" else {**m, "id": f"own-{m['id'][:8]}"} for m in known]
        self.world.send(conn, turn, *known, own)

    def _conversation(self) -> list[Message]:
        """The stored messages, with the streaming answer where a client has it: at the end."""
        messages = {m["id"]: m for m in self.world.agent.messages}
        for turn in self.world.rows.turns:
            if turn.state == "running" and turn.message_id is not None:  # empty, if nothing came yet
                base = messages.pop(turn.message_id, None)
                builder = MessageBuilder(turn.message_id, base)
                for body in self.world.rows.chunks.get(turn.id, []):
                    builder.apply(loads(body))
                messages[turn.message_id] = builder.message
        return list(messages.values())

    @rule(client=CLIENT)
    def probe(self, client: str) -> None:
        self.world.probe(self.conns[client])

    @rule(client=CLIENT)
    def ack_the_last_offer(self, client: str) -> None:
        conn = self.conns[client]
        offers = [f.id for f in self.world.frames[conn] if isinstance(f, StreamResuming)]
        if offers:
            self._ack(conn, offers[-1])

    @rule(client=CLIENT, data=st.data())
    def ack_anything(self, client: str, data: st.DataObject) -> None:
        self._ack(self.conns[client], data.draw(st.sampled_from(self._known_ids())))

    def _ack(self, conn: int, request_id: str) -> None:
        self.acks[conn].append(request_id)
        self.world.ack(conn, request_id)

    def _known_ids(self) -> list[str]:
        return ["nobody", *(t.id for t in self.world.rows.turns)]

    @rule(client=CLIENT, data=st.data())
    def cancel(self, client: str, data: st.DataObject) -> None:
        self.world.cancel(self.conns[client], data.draw(st.sampled_from(self._known_ids())))

    @precondition(lambda self: self.world.calls)
    @rule(text=st.text("ab", min_size=1, max_size=3))
    def say(self, text: str) -> None:
        self.world.say(text)

    @precondition(lambda self: self.world.calls)
    @rule(how=st.sampled_from(["finish", "throw", "in-band"]))
    def end(self, how: str) -> None:
        if how == "finish":
            self.world.finish()
        else:
            self.world.fail("broken", in_band=how == "in-band")

    @precondition(lambda self: self.world.calls)
    @rule(call_id=st.sampled_from(["c1", "c2"]), tool=st.sampled_from(["look", "fly"]))
    def ask_tool(self, call_id: str, tool: str) -> None:
        self.world.ask_tool(call_id, tool, "{", "}")
        self.world.finish("tool-calls")

    @precondition(lambda self: self.world.tools)
    @rule(well=st.booleans())
    def tool_ends(self, well: bool) -> None:
        if well:
            self.world.returned({"seen": 1})
        else:
            self.world.raised("broken")

    @precondition(lambda self: self.world.timers)
    @rule()
    def fire(self) -> None:
        self.world.fire()

    @rule(after_s=st.sampled_from([1.0, 40.0]))
    def crash(self, after_s: float) -> None:
        self.world.crash(after_s=after_s)
        for client in CLIENTS:
            self._connect(client)

    @rule(data=st.data())
    def any_prefix_of_the_journal_loads(self, data: st.DataObject) -> None:
        """A crash at any transaction leaves rows from which every turn still ends."""
        rows = data.draw(st.sampled_from(self.world.history))
        world = World(Plain, rows=rows)
        while world.calls:
            world.say("z")
            world.finish()
        assert world.ran == []
        assert {t.state for t in world.rows.turns} <= {"ended"}
        assert {t.id for t in rows.turns} <= {t.id for t in world.rows.turns}
        assert [m for m in rows.messages if m["role"] == "user"] == [
            m for m in world.agent.messages if m["role"] == "user"
        ]

    @invariant()
    def the_agent_holds_what_the_journal_holds(self) -> None:
        assert self.world.agent.messages == self.world.rows.messages
        assert sum(t.state == "running" for t in self.world.rows.turns) <= 1

    @invariant()
    def no_tool_call_runs_twice(self) -> None:
        ran = [t.call_id for t in self.world.ran]
        assert len(ran) == len(set(ran))

    @invariant()
    def an_answer_stands_alone_behind_its_own_message(self) -> None:
        """However the sends overlapped and whatever they echoed (WIRE-61)."""
        roles = [m["role"] for m in self.world.agent.messages]
        assert ("assistant", "assistant") not in pairwise(roles)
        users = [m["id"] for m in self.world.agent.messages if m["role"] == "user"]
        assert len(users) == len(set(users))
        anchors = {t.message_id: t.anchor for t in self.world.rows.turns}
        for before, message in pairwise(self.world.agent.messages):
            if message["role"] == "assistant":
                assert anchors[message["id"]] == before["id"]

    @invariant()
    def each_model_call_is_asked_with_the_message_of_its_own_turn(self) -> None:
        """It is the last one a client sent, and in the first call the last of all (WIRE-62)."""
        first: set[str] = set()
        for asked in self.world.called:
            root = next(t.root for t in self.world.rows.turns if t.id == asked.request_id)
            sent = [m["content"] for m in asked.messages if m["role"] == "user" and m["content"] != GO_ON]
            assert sent[-1] == f"u-{root}"
            if root not in first:
                assert asked.messages[-1]["content"] == f"u-{root}"
            first.add(root)

    @invariant()
    def at_most_one_terminal_per_request_besides_asked_for(self) -> None:
        for conn, frames in (self.world.frames | self.world.gone).items():
            ended = [f for f in responses(frames) if f.done]
            for request_id in {f.id for f in ended}:
                told = [f.outcome for f in ended if f.id == request_id]
                assert len(told) <= 1 + self.acks[conn].count(request_id)
                assert len({outcome for outcome in told if outcome not in (None, "recovering")}) <= 1

    @invariant()
    def seq_has_no_gap_on_any_connection(self) -> None:
        for frames in (self.world.frames | self.world.gone).values():
            expected: dict[str, int] = {}
            for frame in responses(frames):
                if frame.seq is None:
                    continue
                wanted = (0, expected.get(frame.id, 0)) if frame.replay else (expected.get(frame.id, 0),)
                assert frame.seq in wanted
                expected[frame.id] = frame.seq + 1

    @invariant()
    def replay_and_live_tail_together_are_the_log(self) -> None:
        for frames in self.world.frames.values():
            for request_id, log in self.world.rows.chunks.items():
                shown = _latest_pass(frames, request_id)
                if shown and not _is_withheld(frames, request_id):
                    assert shown == log
                else:
                    assert shown == log[: len(shown)]

    @invariant()
    def no_text_is_lost(self) -> None:
        stored = "".join(p["text"] for m in self.world.agent.messages for p in m["parts"] if "text" in p)
        for log in self.world.rows.chunks.values():
            builder = MessageBuilder("m")
            for body in log:
                builder.apply(loads(body))
            stored += "".join(p.get("text", "") for p in builder.message["parts"])
        for frames in (self.world.frames | self.world.gone).values():
            for request_id in {f.id for f in responses(frames)}:
                bodies = [loads(body) for body in _latest_pass(frames, request_id)]
                assert "".join(c["delta"] for c in bodies if c["type"] == "text-delta") in stored


def _latest_pass(frames: list[ServerFrame], request_id: str) -> list[str]:
    """The chunks of one request as its client holds them: by `seq`, the first of each."""
    held: dict[int, str] = {}
    for frame in responses(frames):
        if frame.id == request_id and frame.seq is not None:
            held.setdefault(frame.seq, frame.body)
    return [held[seq] for seq in sorted(held)]


def _is_withheld(frames: list[ServerFrame], request_id: str) -> bool:
    """Whether the last word on this stream is an offer that was not followed by a replay."""
    words = [
        isinstance(f, StreamResuming)
        for f in frames
        if getattr(f, "id", None) == request_id
        and isinstance(f, StreamResuming | ChatResponse)
        and (isinstance(f, StreamResuming) or f.replay_complete)
    ]
    return bool(words) and words[-1]


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
