"""The life of a turn, as transcripts: events in, exact effects out (wire protocol section 8)."""

from __future__ import annotations

from typing import Any

import pytest

from reference_world import KIND, NAME, World, assistant, request, stored_user, terminals, texts_of, user
from think_conformance.wire.codec import Unreadable, dumps, loads
from think_conformance.wire.frames import (
    AgentState,
    ChatClear,
    ChatMessages,
    ChatRecovering,
    ChatRequest,
    ChatResponse,
    Identity,
    McpServers,
    RequestInit,
    ResumeNone,
    StateError,
    StreamPending,
    StreamResuming,
    ToolResult,
)
from think_reference.agent import Think
from think_reference.core.effects import (
    AbortWork,
    AddChunk,
    Broadcast,
    CallModel,
    CancelTimer,
    ClearChat,
    DropChunks,
    DropMeta,
    InsertMessage,
    Persist,
    PutMeta,
    PutTurn,
    Replay,
    Send,
    SetTimer,
)
from think_reference.core.events import ModelDelta, ModelFinished, Received, TimerFired
from think_reference.core.ids import answer_id
from think_reference.core.turn import Turn

U1, U2 = user("u1", "hello"), user("u2", "more")
A1, A2 = answer_id(NAME, "r1", 0), answer_id(NAME, "r2", 0)
QUEUED = Turn(id="r1", root="r1", order=0, message_ids=("u1",), anchor="u1")
RUNNING = QUEUED.started(A1)
OPENING = (dumps({"type": "start", "messageId": A1}), '{"type":"start-step"}')
FIRST = ('{"type":"text-start","id":"text-1"}', '{"type":"text-delta","id":"text-1","delta":"one"}')
CLOSING = (
    '{"type":"text-end","id":"text-1"}',
    '{"type":"finish-step"}',
    '{"type":"finish","finishReason":"stop"}',
)


class Prepared(Think):
    """Holds each turn before its stream."""

    prepare_delay_ms = 500


def chunk(seq: int, body: str, request_id: str = "r1") -> ChatResponse:
    return ChatResponse(id=request_id, body=body, done=False, seq=seq)


def terminal(request_id: str, outcome: Any, *message_ids: str, **more: Any) -> ChatResponse:
    fields = {"body": "", "done": True, "message_ids": list(message_ids) or None, **more}
    return ChatResponse(id=request_id, outcome=outcome, **fields)


def play(world: World, *conns: int) -> World:
    for conn in conns:
        world.connect(conn)
    return world


# ---- 8.1 normal turn ------------------------------------------------------------------------


def test_a_request_is_stored_told_to_the_others_started_and_asked() -> None:
    world = play(World(), 1, 2)
    assert world.send(1, "r1", U1) == [
        Persist((InsertMessage(0, stored_user("u1", "hello")), PutTurn(QUEUED))),
        Broadcast(ChatMessages(messages=[stored_user("u1", "hello")]), frozenset({1})),
        Persist((PutTurn(RUNNING),)),
        Persist((AddChunk("r1", 0, OPENING[0]), AddChunk("r1", 1, OPENING[1]))),
        Broadcast(chunk(0, OPENING[0])),
        Broadcast(chunk(1, OPENING[1])),
        CallModel("r1", [{"role": "user", "content": "hello"}]),
    ]


def test_what_the_model_says_is_stored_before_it_is_shown() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    assert world.say("one") == [
        Persist((AddChunk("r1", 2, FIRST[0]), AddChunk("r1", 3, FIRST[1]))),
        Broadcast(chunk(2, FIRST[0])),
        Broadcast(chunk(3, FIRST[1])),
    ]
    assert world.on(ModelDelta("r1", "text", "")) == []
    assert world.on(ModelDelta("r9", "text", "stray")) == []


