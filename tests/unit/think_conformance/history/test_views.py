"""What a view knows: turns and their ids, acceptance, outcomes by strength, deaths, faults."""

from __future__ import annotations

from typing import Any

import pytest

from histories import Story, answer, plain_turn, user
from think_conformance.errors import UsageError
from think_conformance.history.op import Record
from think_conformance.history.views import View


def ids(story: Story) -> list[list[str]]:
    return [chain.ids for chain in View(story.history).chains]


# ---- identity of a turn -----------------------------------------------------------------------


def two_turns() -> tuple[Story, str]:
    story = Story()
    a = story.open("a")
    story.send(a, 1)
    story.send(a, 2)
    story.pending(a, "r1")
    story.pending(a, "r2")
    return story, a


def test_an_id_nobody_sent_joins_the_turn_with_its_message_ids() -> None:
    story, a = two_turns()
    story.terminal(a, "s", messages=["u1"])
    assert ids(story) == [["r1", "s"], ["r2"]]


def test_of_equal_message_ids_the_unfinished_turn_is_joined() -> None:
    story = Story()
    a = story.open("a")
    plain_turn(story, [a])
    story.send(a, 1, ident="again")
    story.terminal(a, "s", messages=["u1"])
    assert ids(story) == [["r1"], ["again", "s"]]


def test_of_two_unfinished_turns_with_equal_message_ids_none_is_joined() -> None:
    story = Story()
    a = story.open("a")
    story.send(a, 1)
    story.send(a, 1, ident="again")
    story.terminal(a, "s", messages=["u1"])
    assert ids(story) == [["r1"], ["again"], ["s"]]
    assert all(chain.ambiguous for chain in View(story.history).chains)


def test_a_finished_turn_is_joined_when_there_is_no_other() -> None:
    story = Story()
    a = story.open("a")
    plain_turn(story, [a])
    story.terminal(a, "s", messages=["u1"])
    assert ids(story) == [["r1", "s"]]


def test_without_message_ids_the_one_interrupted_turn_is_joined() -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    story.start(a)
    story.terminal(a, outcome="recovering", messages=None)
    story.start(a, "s")
    assert ids(story) == [["r1", "s"]]


def test_an_id_that_fits_two_turns_joins_neither_and_marks_both() -> None:
    story, a = two_turns()
    story.kill(a)
    story.start(story.open("a"), "s")
    view = View(story.history)
    assert [(chain.ids, chain.ambiguous) for chain in view.chains] == [
        (["r1"], True),
        (["r2"], True),
        (["s"], True),
    ]


def test_where_turns_name_their_messages_the_targets_own_turns_join_none() -> None:
    story, a = two_turns()
    story.terminal(a, "r2", messages=["u2"])
    story.terminal(a, "s", messages=None)
    view = View(story.history)
    assert [(chain.ids, chain.ambiguous) for chain in view.chains] == [
        (["r1"], False),
        (["r2"], False),
        (["s"], False),
    ]


# ---- acceptance and outcome -------------------------------------------------------------------


def accepted(story: Story) -> int | None:
    return View(story.history).chains[0].accepted


def test_acceptance_is_seen_in_a_frame_a_transcript_or_a_model_call() -> None:
    for evidence in ("pending", "transcript", "call", "start", "offer"):
        story = Story()
        a = story.open("a")
        story.send(a)
        arguments: dict[str, tuple[Any, ...]] = {"transcript": (a, user()), "call": ()}
        index = getattr(story, evidence)(*arguments.get(evidence, (a,)))
        assert accepted(story) == index, evidence


def test_an_empty_answer_to_an_ack_or_an_old_message_is_no_acceptance() -> None:
    story = Story()
    a = story.open("a")
    plain_turn(story, [a])
    story.send(a, 1, ident="again")
    story.ack(a, "again")
    story.terminal(a, "again", None, replay=True)
    story.transcript(a, user())
    assert View(story.history).chain_of["again"].accepted is None


def kinds(story: Story) -> list[str]:
    return list(View(story.history).chains[0].finals)


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([{"outcome": "completed"}], ["completed"]),
        ([{"outcome": None}], ["completed"]),
        ([{"outcome": None, "messages": ["u1"], "replay": True}], ["completed"]),
        ([{"outcome": None, "replay": True}], []),
        ([{"outcome": "recovering"}], []),
        ([{"error": True}], ["error"]),
        ([{"error": False}, {"outcome": None}], ["error"]),
        ([{"outcome": "aborted"}, {"outcome": "skipped"}], ["aborted", "skipped"]),
    ],
)
def test_the_kind_of_a_terminal(frames: list[dict[str, Any]], expected: list[str]) -> None:
    story = Story()
    a = story.open("a")
    story.send(a)
    for frame in frames:
        if "error" in frame:
            story.failure(a, done=frame["error"])
        else:
            story.terminal(a, **frame)
    assert kinds(story) == expected


