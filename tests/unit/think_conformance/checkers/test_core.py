"""Each check of the invariant: a green history, one red per way to be red, a grey one."""

from __future__ import annotations

import pytest

from histories import Story, answer, plain_turn, said, user
from think_conformance.catalogue.model import requirements
from think_conformance.checkers.base import judge, load
from think_conformance.history.views import View


def green() -> Story:
    story = Story()
    plain_turn(story, [story.open("a"), story.open("b")])
    return story.epilogue(user(), answer("w1 "), acks=["r1"])


def grey() -> Story:
    story = Story()
    story.close(story.open("a"))
    return story


@pytest.mark.parametrize("requirement", load())
def test_no_check_at_all_takes_silence_for_an_answer(requirement: str) -> None:
    assert said(requirement, grey()) in ("nothing", "void")


CORE = [
    "TURN-150",
    "WIRE-85",
    "WIRE-206",
    "WIRE-209",
    "KIT-01",
    "KIT-02",
    "KIT-03",
    "KIT-04",
    "WIRE-83",
    "WIRE-93",
]


@pytest.mark.parametrize("requirement", CORE)
def test_a_plain_turn_holds(requirement: str) -> None:
    assert said(requirement, green()) == "holds"


# ---- outcomes ---------------------------------------------------------------------------------


def lost_turn(*stored: dict[str, object], idle: bool = True, silent_s: float = 0.0) -> Story:
    """Accepted, streamed to nobody for long, no terminal; silent before the end of the epilogue."""
    story = Story()
    a = story.open("a")
    story.send(a)
    story.start(a)
    story.close(a)
    story.passes(silent_s)
    return story.epilogue(user(), *stored, idle=idle)


def test_an_accepted_turn_without_outcome_is_broken() -> None:
    assert said("TURN-150", lost_turn()) == "broken"


def test_a_turn_still_without_outcome_at_the_deadline_is_broken() -> None:
    assert said("TURN-150", lost_turn(idle=False, silent_s=7)) == "broken"


def test_a_turn_that_still_streams_when_the_kit_has_no_more_time_is_nobodys_failure() -> None:
    assert said("TURN-150", lost_turn(idle=False, silent_s=1)) == "holds"


def test_idle_and_a_stored_answer_is_an_outcome() -> None:
    assert said("TURN-150", lost_turn(answer("w1 "))) == "holds"


def test_a_stored_answer_counts_under_another_id_behind_the_question() -> None:
    assert said("TURN-150", lost_turn(answer("w1 ", "elsewhere"))) == "holds"


def test_nobody_to_ask_is_no_verdict_on_a_missing_outcome() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.start(a)
    story.kill(a)
    story.begin()
    story.record("run", "epilogue", {}, {"phase": "end"})
    assert said("TURN-150", story) != "broken"


def never_back(reason: str, *, outcome: str = "error", leg: str = "target", told: str = "started") -> Story:
    """A streaming turn, a kill, a start that fails for this reason, and again in the epilogue."""
    story = Story()
    a = story.open("a")
    story.send(a)
    story.call()
    story.start(a)
    ids = {"fault": "f", "token": "f#1"}
    story.record("run", "fault-planned", ids, {"leg": leg, "when": {}, "do": [{"process": "restart"}]})
    story.record("run", "fault-fired", ids, {"leg": leg})
    story.kill(a, calls=[1])
    story.record("process", "process", {"epoch": 2}, {"action": "start"})
    story.record("run", "fault-done", ids, {"did": [], "outcome": outcome, "reason": reason})
    story.begin()
    story.record("run", "info", {}, {"reason": told})
    story.record("run", "epilogue", {}, {"phase": "deadline"})
    story.record("run", "epilogue", {}, {"phase": "end"})
    return story


EXITED = "the target exited at once with code 1; see target.log"
TAKEN = "port 2 is taken by a process that is not the target; end it"