def test_a_whole_answer_ends_in_one_transaction_then_chunk_transcript_terminal() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    world.say("one")
    answer = assistant(A1, "one")
    assert world.finish() == [
        Persist((PutTurn(RUNNING.ended("completed")), InsertMessage(1, answer), DropChunks("r1"))),
        *[Broadcast(chunk(4 + n, body)) for n, body in enumerate(CLOSING)],
        Broadcast(ChatMessages(messages=[stored_user("u1", "hello"), answer])),
        Broadcast(terminal("r1", "completed", "u1")),
    ]
    assert world.on(ModelFinished("r1", "stop")) == [], "an ended turn does not end again"


def test_an_answer_without_a_word_is_still_an_answer() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    world.finish()
    assert world.agent.messages[1] == {"id": A1, "role": "assistant", "parts": [{"type": "step-start"}]}
    assert terminals(world.frames[1]) == [("r1", "completed")]


# ---- queue ----------------------------------------------------------------------------------


def test_an_overlapping_turn_waits_and_sees_only_what_is_its_own() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    world.say("one")
    admitted = world.send(1, "r2", U1, assistant(A1, "on", "streaming"), U2)
    assert not [e for e in admitted if isinstance(e, CallModel)]
    assert texts_of(world.agent.messages) == ["u1: hello", "u2: more"], "the echo is not stored (WIRE-61)"
    world.finish()
    assert world.called[-1].messages == [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "more"},
    ]
    world.say("two")
    world.finish()
    assert texts_of(world.agent.messages) == ["u1: hello", f"{A1}: one", "u2: more", f"{A2}: two"]
    assert terminals(world.frames[1]) == [("r1", "completed"), ("r2", "completed")]


def test_a_resent_request_is_never_a_second_turn() -> None:
    world = play(World(), 1, 2)
    world.send(1, "r1", U1)
    world.say("one")
    world.send(2, "r2", U2)
    bodies = (*OPENING, *FIRST)
    complete = ChatResponse(id="r1", body="", done=False, replay=True, replay_complete=True)
    assert world.send(2, "r1", U1) == [Replay(2, "r1", bodies), Send(2, complete)]
    assert world.send(1, "r2", U2) == [Send(1, StreamPending(id="r2"))]
    world.finish()
    world.finish()
    told = terminal("r1", "completed", "u1", replay=True)
    assert world.send(1, "r1", U1) == [Send(1, told)]
    assert world.on(Received(1, Unreadable("bad-field", "x", "cf_agent_use_chat_request", "r1"))) == [
        Send(1, told)
    ]
    assert len(world.called) == 2


def test_a_full_queue_refuses_and_stores_nothing() -> None:
    world = play(World(), 1)
    for n in range(300):
        world.send(1, f"r{n}", user(f"u{n}"))
    refused = [f for f in world.frames[1] if isinstance(f, ChatResponse) and f.error]
    assert len(refused) == 300 - 257
    assert refused[0] == ChatResponse(
        id="r257", body="Bad request: too many requests are waiting", done=True, error=True, outcome="error"
    )
    assert len(world.agent.messages) == 257


# ---- bad requests ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (ChatRequest(id="r1", init=RequestInit(method="GET", body="{}")), "`init.method` must be POST"),
        (ChatRequest(id="r1", init=RequestInit(method="POST")), "`init.body` is missing"),
        (Unreadable("bad-field", "no good", "cf_agent_use_chat_request", "r1"), "no good"),
    ],
)
def test_a_bad_request_gets_one_terminal_and_runs_nothing(frame: Any, why: str) -> None:
    world = play(World(), 1, 2)
    refusal = ChatResponse(id="r1", body=f"Bad request: {why}", done=True, error=True, outcome="error")
    assert world.on(Received(1, frame)) == [Send(1, refusal)]
    assert world.rows.turns == []


def test_an_id_refused_once_can_be_used_for_a_good_request() -> None:
    world = play(World(), 1)
    world.on(Received(1, ChatRequest(id="r1", init=RequestInit(method="POST", body="{"))))
    world.send(1, "r1", U1)
    world.finish()
    assert terminals(world.frames[1]) == [("r1", "error"), ("r1", "completed")]