def test_an_error_told_to_one_makes_a_bare_end_an_error_for_all() -> None:
    story = Story()
    a, b = story.open("a"), story.open("b")
    story.send(a)
    story.terminal(b, outcome=None)
    story.failure(a, done=False)
    assert kinds(story) == ["error"]


def strength(story: Story) -> str:
    view = View(story.history)
    return view.evidence(view.chains[0]).strength


def test_evidence_of_an_outcome_by_strength() -> None:
    def told(*stored: dict[str, Any], **how: Any) -> str:
        story = Story()
        a = story.open("a")
        story.send(a)
        story.start(a)
        if how.get("stop"):
            story.cancel(a)
        if how.get("told"):
            story.terminal(a)
        return strength(story.epilogue(user(), *stored, idle=how.get("idle", True)))

    assert told(answer("w1 "), told=True) == "told"
    assert told(answer("w1 ")) == "stored"
    assert told(answer("w1 "), idle=False) == "none"
    assert told(stop=True) == "stopped"
    assert told() == "none"


def test_the_answer_of_another_turn_is_no_evidence() -> None:
    story = Story()
    a = story.open("a")
    story.send(a, 1)
    story.pending(a)
    story.send(a, 2)
    story.start(a, "r2", "a2")
    assert strength(story.epilogue(user(1), user(2), answer("w1 ", "a2"))) == "none"


# ---- the rest ---------------------------------------------------------------------------------


def test_deaths_are_kills_ends_and_evictions() -> None:
    story = Story()
    story.fault("f", {"process": "evict"}, leg="client", fires_on="a.1")
    fired = len(story.history) - 2
    killed = story.kill()
    story.record("process", "process", {"epoch": 1}, {"action": "pause", "pid": 1})
    evicted = story.operation("rpc", method="evict", args=[])
    assert View(story.history).deaths == [fired, killed, evicted]


def test_a_fault_that_names_no_connection_disturbs_them_all() -> None:
    story = Story()
    story.open("a")
    story.open("b")
    story.fault("f", {"drop": True}, fires_on="nobody.9")
    view = View(story.history)
    assert all(c.disturbed is not None and c.tampered is not None for c in view.connections.values())


def test_only_the_transcript_of_the_epilogue_is_final() -> None:
    story = Story()
    story.operation("get-messages", "ok", messages=[user()])
    assert View(story.history).final is None
    story.epilogue(user(), answer("w1 "))
    final = View(story.history).final
    assert final is not None
    assert len(final.messages) == 2


def test_unreadable_and_hostile_records_are_left_out() -> None:
    story = Story()
    a = story.open("a")
    where = {"client": "a", "connection": a, "epoch": 1}
    for payload in (
        None,
        {"text": "no json", "size": 7},
        {"binary": True, "size": 3},
        {"frame": {"type": "cf_agent_use_chat_response", "id": 7}},
        {"frame": {"type": "cf_agent_use_chat_response", "id": "r", "body": "[" * 5000, "done": False}},
        {"frame": {"type": "cf_agent_chat_messages", "messages": [{"role": "assistant", "parts": 5}]}},
        {"frame": {"type": "unheard-of"}},
    ):
        story.record("client", "frame-in", where, payload)
    story.record("client", "frame-out", where, {"frame": {"type": "cf_agent_use_chat_request", "id": "r"}})
    story.record("run", "ok", {}, {"messages": [None, 3, {"parts": [None, {"type": "text"}]}]})
    story.record("process", "process", {}, "nonsense")
    story.record("model", "model-call", {"marker": None}, [])
    view = View(story.history)
    assert [type(p.frame).__name__ for p in view.frames] == ["ChatResponse", "ChatMessages"]


def test_a_flood_of_invented_ids_stays_bounded() -> None:
    story = Story()
    a = story.open("a")
    for number in range(3000):
        story.pending(a, f"invented-{number}")
    assert len(View(story.history).chains) <= 1000


def test_a_broken_head_is_refused_in_words() -> None:
    with pytest.raises(UsageError, match="case record"):
        View([Record(0, 0.0, "run", "case", {}, {"case": 7})])
