"""Checks of what a crash may cost: green, red and grey histories."""

from __future__ import annotations

from typing import Any

import pytest

from histories import Story, answer, plain_turn, said, user
from think_conformance.history.views import View

RECOVERY = ["WIRE-183", "TURN-43", "TURN-16", "WIRE-119", "KIT-05", "KIT-06", "KIT-07", "KIT-08"]
PLAN = {"model": {"t1": [[{"text": "w1 "}, {"gate": "g"}], [{"text": "w2 "}, "done"]]}}


class Crashed(Story):
    """Seq 0 and 1 of turn 1 were streamed to `a` when the target was killed; it is up again."""

    def __init__(self, *, replayed: bool = False, plan: dict[str, Any] = PLAN, queued: bool = False) -> None:
        super().__init__(plan=plan)
        self.a = self.open("a")
        self.send(self.a)
        self.call()
        self.start(self.a)
        self.words(self.a, "w1 ")
        self.gate()
        if replayed:
            self.ack(self.a)
            self.start(self.a, replay=True)
            self.words(self.a, "w1 ", replay=True)
            self.complete_replay(self.a)
        if queued:
            self.send(self.a, 2)
            self.transcript(self.a, user(1), user(2))
        self.kill(self.a, calls=[1])
        self.restart()
        self.a = self.open("a")

    def goes_on(self, *texts: str, outcome: Any = "completed", stored: str = "w1 w2 ") -> Story:
        """The successor streams `texts` and ends."""
        self.offer(self.a, "s1")
        self.ack(self.a, "s1")
        self.call()
        self.start(self.a, "s1", continuation=True)
        self.words(self.a, *(texts or ("w2 ",)), request="s1", continuation=True)
        self.call_ends()
        self.transcript(self.a, user(), answer(stored))
        self.terminal(self.a, "s1", outcome, continuation=True)
        return self.epilogue(user(), answer(stored), acks=["r1"])


@pytest.mark.parametrize(
    "requirement", ["TURN-43", "KIT-05", "KIT-06", "KIT-08", "TURN-150", "WIRE-206", "KIT-02"]
)
def test_a_continued_turn_holds(requirement: str) -> None:
    assert said(requirement, Crashed(replayed=True).goes_on()) == "holds"


@pytest.mark.parametrize("requirement", ["TURN-150", "WIRE-206", "WIRE-85", "KIT-02"])
def test_a_build_that_sends_no_message_ids_is_joined_by_the_crash(requirement: str) -> None:
    story = Crashed(plan={})
    story.call()
    story.start(story.a, "s1", continuation=True)
    story.call_ends()
    story.terminal(story.a, "s1", outcome=None)
    story.epilogue(user(), answer("w1 w2 "))
    assert said(requirement, story) == "holds"
    assert [chain.ids for chain in View(story.history).chains] == [["r1", "s1"]]


@pytest.mark.parametrize("requirement", RECOVERY)
def test_a_plain_turn_shows_nothing_of_recovery(requirement: str) -> None:
    story = Story()
    plain_turn(story, [story.open("a")])
    assert said(requirement, story) in ("nothing", "void")


# ---- outcomes ---------------------------------------------------------------------------------


def recovering(final: str | None) -> Story:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.start(a)
    story.terminal(a, outcome="recovering")
    if final:
        story.terminal(a, "s1", final)
    return story.epilogue(user())


def test_recovering_must_be_followed_by_an_end() -> None:
    assert said("WIRE-183", recovering("completed")) == "holds"
    assert said("WIRE-183", recovering("error")) == "holds"
    assert said("WIRE-183", recovering(None)) == "broken"


def test_who_was_told_recovering_in_a_history_without_an_end_knows_nothing_yet() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.call()
    story.terminal(a, outcome="recovering")
    assert said("WIRE-183", story) == "nothing"


def test_a_queued_turn_must_end_after_the_crash() -> None:
    story = Crashed(queued=True)
    story.goes_on()
    assert said("TURN-16", story) == "broken"
    story = Crashed(queued=True)
    story.terminal(story.a, "s1", messages=["u1"])
    story.terminal(story.a, "r2", messages=["u2"])
    assert said("TURN-16", story.epilogue(user(), user(2), answer("w1 "))) == "holds"


def test_a_turn_that_had_begun_was_not_queued() -> None:
    story = Story()
    a = story.open("a")
    for number in (1, 2):
        story.send(a, number)
        story.start(a, f"r{number}", f"a{number}")
    story.kill(a)
    story.restart()
    assert said("TURN-16", story.epilogue(user(1), user(2))) == "nothing"


def idle_during(what: str) -> Story:
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.pending(a)
    if what == "over":
        story.terminal(a, outcome="completed")
    story.probe(b)
    story.idle(b)
    if what == "call":
        story.call()
    if what == "chunk":
        story.start(b)
    if what != "lost":
        story.terminal(a, outcome="completed")
    return story.epilogue(user())


def test_idle_before_the_turn_is_over_is_broken() -> None:
    assert {what: said("WIRE-119", idle_during(what)) for what in ("call", "chunk", "lost", "over")} == {
        "call": "broken",
        "chunk": "broken",
        "lost": "broken",
        "over": "holds",
    }


def test_idle_and_then_the_live_end_of_the_turn_is_broken() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.call()
    story.call_ends()
    story.transcript(a, user(), answer("w1 "))
    story.probe(a)
    story.idle(a)
    story.terminal(a)
    assert said("WIRE-119", story.epilogue(user(), answer("w1 "))) == "broken"