def test_a_message_id_of_another_role_is_refused() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    world.send(1, "r2", user(A1, "stolen"))
    assert terminals(world.frames[1]) == [("r2", "error")]
    world.finish()
    assert texts_of(world.agent.messages) == ["u1: hello", f"{A1}: "]


def test_an_answer_never_takes_the_id_of_a_stored_message() -> None:
    world = play(World(), 1)
    world.send(1, "r1", user(A1, "first"))
    world.say("x")
    world.finish()
    ids = [m["id"] for m in world.agent.messages]
    assert ids == [A1, answer_id(NAME, "r1", 0, 1)]


@pytest.mark.parametrize("why", ["not-json", "unknown-type", "no-type"])
def test_other_unreadable_frames_get_no_answer(why: Any) -> None:
    world = play(World(), 1)
    assert world.on(Received(1, Unreadable(why, "x", "foo", "r1"))) == []
    assert world.on(Received(1, ChatMessages(messages=[user("u9")]))) == []
    assert world.on(Received(1, ToolResult(tool_call_id="c", tool_name="t"))) == []
    assert world.on(Received(7, request("r1", U1))) == [], "nobody is connected as 7"


# ---- empty list, regenerate, body -----------------------------------------------------------


def test_an_empty_list_runs_on_what_is_stored_and_names_no_messages() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    world.finish()
    world.send(1, "r2")
    assert world.called[-1].messages == [{"role": "user", "content": "hello"}]
    world.finish()
    assert world.frames[1][-1] == terminal("r2", "completed")


def test_regenerate_replaces_the_answer() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    world.say("old")
    world.finish()
    world.send(1, "r2", U1, trigger="regenerate-message")
    assert texts_of(world.agent.messages) == ["u1: hello"]
    assert world.called[-1].messages == [{"role": "user", "content": "hello"}]
    world.say("new")
    world.finish()
    assert texts_of(world.agent.messages) == ["u1: hello", f"{A2}: new"]
    assert world.rows.messages == world.agent.messages


def test_custom_fields_are_kept_with_the_turn_and_its_successor() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1, tone="kind", clientTools=[])
    world.crash()
    assert [t.body for t in world.rows.turns] == [{"tone": "kind"}, {"tone": "kind"}]


# ---- 8.5 failures ---------------------------------------------------------------------------


def test_an_error_in_the_models_stream_is_told_in_two_frames_around_the_transcript() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    world.say("one")
    answer = assistant(A1, "one")
    failed = RUNNING.ended("error", "overloaded")
    assert world.fail("overloaded", in_band=True) == [
        Persist((PutTurn(failed), InsertMessage(1, answer), PutMeta("failure", "r1"))),
        Broadcast(ChatResponse(id="r1", body="overloaded", done=False, error=True, message_ids=["u1"])),
        Broadcast(ChatMessages(messages=[stored_user("u1", "hello"), answer])),
        Broadcast(terminal("r1", "error", "u1")),
    ]


def test_a_broken_call_is_told_in_one_frame_and_without_a_part_stores_nothing() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    assert world.fail("gone") == [
        Persist((PutTurn(RUNNING.ended("error", "gone")), PutMeta("failure", "r1"))),
        Broadcast(terminal("r1", "error", "u1", body="gone", error=True)),
    ]


def test_the_failure_is_replayed_to_everyone_until_a_newer_turn_is_accepted() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    world.say("one")
    world.fail("gone")
    for conn in (2, 3):
        world.connect(conn)
        assert world.probe(conn) == [Send(conn, StreamResuming(id="r1", probe_id="p"))]
        assert world.ack(conn, "r1") == [
            Replay(conn, "r1", (*OPENING, *FIRST)),
            Send(conn, terminal("r1", "error", "u1", body="gone", error=True)),
        ]
    world.crash()
    world.connect(4)
    assert world.probe(4) == [Send(4, StreamResuming(id="r1", probe_id="p"))], "it survives a restart"
    world.send(4, "r2", U2)
    assert "r1" not in world.rows.chunks
    world.finish()
    assert world.probe(4) == [Send(4, ResumeNone(reason="idle", probe_id="p"))]
    assert world.ack(4, "r1") == [
        Send(4, terminal("r1", "error", "u1", body="gone", error=True, replay=True))
    ], "the outcome itself is never forgotten"


