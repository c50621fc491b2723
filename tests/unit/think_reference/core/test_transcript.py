"""What a client's list may change in the stored messages (WIRE-52, WIRE-57, WIRE-61)."""

from __future__ import annotations

import pytest

from reference_world import Rows, applied, assistant, stored_user, texts_of, user
from think_conformance.wire.frames import Message
from think_reference.core.transcript import Transcript

STORED = [stored_user("u1"), assistant("a1", "one two"), stored_user("u2"), assistant("a2", "three")]


def with_tool(message: Message, call: str) -> Message:
    part = {"type": "tool-x", "toolCallId": call, "state": "output-available", "input": {}, "output": 1}
    return {**message, "parts": [*message["parts"], part]}


def taken(stored: list[Message], incoming: list[Message], unanswered: tuple[str, ...] = ()) -> list[Message]:
    """The transcript after reconciling; the journal writes are checked to say the same."""
    transcript = Transcript(stored)
    rows = Rows(messages=list(stored))
    for write in transcript.reconcile(incoming, unanswered, {"streaming"}):
        rows = applied(rows, write)
    assert rows.messages == transcript.messages
    return transcript.messages


def test_known_ids_are_updated_in_place_unknown_ones_appended_absent_ones_kept() -> None:
    edited = user("u1", "edited")
    after = taken(STORED, [edited, user("u3")])
    assert texts_of(after) == ["u1: edited", "a1: one two", "u2: u2", "a2: three", "u3: u3"]


def test_a_list_the_server_already_has_changes_nothing() -> None:
    assert Transcript(STORED).reconcile([user("u1"), STORED[1], user("u2")], (), ()) == []


@pytest.mark.parametrize(
    "echo",
    [
        assistant("a1", "one"),
        assistant("a1", "one two", "streaming"),
        assistant("a1", ""),
        assistant("made-up", "one two"),
        assistant("made-up", "one", "streaming"),
        assistant("streaming", "anything"),
    ],
    ids=["older", "unsettled", "empty", "made-up", "made-up-older", "running"],
)
def test_an_echo_of_an_answer_is_not_taken(echo: Message) -> None:
    assert taken(STORED, [user("u1"), echo, user("u3")]) == [*STORED, stored_user("u3")]


def test_an_echo_with_a_finished_tool_part_is_not_taken_either() -> None:
    stored = [STORED[0], with_tool(STORED[1], "c1")]
    assert taken(stored, [user("u1"), with_tool(assistant("made-up", "one two"), "c1")]) == stored
    other = with_tool(assistant("made-up", "one two"), "c2")
    assert taken(stored, [user("u1"), other]) == [*stored, other]


def test_an_echo_of_an_answer_that_still_runs_is_not_taken_under_any_id() -> None:
    stored = [stored_user("u1")]
    after = taken(stored, [user("u1"), assistant("made-up", "on"), user("u2")], unanswered=("u1",))
    assert texts_of(after) == ["u1: u1", "u2: u2"]


@pytest.mark.parametrize("echo", ["one", "one two", "thr", ""])
def test_an_echo_that_overlapping_sends_have_moved_is_not_taken(echo: str) -> None:
    stored = [*STORED, stored_user("u3")]
    assert taken(stored, [user("u1"), user("u2"), user("u3"), assistant("made-up", echo)]) == stored


def test_an_echo_of_the_streaming_answer_behind_another_message_is_not_taken() -> None:
    transcript = Transcript([stored_user("u1"), stored_user("u2")])
    sent = [user("u1"), user("u2"), assistant("made-up", "on"), user("u3")]
    transcript.reconcile(sent, (), (), assistant("a1", "one"))
    assert texts_of(transcript.messages) == ["u1: u1", "u2: u2", "u3: u3"]


@pytest.mark.parametrize("part", [{"type": "file", "url": "data:,", "mediaType": "text/plain"}, "odd"])
def test_a_copy_that_shows_more_than_any_answer_is_taken(part: object) -> None:
    more = {**assistant("made-up", "one"), "parts": [part]}
    assert taken(STORED, [user("u1"), more]) == [*STORED, more]


def test_an_imported_conversation_is_taken_whole_and_settled() -> None:
    after = taken([], [user("u1"), assistant("x1", "hi", "streaming"), user("u2")])
    assert after == [stored_user("u1"), assistant("x1", "hi"), stored_user("u2")]


def test_an_edited_answer_that_is_no_echo_is_updated() -> None:
    assert texts_of(taken(STORED, [assistant("a1", "better")]))[1] == "a1: better"


def test_an_answer_is_stored_behind_its_own_user_message() -> None:
    transcript = Transcript([stored_user("u1"), stored_user("u2")])
    transcript.store_answer(assistant("a1", "one"), "u1")
    transcript.store_answer(assistant("a3", "again"), "u1")
    transcript.store_answer(assistant("a2", "two"), "u2")
    transcript.store_answer(assistant("a1", "one more"), "u1")
    transcript.store_answer(assistant("a4", "lost"), "gone")
    assert texts_of(transcript.messages) == [
        "u1: u1",
        "a1: one more",
        "a3: again",
        "u2: u2",
        "a2: two",
        "a4: lost",
    ]


def test_dropping_answers_leaves_everything_else() -> None:
    transcript = Transcript([*STORED[:2], assistant("a1b", "x"), *STORED[2:]])
    rows = Rows(messages=transcript.messages)
    for write in transcript.drop_answers("u1"):
        rows = applied(rows, write)
    assert texts_of(transcript.messages) == ["u1: u1", "u2: u2", "a2: three"]
    assert rows.messages == transcript.messages
    assert transcript.drop_answers("gone") == []


@pytest.mark.parametrize(
    ("incoming", "clash"),
    [
        ([user("a1")], "a1"),
        ([assistant("u1", "x")], "u1"),
        ([user("streaming")], "streaming"),
        ([user("n"), assistant("n", "x")], "n"),
        ([user("u1"), assistant("a1", "x"), user("new")], None),
    ],
)
def test_an_id_never_changes_its_role(incoming: list[Message], clash: str | None) -> None:
    why = Transcript(STORED).conflict(incoming, {"streaming"})
    assert why == (clash and f"message id `{clash}` belongs to another role")