def done(story: Story) -> int:
    return next(r.index for r in story.history if r.kind == "fault-done")


@pytest.mark.parametrize(
    "reason",
    [EXITED, f"TargetNotReady: {EXITED}", "the target did not get ready: no answer", "the target was ended"],
)
def test_a_turn_lost_with_a_target_that_does_not_come_back_is_broken(reason: str) -> None:
    story = never_back(reason)
    found = load()["TURN-150"](View(story.history))
    assert (found.said, found.evidence[-1]) == ("broken", done(story))
    assert "did not come back" in found.reason


def test_who_does_not_come_back_in_the_epilogue_is_no_better() -> None:
    story = never_back("5 s", outcome="timeout", told=EXITED)
    assert load()["TURN-150"](View(story.history)).evidence[-1] == done(story) + 3


def ends_by_itself(*told: str) -> tuple[Story, int]:
    """A turn, and a target that exits when the observer calls; `told` of the starts that followed."""
    story = Story()
    a = story.open("a")
    story.send(a)
    story.start(a)
    story.close(a)
    story.begin()
    ended = story.record("process", "process", {"epoch": 1}, {"action": "exit", "code": 1})
    for reason in told:
        story.record("run", "info", {}, {"reason": reason})
    story.record("run", "epilogue", {}, {"phase": "deadline"})
    story.record("run", "epilogue", {}, {"phase": "end"})
    story.record("process", "process", {"epoch": 1}, {"action": "exit"})
    return story, ended


def test_a_target_that_ends_by_itself_and_is_dead_at_the_end_is_lost_too() -> None:
    story, ended = ends_by_itself()
    assert load()["TURN-150"](View(story.history)).evidence[-1] == ended


@pytest.mark.parametrize("reason", [TAKEN, "command not found: `x`"])
def test_one_that_could_not_be_launched_again_is_not(reason: str) -> None:
    story, _ = ends_by_itself(reason)
    assert said("TURN-150", story) != "broken"


@pytest.mark.parametrize(("reason", "blamed"), [(EXITED, ["TURN-150"]), (TAKEN, [])])
def test_nothing_but_the_invariant_speaks_of_a_target_that_is_gone(reason: str, blamed: list[str]) -> None:
    history = never_back(reason, told=reason).history
    states = {v.requirement: v.state for v in judge(history, requirements(), exercised=requirements())}
    assert [i for i, state in states.items() if state in ("failed", "warned")] == blamed


@pytest.mark.parametrize(
    "story",
    [
        never_back(TAKEN),
        never_back(f"TargetNotReady: {TAKEN}"),
        never_back("port 2 is answered by a process outside the target's process group"),
        never_back(EXITED, told=TAKEN),
        never_back("command not found: `x`"),
        never_back("healed before the list was done"),
        never_back("5 s", outcome="timeout"),
    ],
)
def test_who_was_kept_from_coming_back_is_not_to_blame(story: Story) -> None:
    assert said("TURN-150", story) != "broken"


def test_who_comes_back_late_is_asked_like_anybody() -> None:
    story = never_back(EXITED)
    del story.history[done(story) + 1 :]
    story.restart()
    assert said("TURN-150", story.epilogue(user(), answer("w1 "))) == "holds"


def test_a_request_that_left_no_trace_may_vanish() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.close(a)
    assert said("TURN-150", story.epilogue(acks=["r1"])) == "nothing"


def test_a_request_whose_message_is_stored_may_not() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.close(a)
    assert said("TURN-150", story.epilogue(user(), acks=["r1"])) == "broken"


def two_terminals(second: str, on: str) -> Story:
    story = Story()
    a, b = story.open("a"), story.open("b")
    plain_turn(story, [a, b])
    story.terminal({"a": a, "b": b}[on], outcome=second)
    return story.epilogue(user(), answer("w1 "))