# ---- 8.6 stop -------------------------------------------------------------------------------


def test_stop_hangs_up_keeps_the_partial_and_tells_one_aborted_terminal() -> None:
    world = play(World(), 1, 2)
    world.send(1, "r1", U1)
    world.say("one")
    answer = assistant(A1, "one")
    assert world.cancel(2, "r1") == [
        AbortWork("r1"),
        Persist((PutTurn(RUNNING.ended("aborted")), InsertMessage(1, answer), DropChunks("r1"))),
        Broadcast(ChatMessages(messages=[stored_user("u1", "hello"), answer])),
        Broadcast(terminal("r1", "aborted", "u1")),
    ]
    assert world.cancel(2, "r1") == []
    assert world.cancel(2, "nobody") == []
    assert world.on(ModelDelta("r1", "text", "late")) == []


def test_a_queued_request_can_be_stopped_and_its_message_stays() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    world.send(1, "r2", U2)
    queued = Turn(id="r2", root="r2", order=1, message_ids=("u2",), anchor="u2")
    assert world.cancel(1, "r2") == [
        Persist((PutTurn(queued.ended("aborted")),)),
        Broadcast(terminal("r2", "aborted", "u2")),
    ]
    world.finish()
    assert len(world.called) == 1
    assert [m["id"] for m in world.agent.messages] == ["u1", A1, "u2"]


def test_losing_every_socket_stops_nothing() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    before = world.rows
    world.disconnect(1)
    assert world.rows == before
    assert list(world.calls) == ["r1"]


# ---- 8.4 preparation ------------------------------------------------------------------------


def test_a_prepared_turn_is_pending_until_its_timer_opens_the_stream() -> None:
    world = play(World(Prepared), 1)
    started = world.send(1, "r1", U1)
    assert started[-1] == SetTimer("r1", world.now + 0.5)
    transcript = ChatMessages(messages=[stored_user("u1", "hello")], connect=True)
    assert world.connect(2)[:2] == [StreamPending(id="r1"), transcript]
    assert world.probe(2) == [Send(2, StreamPending(id="r1", probe_id="p"))]
    opened = world.fire()
    assert opened[0] == Send(2, StreamResuming(id="r1"))
    assert opened[2] == Broadcast(chunk(0, OPENING[0]), frozenset({2}))
    assert world.on(TimerFired("r1")) == []


def test_stopping_a_prepared_turn_releases_who_waits_for_it() -> None:
    world = play(World(Prepared), 1)
    world.send(1, "r1", U1)
    world.probe(1)
    assert world.cancel(1, "r1") == [
        CancelTimer("r1"),
        Persist((PutTurn(RUNNING.ended("aborted")), DropChunks("r1"))),
        Broadcast(terminal("r1", "aborted", "u1")),
        Send(1, ResumeNone()),
    ]


# ---- 8.9 recovery ---------------------------------------------------------------------------


def test_a_recovering_turn_is_announced_to_newcomers_and_its_end_to_all() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    world.say("one")
    world.crash()
    successor = world.open_call
    assert world.connect(2)[:2] == [
        StreamResuming(id=successor),
        ChatRecovering(recovering=True, id="r1"),
    ]
    assert world.ack(2, "r1") == [
        Send(2, terminal("r1", "recovering", "u1", replay=True)),
        Send(2, StreamResuming(id=successor)),
    ]
    world.ack(2, successor)
    world.say(" two")
    ended = world.finish()
    assert ended[-2:] == [
        Broadcast(terminal(successor, "completed", "u1", continuation=True)),
        Broadcast(ChatRecovering(recovering=False, id="r1")),
    ]
    assert all(f.continuation for f in world.frames[2] if isinstance(f, ChatResponse) and f.id == successor)
    assert world.ack(2, "r1") == [Send(2, terminal("r1", "completed", "u1", replay=True))]


