"""The resume handshake: each decision of WIRE-101, what an ack gets, who gets live chunks."""

from __future__ import annotations

import pytest

from reference_world import World, responses, terminals, text_shown, user
from think_conformance.wire.frames import (
    ChatMessages,
    ChatResponse,
    ResumeNone,
    ServerFrame,
    StreamPending,
    StreamResuming,
)
from think_reference.agent import Think
from think_reference.core.effects import Replay, Send

U1, U2 = user("u1"), user("u2")


class Prepared(Think):
    """Holds each turn before its stream."""

    prepare_delay_ms = 500


class Strict(Think):
    """Gives up at the first interruption that follows another without progress."""

    max_attempts = 1


def idle() -> World:
    return World()


def streaming() -> World:
    world = World()
    world.connect(1)
    world.send(1, "r1", U1)
    world.say("one")
    return world


def failed() -> World:
    world = streaming()
    world.fail("broken")
    return world


def pending() -> World:
    world = World(Prepared)
    world.connect(1)
    world.send(1, "r1", U1)
    return world


def given_up(application: type[Think] = Strict) -> World:
    """r1 was given up at load, r2 waited behind it and runs."""
    world = World(application)
    world.connect(1)
    world.send(1, "r1", U1)
    world.send(1, "r2", U2)
    if world.timers:
        world.fire()
    world.crash()
    world.crash(after_s=60)
    return world


class StrictAndPrepared(Strict, Prepared):
    """Both."""


@pytest.mark.parametrize(
    ("situation", "answer"),
    [
        (streaming, StreamResuming(id="r1", probe_id="p")),  # (1)
        (failed, StreamResuming(id="r1", probe_id="p")),  # (3)
        (pending, StreamPending(id="r1", probe_id="p")),  # (4)
        (idle, ResumeNone(reason="idle", probe_id="p")),  # (5)
    ],
)
def test_a_probe_gets_one_direct_answer(situation: object, answer: ServerFrame) -> None:
    world = situation()  # type: ignore[operator]
    world.connect(2)
    before = world.rows
    assert world.probe(2) == [Send(2, answer)]
    assert world.rows == before, "a resume frame changes no turn (WIRE-113)"


def test_an_active_stream_is_offered_before_a_failure() -> None:
    world = given_up()
    world.connect(2)
    assert world.open_call == "r2"
    assert world.probe(2) == [Send(2, StreamResuming(id="r2", probe_id="p"))]


def test_a_failure_is_offered_before_a_turn_that_is_pending() -> None:
    world = given_up(StrictAndPrepared)
    world.connect(2)
    (offer,) = world.probe(2)
    assert isinstance(offer, Send)
    assert isinstance(offer.frame, StreamResuming)
    world.ack(2, offer.frame.id)
    last = world.frames[2][-1]
    assert isinstance(last, ChatResponse)
    assert (last.outcome, last.error, last.body) == ("error", True, Think.terminal_message)


def test_while_a_stream_is_active_a_newcomer_gets_an_offer_and_no_transcript() -> None:
    world = streaming()
    greeting = world.connect(2)
    assert greeting[0] == StreamResuming(id="r1")
    assert not [f for f in greeting if isinstance(f, ChatMessages)]


def test_no_chunk_between_offer_and_ack_then_all_of_them_once() -> None:
    world = streaming()
    world.connect(2)
    world.say(" two")
    assert responses(world.frames[2]) == []
    world.ack(2, "r1")
    world.say(" three")
    frames = responses(world.frames[2])
    assert text_shown(world.frames[2]) == "one two three"
    assert [f.seq for f in frames] == [0, 1, 2, 3, 4, None, 5]
    assert [f.replay for f in frames] == [True] * 6 + [False]
    assert frames[5] == ChatResponse(id="r1", body="", done=False, replay=True, replay_complete=True)


def test_who_never_acks_still_gets_the_transcript_and_the_terminal() -> None:
    world = streaming()
    world.connect(2)
    seen = len(world.frames[2])
    world.finish()
    transcript, terminal = world.frames[2][seen:]
    assert isinstance(transcript, ChatMessages)
    assert terminals([terminal]) == [("r1", "completed")]
    world.send(1, "r2", U2)
    assert [f.seq for f in responses(world.frames[2])][-2:] == [0, 1], "the next stream comes live"


def test_a_probe_in_mid_stream_holds_the_live_chunks_back_until_the_ack() -> None:
    world = streaming()
    world.probe(1)
    seen = len(world.frames[1])
    world.say(" two")
    assert world.frames[1][seen:] == []
    world.ack(1, "r1")
    assert text_shown(world.frames[1][seen:]) == "one two"


def test_an_ack_again_is_a_full_replay_again() -> None:
    world = streaming()
    first, again = world.ack(1, "r1"), world.ack(1, "r1")
    assert first == again
    assert isinstance(first[0], Replay)


def test_an_ack_of_another_id_while_a_stream_is_active_is_ignored() -> None:
    world = streaming()
    world.send(1, "r2", U2)
    world.connect(2)
    for other in ("nobody", "r2"):
        assert world.ack(2, other) == []
    world.finish()
    assert world.ack(2, "r1") == [], "r2 streams now"


def test_an_ack_of_an_unknown_id_claims_nothing() -> None:
    world = idle()
    world.connect(1)
    assert world.ack(1, "r9") == [Send(1, ChatResponse(id="r9", body="", done=True, replay=True))]


def test_an_ack_of_a_pending_id_is_answered_and_the_stream_then_comes_live() -> None:
    world = pending()
    assert world.ack(1, "r1") == [Send(1, StreamPending(id="r1"))]
    world.fire()
    assert [f.seq for f in responses(world.frames[1])] == [0, 1]


@pytest.mark.parametrize("how", ["completed", "aborted", "error"])
def test_a_late_ack_tells_the_outcome_even_after_a_restart(how: str) -> None:
    world = streaming()
    {
        "completed": world.finish,
        "aborted": lambda: world.cancel(1, "r1"),
        "error": lambda: world.fail("broken"),
    }[how]()
    world.crash()
    world.connect(2)
    world.ack(2, "r1")
    last = responses(world.frames[2])[-1]
    assert (last.done, last.outcome, last.message_ids) == (True, how, ["u1"])
    assert last.error == (how == "error")


def test_while_recovery_waits_the_successor_is_pending_never_idle() -> None:
    world = pending()
    world.crash()
    (successor,) = [t.id for t in world.rows.turns if t.state == "running"]
    assert world.connect(2)[0] == StreamPending(id=successor)
    assert world.probe(2) == [Send(2, StreamPending(id=successor, probe_id="p"))]
    assert world.ack(2, "r1")[1:] == [Send(2, StreamPending(id=successor))]
    assert world.fire()[0] == Send(2, StreamResuming(id=successor))