@pytest.mark.parametrize("requirement", ["TURN-150", "WIRE-206", "WIRE-85", "WIRE-209"])
def test_completed_then_aborted_is_broken(requirement: str) -> None:
    assert said(requirement, two_terminals("aborted", "a")) == "broken"


@pytest.mark.parametrize(
    ("requirement", "expected"), [("WIRE-206", "holds"), ("WIRE-85", "broken"), ("WIRE-209", "broken")]
)
def test_the_same_terminal_twice_unasked_breaks_the_count_only(requirement: str, expected: str) -> None:
    assert said(requirement, two_terminals("completed", "a")) == expected


def told(*kinds: str, acked: bool = True) -> Story:
    """One observer after another is told the outcome of the turn, late and by ack."""
    story = Story()
    a = story.open("a")
    plain_turn(story, [a])
    for kind in kinds:
        if acked:
            story.ack(a)
        story.terminal(a, outcome=kind, replay=True)
    return story.epilogue(user(), answer("w1 "))


def test_terminals_that_were_asked_for_are_no_surplus() -> None:
    story = told("completed", "completed")
    assert {r: said(r, story) for r in ("WIRE-85", "WIRE-209", "WIRE-206")} == {
        "WIRE-85": "holds",
        "WIRE-209": "holds",
        "WIRE-206": "holds",
    }


@pytest.mark.parametrize(("raced", "expected"), [(True, "holds"), (False, "broken")])
@pytest.mark.parametrize("requirement", ["WIRE-85", "WIRE-209", "WIRE-104"])
def test_a_send_that_another_may_have_overtaken_is_answered_like_a_resend(
    requirement: str, raced: bool, expected: str
) -> None:
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    if raced:
        story.send(b)
    story.call()
    story.start([a, b])
    story.start(a, replay=True)
    story.call_ends()
    story.transcript([a, b], user(), answer("w1 "))
    story.terminal([a, b])
    if not raced:
        story.send(b)
    story.terminal([a, b], replay=True)
    assert said(requirement, story.epilogue(user(), answer("w1 "))) == expected


def test_another_kind_on_ack_is_broken_even_if_asked_for() -> None:
    story = told("error")
    assert {r: said(r, story) for r in ("WIRE-206", "WIRE-209", "TURN-150")} == dict.fromkeys(
        ("WIRE-206", "WIRE-209", "TURN-150"), "broken"
    )


def test_recovering_first_and_a_final_outcome_later_is_one_outcome() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.call()
    story.start(a)
    story.words(a, "w1 ")
    story.call_ends(how="aborted")
    story.terminal(a, outcome="recovering")
    story.call()
    story.start(a, "r2", continuation=True)
    story.words(a, "w2 ", request="r2", continuation=True)
    story.call_ends()
    story.transcript(a, user(), answer("w1 w2 "))
    story.terminal(a, "r2", continuation=True)
    story.ack(a)
    story.terminal(a, outcome="completed", replay=True)
    story.epilogue(user(), answer("w1 w2 "))
    for requirement in ("TURN-150", "WIRE-206", "WIRE-85", "WIRE-209", "KIT-02", "KIT-04", "WIRE-183"):
        assert said(requirement, story) == "holds", requirement


def failed(*, old: bool, shape: str) -> Story:
    """A turn that fails, told in shape A or B, with or without the newer fields."""
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.call()
    story.start([a, b])
    story.call_ends(how="error")
    if shape == "A":
        story.failure([a, b], done=False)
        story.terminal([a, b], outcome=None if old else "error")
    else:
        story.failure([a, b], done=True)
    story.epilogue(user())
    return story


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("shape", ["A", "B"])
@pytest.mark.parametrize("requirement", ["TURN-150", "WIRE-85", "WIRE-206", "WIRE-209"])
def test_both_shapes_of_an_error_are_one_outcome(requirement: str, shape: str, old: bool) -> None:
    assert said(requirement, failed(old=old, shape=shape)) == "holds"