@pytest.mark.parametrize("named", ["root", "successor"])
def test_either_id_of_a_recovering_turn_stops_it(named: str) -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    world.crash()
    world.connect(2)
    successor = world.open_call
    world.cancel(2, "r1" if named == "root" else successor)
    assert terminals(world.frames[2]) == [(successor, "aborted")]
    assert world.frames[2][-1] == ChatRecovering(recovering=False, id="r1")
    world.crash()
    assert world.calls == {}


def test_a_recovery_older_than_a_quarter_of_an_hour_is_not_announced() -> None:
    world = play(World(), 1)
    world.send(1, "r1", U1)
    world.crash()
    world.now += 899
    assert ChatRecovering(recovering=True, id="r1") in world.connect(2)
    world.now += 2
    assert ChatRecovering(recovering=True, id="r1") not in world.connect(3)


# ---- 8.10 clear -----------------------------------------------------------------------------


def test_clear_ends_everything_and_tells_it() -> None:
    world = play(World(), 1, 2)
    world.send(1, "r1", U1)
    world.say("one")
    world.send(2, "r2", U2)
    assert world.clear(1) == [
        AbortWork("r1"),
        Persist((ClearChat(), DropMeta("failure"))),
        Broadcast(ChatClear(), frozenset({1})),
        Broadcast(terminal("r1", "aborted", "u1")),
        Broadcast(terminal("r2", "skipped", "u2")),
    ]
    assert world.agent.messages == []
    assert world.probe(1) == [Send(1, ResumeNone(reason="idle", probe_id="p"))]
    assert world.send(1, "r1", U1)[-1] == CallModel("r1", [{"role": "user", "content": "hello"}])


def test_clear_releases_who_waits() -> None:
    world = play(World(Prepared), 1)
    world.send(1, "r1", U1)
    world.probe(1)
    cleared = world.clear(1)
    assert cleared[0] == CancelTimer("r1")
    assert cleared[-1] == Send(1, ResumeNone())


# ---- the agent base -------------------------------------------------------------------------


def test_a_newcomer_is_greeted_with_the_chat_then_the_base() -> None:
    mcp = McpServers(mcp={"prompts": [], "resources": [], "servers": {}, "tools": []})
    world = World()
    assert world.connect(1) == [
        ChatMessages(messages=[], connect=True),
        Identity(name=NAME, agent=KIND),
        mcp,
    ]
    changed = world.on(Received(1, AgentState(state={"n": 1})))
    assert changed == [
        Persist((PutMeta("state", {"n": 1}),)),
        Broadcast(AgentState(state={"n": 1}), frozenset({1})),
    ]
    world.on(Received(1, AgentState(state=None)))
    world.crash()
    assert world.connect(2)[1:] == [
        Identity(name=NAME, agent=KIND, state_follows=True),
        AgentState(state=None),
        mcp,
    ]


def test_a_state_nested_without_end_is_refused() -> None:
    world = play(World(), 1)
    deep = loads("[" * 200 + "]" * 200)
    assert world.on(Received(1, AgentState(state=deep))) == [
        Send(1, StateError(error="State update rejected"))
    ]


def test_metadata_of_the_server_cannot_be_forged() -> None:
    world = play(World(), 1)
    forged = {**U1, "metadata": {"channel": "voice", "turnMetadata": 1, "mood": "good"}}
    world.send(1, "r1", loads(dumps(forged)))
    assert world.agent.messages[0]["metadata"] == {"mood": "good", "channel": "web"}
