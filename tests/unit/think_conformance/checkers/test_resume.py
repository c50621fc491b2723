"""Checks of coming back: green, red and grey histories."""

from __future__ import annotations

from typing import Any

import pytest

from histories import Story, answer, plain_turn, said, user

RESUME = ["WIRE-59", "WIRE-113", "WIRE-104", "WIRE-102", "WIRE-105"]


class Resumed(Story):
    """A client that streams seq 0 and 1, loses its socket, comes back, acks and is shown `replay`,
    then `live`; `b` stays connected and sees seq 0 to 3."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        a, self.b = self.open("a"), self.open("b")
        self.send(a)
        self.call()
        self.show([a, self.b], 0, 1)
        self.close(a)
        self.a = self.open("a")
        self.offer(self.a)
        self.probe(self.a)
        self.offer(self.a, probe="p1")

    def show(self, names: Any, *seqs: int, **more: Any) -> None:
        for seq in seqs:
            if seq == 0:
                self.start(names, **more)
            else:
                self.words(names, f"w{seq} ", first=seq, **more)

    def replayed(self, *seqs: int, acks: int = 1) -> None:
        for _ in range(acks):
            self.ack(self.a)
        self.show(self.a, *seqs, replay=True)
        self.complete_replay(self.a)

    def ends(self) -> Story:
        self.call_ends()
        self.transcript([self.a, self.b], user(), answer("w1 w2 w3 "))
        self.terminal([self.a, self.b])
        return self.epilogue(user(), answer("w1 w2 w3 "), acks=["r1"])


def resumed(replay: tuple[int, ...] = (0, 1, 2), live: tuple[int, ...] = (3,), acks: int = 1) -> Story:
    story = Resumed()
    story.show(story.b, 2)
    story.replayed(*replay, acks=acks)
    for seq in live:
        story.show([story.a], seq)
    story.show(story.b, 3)
    return story.ends()


@pytest.mark.parametrize("requirement", [*RESUME, "WIRE-83", "KIT-04", "KIT-02", "TURN-150", "WIRE-85"])
def test_a_resume_without_a_seam_holds(requirement: str) -> None:
    assert said(requirement, resumed()) == "holds"


@pytest.mark.parametrize("requirement", RESUME)
def test_a_turn_nobody_came_back_to_shows_nothing(requirement: str) -> None:
    story = Story()
    plain_turn(story, [story.open("a")])
    assert said(requirement, story) == "nothing"


@pytest.mark.parametrize(
    ("replay", "live"),
    [
        ((0, 2), (3,)),  # a hole in the replay
        ((1, 2), (3,)),  # not from the start
        ((0, 0, 1, 2), (3,)),  # a chunk twice
        ((0, 1, 1, 2), (3,)),
        ((0, 1, 2), (2, 3)),  # overlap with the live tail
        ((0, 1), (3,)),  # gap before the live tail
        ((0, 1, 2), ()),  # the tail is missing
        ((0, 1, 2, 0, 1, 2), (3,)),  # the whole replay twice, asked for once
    ],
)
def test_a_seam_is_broken(replay: tuple[int, ...], live: tuple[int, ...]) -> None:
    assert said("WIRE-104", resumed(replay, live)) == "broken"


def test_two_acks_may_bring_two_replays() -> None:
    assert said("WIRE-104", resumed((0, 1, 2, 0, 1, 2), acks=2)) == "holds"


def test_a_live_gap_behind_an_ack_is_broken_for_the_resume_too() -> None:
    story = Resumed()
    story.replayed(0, 1)
    story.show([story.b], 2, 3)
    story.show([story.a], 2)
    story.show([story.a, story.b], 5)
    assert said("WIRE-104", story.ends()) == "broken"


def test_a_replay_of_a_stream_that_began_anew_starts_there() -> None:
    story = Resumed()
    story.ack(story.a)
    story.start(story.a, seq=2, replay=True)
    story.show([story.a], 3)
    assert said("WIRE-104", story) == "holds"


def test_what_a_tampering_fault_did_to_the_replay_is_not_blamed() -> None:
    story = Resumed()
    story.fault("f", {"drop": True}, fires_on=story.a)
    story.replayed(0, 2)
    assert said("WIRE-104", story) != "broken"


def without_seq(*read: str) -> Story:
    """A build without seq: the sender sees w1 to w3, the one who comes back reads `read`."""
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.words(a, "w1 ", "w2 ", first=None)
    story.offer(b)
    story.ack(b)
    story.words(b, *read[:-1], first=None, replay=True)
    story.complete_replay(b)
    story.words([a, b], read[-1], first=None)
    story.terminal([a, b], outcome=None)
    return story.epilogue(user(), answer("w1 w2 w3 "))


def test_without_seq_the_text_is_compared() -> None:
    assert said("WIRE-104", without_seq("w1 ", "w2 ", "w3 ")) == "holds"
    assert said("WIRE-104", without_seq("w1 w2 ", "w3 ")) == "holds"
    assert said("WIRE-104", without_seq("w1 ", "w3 ")) == "broken"
    assert said("WIRE-104", without_seq("w1 ", "w2 ", "w2 ", "w3 ")) == "broken"


# ---- nothing starts, nothing stops ------------------------------------------------------------


@pytest.mark.parametrize("requirement", ["WIRE-59", "WIRE-113", "KIT-02"])
def test_a_model_call_behind_an_ack_is_broken(requirement: str) -> None:
    story = Resumed()
    story.replayed(0, 1)
    story.call_ends()
    story.call()
    assert said(requirement, story) == "broken"


def test_a_model_call_before_anyone_came_back_is_not_the_resumes_fault() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.call()
    story.call_ends()
    story.call()
    story.probe(a)
    story.call_ends()
    assert said("WIRE-59", story) == "holds"
    assert said("KIT-02", story) == "broken"


@pytest.mark.parametrize("requirement", ["WIRE-59", "WIRE-113"])
def test_a_model_call_behind_a_resend_and_an_ack_is_the_resends_fault(requirement: str) -> None:
    story = Resumed()
    story.send(story.a)
    story.replayed(0, 1)
    story.call_ends()
    story.call()
    assert said(requirement, story) == "holds"
    assert said("WIRE-58", story) == "broken"


def test_a_resend_explains_one_call_and_no_other() -> None:
    story = Resumed()
    story.send(story.a)
    story.replayed(0, 1)
    story.call_ends()
    story.call()
    story.call_ends()
    story.ack(story.a)
    story.call()
    assert said("WIRE-59", story) == "broken"


def test_an_abort_nobody_asked_for_behind_a_resume_is_broken() -> None:
    story = Resumed()
    story.replayed(0, 1)
    story.terminal([story.a, story.b], outcome="aborted")
    assert said("WIRE-113", story) == "broken"


def test_an_abort_that_an_ack_is_told_of_may_have_been_before() -> None:
    story = Resumed()
    story.terminal(story.b, outcome="aborted", replay=True)
    assert said("WIRE-113", story) == "holds"


def test_an_abort_behind_a_resume_and_a_loss_is_for_others_to_judge() -> None:
    story = Resumed()
    story.replayed(0, 1)
    story.close(story.b)
    story.terminal(story.a, outcome="aborted")
    assert said("WIRE-113", story) == "holds"


def test_an_abort_that_was_asked_for_is_not() -> None:
    story = Resumed()
    story.replayed(0, 1)
    story.cancel(story.b)
    story.terminal([story.a, story.b], outcome="aborted")
    assert said("WIRE-113", story) == "holds"


# ---- answers and offers -----------------------------------------------------------------------


def probed(*answers: str | None) -> Story:
    story = Story()
    a = story.open("a")
    story.probe(a, "p")
    for echo in answers:
        story.idle(a, echo)
    return story.epilogue()


def test_each_probe_is_answered_once() -> None:
    assert said("WIRE-102", probed("p")) == "holds"
    assert said("WIRE-102", probed("p", None)) == "holds"
    assert said("WIRE-102", probed("p", "p")) == "broken"
    assert said("WIRE-102", probed()) == "broken"
    assert said("WIRE-102", probed(None)) == "broken"


def test_a_probe_on_a_connection_that_broke_needs_no_answer() -> None:
    story = Story()
    a = story.open("a")
    story.probe(a, "p")
    story.close(a)
    story.epilogue()
    assert said("WIRE-102", story) == "holds"


def test_live_chunks_before_the_ack_are_broken() -> None:
    story = Resumed()
    story.show([story.a], 2)
    assert said("WIRE-105", story) == "broken"


def test_transcript_and_end_before_the_ack_are_legal() -> None:
    story = Resumed()
    story.show([story.b], 2)
    story.ends()
    assert said("WIRE-105", story) == "holds"
    assert said("WIRE-104", story) == "nothing"
    assert said("WIRE-83", story) == "holds"


def test_an_offer_that_is_not_acked_cuts_the_stream_off_lawfully() -> None:
    story = Resumed()
    story.probe(story.b, "p2")
    story.offer(story.b, probe="p2")
    story.replayed(0, 1)
    story.show([story.a], 2, 3)
    story.ends()
    assert said("WIRE-83", story) == "holds"
    assert said("WIRE-104", story) == "holds"


@pytest.mark.parametrize("requirement", ["WIRE-85", "WIRE-209"])
def test_an_ack_answered_by_a_replay_accounts_for_no_second_end(requirement: str) -> None:
    story = Resumed()
    story.replayed(0, 1)
    story.terminal([story.a, story.b])
    story.terminal([story.a])
    assert said(requirement, story) == "broken"


# ---- WIRE-112 ---------------------------------------------------------------------------------


def after_a_cut_replay(
    *replay: int, outcome: str = "completed", reset: bool = False, whole: bool = False, stop: bool = False
) -> Story:
    """`c` acks and its socket breaks in the replay (or behind it: `whole`); then `d` is shown `replay`."""
    story = Resumed()
    c = story.open("c")
    story.offer(c)
    story.ack(c)
    if whole:
        story.show(c, 0, 1, replay=True)
        story.complete_replay(c)
    if reset:
        story.fault("cut", {"cut": "reset"}, fires_on=c)
    else:
        story.close(c, code=1001)
    if stop:
        story.cancel(story.b)
    d = story.open("d")
    if reset:
        story.close(c)
    if replay:
        story.offer(d)
        story.ack(d)
        story.show(d, *replay, replay=True)
        story.complete_replay(d)
    story.call_ends(how="done" if outcome == "completed" else "aborted")
    story.terminal([story.b, d], outcome=outcome)
    return story.epilogue(user(), answer("w1 "))


@pytest.mark.parametrize("reset", [False, True])
def test_a_replay_that_was_cut_and_then_given_whole_holds(reset: bool) -> None:
    assert said("WIRE-112", after_a_cut_replay(0, 1, reset=reset)) == "holds"


@pytest.mark.parametrize("reset", [False, True])
def test_a_chunk_that_a_cut_replay_costs_the_next_one_is_broken(reset: bool) -> None:
    assert said("WIRE-112", after_a_cut_replay(0, reset=reset)) == "broken"


def test_a_turn_that_a_cut_replay_ends_is_broken() -> None:
    assert said("WIRE-112", after_a_cut_replay(outcome="aborted")) == "broken"
    assert said("WIRE-112", after_a_cut_replay(outcome="aborted", stop=True)) == "nothing"


def test_without_a_replay_that_was_cut_or_a_later_one_nothing_is_said() -> None:
    assert said("WIRE-112", after_a_cut_replay(0, 1, whole=True)) == "nothing"
    assert said("WIRE-112", after_a_cut_replay()) == "nothing"
    assert said("WIRE-112", resumed()) == "nothing"
