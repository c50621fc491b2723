"""Checks of what a careful client shows: green, red and grey histories."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from histories import Story, answer, plain_turn, said, user
from think_conformance.wire.frames import ChatRecovering

PLAN = {"model": {"t1": [[{"text": "w1 "}, {"gate": "g"}, "done"]]}}
STORED = (user(), answer("w1 "))


def finished() -> tuple[Story, str]:
    story = Story(plan=PLAN)
    a = story.open("a")
    plain_turn(story, [a])
    return story, a


# ---- TURN-151: over is over -------------------------------------------------------------------


def test_a_plain_turn_has_one_state_at_a_time() -> None:
    assert said("TURN-151", finished()[0].epilogue(*STORED)) == "holds"


def test_without_an_outcome_no_state_is_contradicted() -> None:
    story = Story(plan=PLAN)
    story.send(story.open("a"))
    assert said("TURN-151", story.epilogue()) == "nothing"


CLAIMS: list[Callable[[Story, str], int]] = [
    lambda story, a: story.words(a, "more ", first=2),
    lambda story, a: story.pending(a),
    lambda story, a: story.offer(a),
    lambda story, a: story.get(a, ChatRecovering(recovering=True, id="r1")),
]


@pytest.mark.parametrize("claims", CLAIMS)
def test_a_turn_that_is_over_and_runs_is_broken(claims: Callable[[Story, str], int]) -> None:
    story, a = finished()
    claims(story, a)
    assert said("TURN-151", story.epilogue(*STORED)) == "broken"


@pytest.mark.parametrize("claims", CLAIMS[:3])
def test_so_it_is_on_a_connection_that_came_later(claims: Callable[[Story, str], int]) -> None:
    story, _ = finished()
    claims(story, story.open("b"))
    assert said("TURN-151", story.epilogue(*STORED)) == "broken"


def test_another_connection_may_lag_behind() -> None:
    story = Story(plan=PLAN)
    a, b = story.open("a"), story.open("b")
    plain_turn(story, [a])
    story.words(b, "w1 ")
    assert said("TURN-151", story.epilogue(*STORED)) == "holds"


def test_a_replay_and_an_offer_of_a_failed_turn_are_no_claim() -> None:
    story = Story(plan=PLAN)
    a = story.open("a")
    story.send(a)
    story.failure(a, done=True)
    story.offer(a)
    story.words(a, "w1 ", replay=True)
    assert said("TURN-151", story.epilogue(user())) == "holds"


def test_what_follows_a_resend_is_not_judged_here() -> None:
    story, a = finished()
    story.send(a)
    story.words(a, "w1 ")
    assert said("TURN-151", story.epilogue(*STORED)) == "holds"


def test_two_ends_are_not_judged_here() -> None:
    story, a = finished()
    story.terminal(a, outcome="aborted")
    assert said("TURN-151", story.epilogue(*STORED)) == "holds"


# ---- TURN-151: completed is stored ------------------------------------------------------------


def test_completed_and_nothing_stored_is_broken() -> None:
    assert said("TURN-151", finished()[0].epilogue(user())) == "broken"


def test_a_transcript_on_the_way_when_the_end_was_told_is_not_judged() -> None:
    story = Story(plan=PLAN)
    a, b = story.open("a"), story.open("b")
    plain_turn(story, [a])
    story.transcript(b, user())
    assert said("TURN-151", story.epilogue(*STORED)) == "holds"


@pytest.mark.parametrize(("opened", "verdict"), [(True, "holds"), (False, "broken")])
def test_completed_while_the_model_is_held_is_broken(opened: bool, verdict: str) -> None:
    story = Story(plan=PLAN)
    a = story.open("a")
    story.send(a)
    story.call()
    story.start(a)
    story.words(a, "w1 ")
    story.gate()
    if opened:
        story.operation("open-gate", gate="g")
    story.terminal(a)
    story.begin()
    story.call_ends()
    assert said("TURN-151", story.epilogue(*STORED)) == verdict


# ---- KIT-12 -----------------------------------------------------------------------------------


def watched(*, told: bool = True, stays: bool = True, fault: str | None = None) -> Story:
    """`b` looks on; it may be told the end, may leave, may have a fault on its connection."""
    story = Story(plan=PLAN)
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.call()
    story.start([a, b])
    if fault:
        story.fault("f", {"cut": "blackhole"}, fires_on=b)
    story.call_ends()
    story.terminal([a, b] if told else [a])
    if not stays:
        story.close(b)
    return story


def test_who_is_told_the_end_is_not_left() -> None:
    assert said("KIT-12", watched().epilogue(*STORED)) == "holds"


def test_who_is_not_told_is_left_streaming() -> None:
    assert said("KIT-12", watched(told=False).epilogue(*STORED)) == "broken"


def test_who_sent_and_heard_nothing_is_left() -> None:
    story = Story(plan=PLAN)
    story.send(story.open("a"))
    story.call()
    story.call_ends()
    assert said("KIT-12", story.epilogue(*STORED)) == "broken"


def test_idle_ends_the_waiting_too() -> None:
    story = watched(told=False)
    story.idle("b.1", "p2")
    assert said("KIT-12", story.epilogue(*STORED)) == "holds"


def test_who_left_or_was_cut_off_is_not_judged() -> None:
    assert said("KIT-12", watched(told=False, stays=False).epilogue(*STORED)) == "holds"
    assert said("KIT-12", watched(told=False, fault="f").epilogue(*STORED)) == "holds"


def test_recovering_is_no_end() -> None:
    story = watched(told=False)
    story.terminal("b.1", outcome="recovering")
    assert said("KIT-12", story.epilogue(*STORED)) == "broken"


def at_the_end(story: Story) -> str:
    """The server is done; what follows answers the observer's questions."""
    story.begin()
    name = story.observe()
    story.idle(name, "epilogue-1")
    story.record("run", "epilogue", {}, {"phase": "idle"})
    return name


