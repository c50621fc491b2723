"""What is a difference between two runs, and what is none."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from histories import Story, answer, plain_turn, renumbered, user
from think_conformance.differences.labels import PIECES, chunk_of, told
from think_conformance.differences.rows import compare
from think_conformance.errors import UsageError
from think_conformance.history.op import History, Record, frame_of
from think_conformance.wire.frames import Identity


def played() -> History:
    """Two tabs, one turn, and what an observer is told in the end."""
    story = Story()
    names = [story.open("a"), story.open("b")]
    story.get(names, Identity(name="n", agent="a"))
    for name in names:
        story.transcript(name, connect=True)
        story.probe(name)
        story.idle(name)
    plain_turn(story, names)
    story.begin()
    observer = story.observe()
    story.idle(observer, "epilogue-1")
    story.end(observer, user(), answer("w1 "), acks=["r1"])
    return story.history


PLAYED = played()
FRAMES = [record.index for record in PLAYED if record.kind == "frame-in"]


def texts(a: History, b: History) -> list[str]:
    return [row.text for row in compare({"case": a}, {"case": b}).rows]


def bent(index: int, change: Callable[[Record], list[Record]]) -> History:
    return renumbered(r for record in PLAYED for r in (change(record) if record.index == index else [record]))


def renamed(record: Record) -> list[Record]:
    frame = {**record.payload["frame"], "type": "cf_agent_invented"}
    return [msgspec.structs.replace(record, payload={"frame": frame, "size": 1})]


def test_a_run_does_not_differ_from_itself() -> None:
    found = compare({"case": PLAYED}, {"case": played()})
    assert (found.rows, found.connections, found.compared) == ((), 3, 3)


@pytest.mark.parametrize("index", FRAMES)
def test_a_frame_that_is_missing_is_one_difference(index: int) -> None:
    (text,) = texts(PLAYED, bent(index, lambda record: []))
    assert text.endswith(" / nothing")


@pytest.mark.parametrize("index", FRAMES)
def test_a_frame_of_another_type_is_one_difference(index: int) -> None:
    base = told(frame_of(PLAYED[index])) == "identity"  # what the agent base sends is apart from all else
    assert len(texts(PLAYED, bent(index, renamed))) == (2 if base else 1)


@pytest.mark.parametrize("index", FRAMES)
def test_a_frame_that_came_twice_is_one_difference_unless_it_is_a_piece(index: int) -> None:
    frame = frame_of(PLAYED[index]) or {}
    piece = (chunk_of(frame) or {}).get("type") in PIECES
    polled = PLAYED[index].ids["client"] == "observer" and "probeId" in frame
    found = texts(PLAYED, bent(index, lambda record: [record, record]))
    assert len(found) == (0 if piece or polled else 1)


def chunks(*labels: str) -> History:
    """A turn told with these chunks, to one client that stays."""
    story = Story()
    name = story.open()
    story.send(name)
    story.call()
    for label in labels:
        story.chunk(name, {"type": label})
    return story.epilogue().history


def test_what_moved_is_one_difference() -> None:
    first, second = chunks("start", "file", "finish"), chunks("start", "finish", "file")
    assert texts(first, second) == ["order of frames, finish: later / earlier"]
    assert texts(second, first) == ["order of frames, file: later / earlier"]


def test_the_same_difference_in_many_cases_is_one_row_with_an_example() -> None:
    a, b = chunks("start", "file", "finish"), chunks("start", "finish")
    (row,) = compare({"one": a, "two": a}, {"one": b, "two": b}).rows
    assert (row.text, row.cases) == ("frames: file / nothing", ("one", "two"))
    assert (row.example.case, row.example.whose, row.example.b) == ("one", "a.1", None)
    assert row.example.a is not None
    assert (frame_of(a[row.example.a]) or {})["body"] == '{"type":"file"}'


def test_a_long_run_of_chunks_is_told_by_its_ends() -> None:
    assert texts(chunks("start", "file", "abort", "finish"), chunks()) == ["frames: start … finish / nothing"]


def cut_after(words: int, *, by_peer: bool = True) -> History:
    story = Story()
    name = story.open()
    story.send(name)
    story.call()
    story.start(name)
    story.transcript(name, *[user()] * words)
    if words > 1:
        story.terminal(name)
    if by_peer:
        story.close(name)
    return story.epilogue().history


def test_what_a_cut_connection_did_not_get_any_more_is_no_difference() -> None:
    assert texts(cut_after(2), cut_after(1)) == []
    assert texts(cut_after(2, by_peer=False), cut_after(1, by_peer=False)) == [
        "frames: terminal completed / nothing"
    ]


def test_connections_that_came_at_different_moments_are_not_compared() -> None:
    def joined(*, late: bool) -> History:
        story = Story()
        name = story.open()
        story.send(name)
        story.call()
        if late:
            story.call_ends()
            story.terminal(name)
            story.transcript(story.open("b"), connect=True)
        else:
            story.offer(story.open("b"))
            story.call_ends()
            story.terminal(name)
        return story.epilogue().history

    found = compare({"case": joined(late=True)}, {"case": joined(late=False)})
    assert (found.rows, found.connections - found.compared) == ((), 1)


def test_a_field_that_only_one_run_shows_is_one_difference_wherever_it_shows() -> None:
    def kept(*cases: bool) -> dict[str, History]:
        run = {}
        for number, stamped in enumerate(cases):
            story = Story()
            message = {**user(), "metadata": {"channel": "web"}} if stamped else user()
            story.transcript(story.open(), message)
            run[f"case-{number}"] = story.history
        return run

    assert compare(kept(True, False), kept(False, True)).rows == ()
    found = [row.text for row in compare(kept(True, True), kept(False, False)).rows]
    assert found == [
        "shape of user message: metadata (object) / nothing",
        "shape of user message: metadata.channel (text) / nothing",
    ]


def test_prompts_and_stored_messages_count() -> None:
    def asked(*roles: str) -> History:
        story = Story()
        story.send(story.open())
        story.call(messages=[{"role": role, "content": "[[case/t1]]"} for role in roles])
        return story.epilogue(user(), *[answer("x")] * (len(roles) - 1)).history

    assert texts(asked("system", "user"), asked("user")) == [
        "prompts: system / nothing",
        "stored: assistant [text (done)] / nothing",
    ]


def test_one_more_connection_is_a_difference() -> None:
    def opened(times: int) -> History:
        story = Story()
        for _ in range(times):
            story.close(story.open())
        return story.epilogue().history

    assert texts(opened(2), opened(1)) == ["connection: one more / nothing"]


def test_a_case_that_one_run_lacks_is_a_difference() -> None:
    both = {"one": PLAYED, "two": PLAYED}
    assert [row.text for row in compare(both, {"one": PLAYED}).rows] == ["case two: played / nothing"]


def test_runs_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(UsageError, match="no case in common"):
        compare({"one": PLAYED}, {"two": PLAYED})
    with pytest.raises(UsageError, match="different plans"):
        compare({"one": PLAYED}, {"one": Story(plan={"operations": [{"do": "wait"}]}).history})
    with pytest.raises(UsageError, match="case record"):
        compare({"one": PLAYED}, {"one": PLAYED[1:]})