def test_idle_asked_before_the_turn_was_accepted_is_fine() -> None:
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.probe(b)
    story.send(a)
    story.pending(a)
    story.idle(b)
    story.call()
    assert said("WIRE-119", story) == "nothing"


def test_a_turn_cut_off_and_not_continued_is_broken() -> None:
    story = Crashed()
    story.terminal(story.a, "r1", replay=True)
    assert said("TURN-43", story.epilogue(user(), answer("w1 "))) == "broken"


def stored_only(*seen: str, stored: str, **chunk: Any) -> Story:
    """`seen` was streamed before the crash; afterwards nothing is asked, and `stored` is what there is."""
    story = Story(plan={"model": {"t1": [[{"text": "w1 "}, {"text": "w2 "}, "done"]]}})
    a = story.open("a")
    story.send(a)
    story.call()
    story.start(a)
    story.words(a, *seen)
    story.kill(a, calls=[1])
    story.restart()
    if chunk:
        a = story.open("a")
        story.chunk(a, chunk, seq=2)
        story.terminal(a)
    return story.epilogue(user(), answer(stored))


def test_what_is_stored_is_no_sign_that_a_turn_went_on() -> None:
    assert said("TURN-43", stored_only("w1 ", "w2 ", stored="w2 ")) == "broken"
    assert said("TURN-43", stored_only("w1 ", stored="w1 w2 ")) == "broken"
    assert said("TURN-43", stored_only("w1 ", stored="w1 ", type="abort")) == "broken"


def test_aborted_is_the_end_of_a_turn_whose_conversation_moved_on() -> None:
    def moved(other: bool) -> Story:
        story = Story(plan={"model": {"t1": [[{"text": "w1 "}, "done"]], "t2": [[{"text": "w5 "}, "done"]]}})
        a = story.open("a")
        story.send(a)
        story.call()
        story.start(a)
        story.words(a, "w1 ")
        story.kill(a, calls=[1])
        story.restart()
        a = story.open("a")
        if other:
            story.send(a, 2)
        story.terminal(a, "r1", outcome="aborted")
        return story.epilogue(user(), answer("w1 "))

    assert said("TURN-43", moved(True)) == "holds"
    assert said("TURN-43", moved(False)) == "broken"


def test_a_turn_that_gives_up_with_an_error_is_not_continued() -> None:
    story = Crashed()
    story.failure(story.a, "s1", done=True, message_ids=["u1"])
    assert said("TURN-43", story.epilogue(user(), answer("w1 "))) == "holds"


def test_a_stored_partial_that_is_gone_is_broken() -> None:
    assert said("TURN-43", Crashed(replayed=True).goes_on(stored="w2 ")) == "broken"


def test_a_partial_that_was_only_streamed_may_be_retried() -> None:
    assert said("TURN-43", Crashed().goes_on(stored="w2 ")) == "holds"


# ---- text -------------------------------------------------------------------------------------


def test_text_seen_in_a_replay_must_survive() -> None:
    assert said("KIT-05", Crashed(replayed=True).goes_on(stored="w2 ")) == "broken"


def test_text_seen_in_a_transcript_must_survive() -> None:
    story = Story()
    a = story.open("a")
    plain_turn(story, [a])
    story.kill(a)
    story.restart()
    assert said("KIT-05", story.epilogue(user(), answer("w1 "))) == "holds"
    story = Story()
    a = story.open("a")
    plain_turn(story, [a])
    story.kill(a)
    story.restart()
    assert said("KIT-05", story.epilogue(user())) == "broken"


def test_text_that_was_only_streamed_is_another_requirement() -> None:
    story = Crashed().goes_on(stored="w2 ")
    assert said("KIT-05", story) == "nothing"
    assert said("KIT-06", story) == "broken"
    assert said("KIT-07", story) == "broken"


def test_text_stored_twice_is_broken() -> None:
    assert said("KIT-08", Crashed().goes_on(stored="w1 w1 w2 ")) == "broken"


def test_text_streamed_again_by_the_continuation_is_broken() -> None:
    assert said("KIT-08", Crashed().goes_on("w1 ", "w2 ")) == "broken"


def test_text_the_model_says_again_is_not_doubled() -> None:
    again = {"model": {"t1": [[{"text": "w1 "}], [{"text": "w1 "}, {"text": "w2 "}]]}}
    assert said("KIT-08", Crashed(plan=again).goes_on("w1 ", "w2 ", stored="w1 w1 w2 ")) == "holds"


def test_a_retry_from_the_start_doubles_nothing() -> None:
    story = Crashed()
    story.call()
    story.start(story.a, "s1", "a2")
    story.words(story.a, "w1 ", "w2 ", request="s1")
    story.call_ends()
    story.terminal(story.a, "s1")
    assert said("KIT-08", story.epilogue(user(), answer("w1 w2 ", "a2"))) == "holds"


def test_text_lost_in_a_crash_is_not_text_lost_without_one() -> None:
    assert said("KIT-04", Crashed().goes_on(stored="w2 ")) == "holds"


def test_an_outcome_told_under_an_id_that_fits_two_turns_is_held_against_neither() -> None:
    story = Story()
    a = story.open("a")
    story.send(a, 1)
    story.pending(a, "r1")
    story.send(a, 2)
    story.pending(a, "r2")
    story.kill(a)
    story.restart()
    b = story.open("b")
    story.start(b, "s1")
    story.terminal(b, "s1", outcome=None)
    story.epilogue(user(1), user(2))
    assert said("TURN-150", story) == "holds"