def test_what_the_observer_asks_for_at_the_end_shows_nothing() -> None:
    story = Story(plan=PLAN)
    a = story.open("a")
    story.send(a)
    story.call()
    story.close(a)
    story.call_ends()
    name = at_the_end(story)
    story.words(name, "w1 ", replay=True)
    assert said("KIT-12", story.end(name)) == "nothing"


def test_recovering_is_no_end_when_the_server_is_done_either() -> None:
    story = watched(told=False)
    name = at_the_end(story)
    story.terminal("b.1", outcome="recovering")
    assert said("KIT-12", story.end(name)) == "broken"


# ---- WIRE-181 ---------------------------------------------------------------------------------


def noticed(*notices: bool, stays: bool = True) -> Story:
    """A recovered turn ends; the client that came back got these notices, the last one behind the end."""
    story = Story()
    a = story.open("a")
    story.send(a)
    story.call()
    story.start(a)
    story.kill(a, calls=[1])
    story.restart()
    a = story.open("a")
    for recovering in notices[:-1]:
        story.get(a, ChatRecovering(recovering=recovering, id="r1"))
    story.terminal(a)
    for recovering in notices[-1:]:
        story.get(a, ChatRecovering(recovering=recovering, id="r1"))
    if not stays:
        story.close(a)
    return story.epilogue(user(), answer("w1 "))


def test_a_notice_of_recovery_that_ends_holds() -> None:
    assert said("WIRE-181", noticed(True, False)) == "holds"


def test_a_notice_of_recovery_that_stands_or_comes_again_is_broken() -> None:
    assert said("WIRE-181", noticed(True, True)) == "broken"
    assert said("WIRE-181", noticed(True)) == "broken"
    assert said("WIRE-181", noticed(False, True)) == "broken"


def test_a_notice_whose_end_a_lost_connection_may_have_missed_is_not_blamed() -> None:
    assert said("WIRE-181", noticed(True, True, stays=False)) == "holds"


def test_where_nobody_is_told_of_a_recovery_nothing_is_seen() -> None:
    assert said("WIRE-181", noticed()) == "void"