def test_a_completed_told_elsewhere_after_an_error_is_broken() -> None:
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.start([a, b])
    story.failure(a, done=True)
    story.terminal(b, outcome="completed")
    story.epilogue(user())
    assert said("WIRE-206", story) == "broken"


def test_an_empty_answer_to_a_late_ack_claims_nothing() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.call()
    story.start(a)
    story.failure(a, done=True)
    story.ack(a)
    story.terminal(a, outcome=None, replay=True)
    assert said("WIRE-206", story.epilogue(user())) == "holds"


def test_a_connection_that_followed_and_is_left_without_an_end_is_broken() -> None:
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.start([a, b])
    story.transcript(a, user(), answer("w1 "))
    story.terminal(a)
    assert said("WIRE-85", story.epilogue(user(), answer("w1 "))) == "broken"


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ({"half_open": {"for": 1}}, "holds"),
        ({"cut": "blackhole"}, "holds"),
        ({"stall": {"for": 1}}, "broken"),
    ],
)
def test_what_a_fault_cost_a_connection_is_not_owed_to_it(action: dict[str, object], expected: str) -> None:
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.start([a, b])
    story.fault("f", action, fires_on=b)
    story.transcript(a, user(), answer("w1 "))
    story.terminal(a)
    assert said("WIRE-85", story.epilogue(user(), answer("w1 "))) == expected


def test_frames_behind_a_tampering_fault_are_not_counted() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.start(a)
    story.fault("f", {"duplicate": 1}, fires_on=a)
    story.terminal(a)
    story.terminal(a)
    assert said("WIRE-209", story.epilogue(user(), answer("w1 "))) != "broken"


# ---- messages and calls -----------------------------------------------------------------------


def test_a_lost_user_message_is_broken() -> None:
    story = Story()
    plain_turn(story, [story.open("a")])
    assert said("KIT-01", story.epilogue(answer("w1 "))) == "broken"


def test_a_user_message_under_another_id_is_not_lost() -> None:
    story = Story()
    plain_turn(story, [story.open("a")])
    assert said("KIT-01", story.epilogue(user(ident="renamed"), answer("w1 "))) == "holds"


def test_a_skipped_turn_need_not_keep_its_message() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.terminal(a, outcome="skipped")
    assert said("KIT-01", story.epilogue()) == "nothing"


def test_a_message_stored_twice_by_id_is_broken() -> None:
    story = Story()
    plain_turn(story, [story.open("a")])
    assert said("KIT-03", story.epilogue(user(), answer("w1 "), answer("w2 "))) == "broken"


def test_a_question_stored_twice_under_two_ids_is_broken() -> None:
    story = Story()
    plain_turn(story, [story.open("a")])
    assert said("KIT-03", story.epilogue(user(), user(ident="copy"), answer("w1 "))) == "broken"


def test_an_answer_stored_twice_under_two_ids_is_broken() -> None:
    story = Story()
    plain_turn(story, [story.open("a")])
    assert said("KIT-03", story.epilogue(user(), answer("w1 "), answer("w1 ", "copy"))) == "broken"


def test_two_turns_may_be_answered_alike() -> None:
    story = Story()
    a = story.open("a")
    plain_turn(story, [a], 1)
    plain_turn(story, [a], 2)
    story.epilogue(user(1), answer("w1 ", "a1"), user(2), answer("w1 ", "a2"))
    assert said("KIT-03", story) == "holds"


def called_again(*, ended: bool, how: str = "done", crash: bool = False) -> Story:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.call()
    story.start(a)
    story.call_ends(how=how)
    if ended:
        story.terminal(a)
    if crash:
        story.kill(a)
        story.restart()
    story.call()
    story.call_ends()
    return story.epilogue(user(), answer("w1 "))


def test_a_second_call_without_a_cause_is_broken() -> None:
    assert said("KIT-02", called_again(ended=False)) == "broken"


def test_a_call_after_the_outcome_is_broken_whatever_else_happened() -> None:
    assert said("KIT-02", called_again(ended=True, crash=True)) == "broken"


