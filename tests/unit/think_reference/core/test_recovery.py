"""What becomes of a run that a dead process left behind, for each point it can die at.

`put_back` is fed with recorded rows; the tests with a World crash a whole agent at that point.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reference_world import NAME, World, assistant, stored_user, terminals, texts_of, user
from think_conformance.wire.frames import Message, ResumeNone
from think_reference.agent import Think
from think_reference.core.effects import CallModel, Persist, PutTurn, Rows, Send
from think_reference.core.ids import answer_id, run_id
from think_reference.core.prompt import GO_ON
from think_reference.core.recovery import Limits, PutBack, interrupted, put_back
from think_reference.core.turn import Turn

U1, U2 = user("u1"), user("u2")
A1 = answer_id(NAME, "r1", 0)
SECOND, THIRD = run_id(NAME, "r1", 1), run_id(NAME, "r1", 2)
LIMITS = Limits(max_attempts=2, terminal_message="gave up")
RUNNING = Turn(id="r1", root="r1", order=4, message_ids=("u1",), anchor="u1", body={"k": 1}).started(A1)
OPENED = ['{"type":"start","messageId":"%s"}' % A1, '{"type":"start-step"}']  # noqa: UP031
SPOKEN = [*OPENED, '{"type":"text-start","id":"text-1"}', '{"type":"text-delta","id":"text-1","delta":"one"}']
ENDED_TEXT = [*SPOKEN, '{"type":"text-end","id":"text-1"}', '{"type":"finish-step"}']


def decide(
    turn: Turn = RUNNING, chunks: list[str] | None = None, base: Message | None = None, **kw: Any
) -> PutBack:
    given = {"taken": (), "moved_on": False, "now": 50.0, **kw}
    return put_back(NAME, turn, chunks or [], base, LIMITS, **given)


# ---- the decision on recorded rows ----------------------------------------------------------


@pytest.mark.parametrize("chunks", [[], OPENED[:1], OPENED], ids=["TURN-41", "TURN-42-start", "TURN-42"])
def test_a_run_that_said_nothing_is_retried_as_a_new_message(chunks: list[str]) -> None:
    decided = decide(chunks=chunks)
    assert decided.ended == RUNNING.ended("recovering")
    assert decided.partial is None
    assert decided.successor == replace(
        RUNNING, id=SECOND, run=1, state="queued", kind="retry", message_id=None, attempt=1, evaluated_at=50.0
    )


@pytest.mark.parametrize("chunks", [SPOKEN, ENDED_TEXT], ids=["TURN-43", "TURN-44"])
def test_a_run_that_spoke_is_continued_in_the_same_message(chunks: list[str]) -> None:
    decided = decide(chunks=chunks)
    assert decided.partial == assistant(A1, "one"), "settled, whatever state it was in (WIRE-134)"
    assert decided.successor is not None
    assert (decided.successor.kind, decided.successor.message_id) == ("continue", A1)
    assert decided.successor.order == RUNNING.order, "it keeps its place (TURN-58)"


def test_a_continuation_that_said_nothing_more_is_continued_again() -> None:
    base = assistant(A1, "one")
    turn = replace(RUNNING, id=SECOND, run=1, kind="continue", attempt=1, evaluated_at=10.0)
    decided = decide(turn, ['{"type":"start"}', '{"type":"start-step"}'], base)
    assert decided.partial is None
    assert decided.successor is not None
    assert (decided.successor.id, decided.successor.kind, decided.successor.message_id) == (
        THIRD,
        "continue",
        A1,
    )


def test_a_continuation_that_spoke_extends_what_was_stored() -> None:
    base = assistant(A1, "one")
    turn = replace(RUNNING, id=SECOND, run=1, kind="continue", attempt=1, evaluated_at=10.0)
    decided = decide(turn, ['{"type":"start"}', *SPOKEN[1:]], base)
    assert decided.partial is not None
    assert texts_of([decided.partial]) == [f"{A1}: oneone"]
    assert len(decided.partial["parts"]) == 4


@pytest.mark.parametrize(
    ("attempt", "evaluated_at", "chunks", "expected"),
    [
        (2, 0.0, [], None),
        (2, 30.0, [], 2),  # less than 30 s after the last one: the same interruption (TURN-75)
        (1, 0.0, [], 2),
        (2, 0.0, SPOKEN, 1),  # progress forgives
    ],
)
def test_attempts_without_progress_are_bounded(
    attempt: int, evaluated_at: float, chunks: list[str], expected: int | None
) -> None:
    turn = replace(RUNNING, attempt=attempt, evaluated_at=evaluated_at)
    decided = decide(turn, chunks)
    if expected is None:
        assert decided == PutBack(turn.ended("error", "gave up"), None, None)
    else:
        assert decided.successor is not None
        assert decided.successor.attempt == expected


def test_a_turn_the_conversation_left_behind_is_ended_with_its_partial_kept() -> None:
    decided = decide(chunks=SPOKEN, moved_on=True)
    assert decided == PutBack(RUNNING.ended("aborted"), None, assistant(A1, "one"))


def test_only_running_rows_are_interrupted_oldest_first() -> None:
    queued = Turn(id="q", root="q", order=9)
    later = replace(RUNNING, id="x", root="x", order=8)
    assert interrupted([queued, later, RUNNING, RUNNING.ended("completed")]) == [RUNNING, later]


# ---- whole agents, killed -------------------------------------------------------------------


def crashed(*, spoken: str = "", queued: bool = False, application: type[Think] = Think) -> World:
    world = World(application)
    world.connect(1)
    world.send(1, "r1", U1)
    if queued:
        world.send(1, "r2", U2)
    if spoken:
        world.say(spoken)
    world.crash()
    world.connect(2)
    return world


def test_putting_back_is_one_transaction_before_the_model_is_asked() -> None:
    world = crashed(spoken="one")
    world.crash()
    first, *_, last = world.effects
    assert isinstance(first, Persist)
    states = [w.turn.outcome or w.turn.state for w in first.writes if isinstance(w, PutTurn)]
    assert states == ["recovering", "queued"]
    assert isinstance(last, CallModel)


def test_a_retry_answers_the_same_message_with_a_fresh_one() -> None:
    world = crashed()
    assert world.called[-1] == CallModel(SECOND, [{"role": "user", "content": "u1"}])
    world.say("two")
    world.finish()
    assert texts_of(world.agent.messages) == ["u1: u1", f"{answer_id(NAME, 'r1', 1)}: two"]
    assert terminals(world.frames[2]) == [(SECOND, "completed")]


def test_a_continuation_asks_to_go_on_and_appends_to_the_interrupted_message() -> None:
    world = crashed(spoken="one")
    assert texts_of(world.agent.messages) == ["u1: u1", f"{A1}: one"]
    assert world.called[-1] == CallModel(
        SECOND,
        [
            {"role": "user", "content": "u1"},
            {"role": "assistant", "content": "one"},
            {"role": "user", "content": GO_ON},
        ],
    )
    assert world.rows.chunks == {SECOND: ['{"type":"start"}', '{"type":"start-step"}']}
    world.say(" two")
    world.finish()
    assert texts_of(world.agent.messages) == ["u1: u1", f"{A1}: one two"]
    assert [p["type"] for p in world.agent.messages[1]["parts"]] == [
        "step-start",
        "text",
        "step-start",
        "text",
    ]


def test_a_continuation_of_a_turn_without_a_message_is_asked_with_its_partial_once() -> None:
    world = World()
    world.connect(1)
    world.send(1, "r1")
    world.say("one")
    world.crash()
    assert [m["content"] for m in world.called[-1].messages] == ["one", GO_ON]


def test_an_interrupted_turn_goes_before_the_one_that_waited() -> None:
    world = crashed(spoken="one", queued=True)
    assert world.open_call == SECOND
    assert world.called[-1].messages[-1] == {"role": "user", "content": GO_ON}
    assert {"role": "user", "content": "u2"} not in world.called[-1].messages
    world.finish()
    assert world.open_call == "r2", "a queued turn keeps its own id (TURN-16)"
    world.say("three")
    world.finish()
    assert [m["id"] for m in world.agent.messages] == ["u1", A1, "u2", answer_id(NAME, "r2", 0)]
    assert terminals(world.frames[2]) == [(SECOND, "completed"), ("r2", "completed")]


def test_a_stored_answer_is_not_asked_for_again() -> None:
    world = World()
    world.connect(1)
    world.send(1, "r1", U1)
    world.say("one")
    world.finish()
    assert world.crash() == []
    assert len(world.called) == 1
    world.connect(2)
    assert world.probe(2) == [Send(2, ResumeNone(reason="idle", probe_id="p"))]


def test_a_crash_during_recovery_replaces_the_run_and_keeps_all_text() -> None:
    world = crashed(spoken="one")
    world.say(" two")
    world.crash()
    assert world.open_call == THIRD
    assert texts_of(world.agent.messages) == ["u1: u1", f"{A1}: one two"]
    world.finish()
    outcomes = {t.id: t.outcome for t in world.rows.turns}
    assert outcomes == {"r1": "recovering", SECOND: "recovering", THIRD: "completed"}


def test_crashing_again_before_the_successor_starts_makes_no_second_one() -> None:
    """The journal as it stands right after the put-back transaction."""
    world = crashed(spoken="one")
    cut = next(r for r in world.history if any(t.id == SECOND and t.state == "queued" for t in r.turns))
    again = World(rows=cut)
    assert [t.id for t in again.rows.turns] == ["r1", SECOND]
    assert again.open_call == SECOND


def test_giving_up_stores_the_partial_and_leaves_a_record_for_everyone() -> None:
    class Strict(Think):
        """Gives up early."""

        max_attempts = 1
        terminal_message = "sorry"

    world = crashed(spoken="one", application=Strict)
    world.crash(after_s=60)
    assert world.calls == {}
    assert texts_of(world.agent.messages) == ["u1: u1", f"{A1}: one"]
    for conn in (3, 4):
        world.connect(conn)
        world.probe(conn)
        world.ack(conn, SECOND)
        assert terminals(world.frames[conn]) == [(SECOND, "error")]
        world.ack(conn, "r1")
        assert terminals(world.frames[conn], live=False)[-1] == ("r1", "error")
    world.crash(after_s=60)
    assert world.calls == {}


def test_a_client_that_foresaw_the_id_of_a_successor_takes_it_from_nobody() -> None:
    world = World()
    world.connect(1)
    world.send(1, "r1", user("u1"))
    world.send(1, SECOND, user("u2"))
    world.crash()
    answers = []
    while world.calls:
        answers.append(world.open_call)
        world.say("x")
        world.finish()
    assert answers == [run_id(NAME, "r1", 1, 1), SECOND]
    assert {t.id: t.outcome for t in world.rows.turns} == {
        "r1": "recovering",
        answers[0]: "completed",
        SECOND: "completed",
    }


def test_rows_of_a_newer_turn_that_started_end_the_older_one() -> None:
    rows = Rows(
        turns=[
            replace(RUNNING, order=0),
            Turn(id="r2", root="r2", order=1, message_ids=("u2",), anchor="u2")
            .started("a2")
            .ended("completed"),
        ],
        chunks={"r1": SPOKEN},
        messages=[stored_user("u1"), stored_user("u2"), assistant("a2", "x")],
    )
    world = World(rows=rows)
    assert world.calls == {}
    assert [m["id"] for m in world.agent.messages] == ["u1", A1, "u2", "a2"]
    world.connect(1)
    world.ack(1, "r1")
    assert terminals(world.frames[1], live=False) == [("r1", "aborted")]