def test_a_crash_explains_one_more_call() -> None:
    assert said("KIT-02", called_again(ended=False, crash=True)) == "holds"


def test_a_crash_explains_no_third_call() -> None:
    story = called_again(ended=False, crash=True)
    story.call()
    assert said("KIT-02", story) == "broken"


def test_a_call_that_failed_may_be_made_again() -> None:
    assert said("KIT-02", called_again(ended=False, how="error")) == "holds"


def test_a_tool_result_explains_the_next_call() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.call()
    story.call_ends()
    story.call(messages=[{"role": "user", "content": "[[case/t1]]"}, {"role": "tool", "content": "7"}])
    story.call_ends()
    assert said("KIT-02", story.epilogue(user(), answer("w1 "))) == "holds"


def test_the_same_message_under_a_new_request_id_may_run_again() -> None:
    story = Story()
    a = story.open("a")
    plain_turn(story, [a])
    story.send(a, 1, ident="r1-again", trigger="regenerate-message")
    story.call()
    story.call_ends()
    story.terminal(a, "r1-again")
    assert said("KIT-02", story.epilogue(user(), answer("w2 ", "a2"))) == "holds"


# ---- text and order ---------------------------------------------------------------------------


def test_text_that_was_shown_and_is_not_stored_is_broken() -> None:
    story = Story()
    plain_turn(story, [story.open("a")])
    assert said("KIT-04", story.epilogue(user(), answer("other"))) == "broken"


def test_a_cleared_chat_keeps_no_text() -> None:
    from think_conformance.wire.frames import ChatClear

    story = Story()
    a = story.open("a")
    plain_turn(story, [a])
    story.out(a, ChatClear())
    assert said("KIT-04", story.epilogue()) == "nothing"


def test_text_of_a_discarded_try_need_not_be_kept() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.start(a)
    story.words(a, "too long ")
    story.start(a, seq=2)
    story.words(a, "short ", first=3)
    story.terminal(a)
    assert said("KIT-04", story.epilogue(user(), answer("short "))) == "holds"


def test_text_without_seq_is_read_by_passes() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.words(a, "w1 ", first=None)
    story.ack(a)
    story.words(a, "w1 ", first=None, replay=True)
    story.complete_replay(a)
    story.words(a, "w2 ", first=None)
    story.terminal(a, outcome=None)
    assert said("KIT-04", story.epilogue(user(), answer("w1 w2 "))) == "holds"


def streamed(*seqs: int, owed: int | None = None) -> Story:
    """Live chunks with these seqs on the sender, and all up to `owed` on another connection."""
    story = Story()
    a = story.open("a")
    story.send(a)
    for seq in seqs:
        story.words(a, f"w{seq} ", first=seq)
    if owed is not None:
        b = story.open("b")
        story.words(b, *(f"w{n} " for n in range(owed + 1)), first=0)
    story.terminal(a)
    return story.epilogue(user(), answer("w0 w1 w2 w3 "))


@pytest.mark.parametrize("seqs", [(0, 1, 3), (0, 1, 1, 2), (1, 2)])
def test_live_seq_with_a_gap_a_repeat_or_a_late_start_is_broken(seqs: tuple[int, ...]) -> None:
    assert said("WIRE-83", streamed(*seqs)) == "broken"


def test_an_end_before_the_last_chunk_is_broken() -> None:
    assert said("WIRE-83", streamed(0, 1, owed=3)) == "broken"
    assert said("WIRE-83", streamed(0, 1, owed=1)) == "holds"


def test_no_transcript_between_the_last_chunk_and_the_end_is_broken() -> None:
    story = Story()
    a = story.open("a")
    story.transcript(a, connect=True)
    story.send(a)
    story.start(a)
    story.terminal(a)
    assert said("WIRE-93", story.epilogue(user(), answer("w1 "))) == "broken"
