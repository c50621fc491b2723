"""Histories as rows between lanes."""

from __future__ import annotations

from typing import Any

import pytest

from histories import Story, plain_turn
from sample_run import HOSTILE
from think_conformance.history.op import History, Record
from think_conformance.wire.codec import dumps
from think_reports.timeline import LABEL, ROWS, Row, Span, timeline


def labels(history: History, *evidence: int) -> list[str]:
    return [f"{r.start}>{r.end or ''}: {r.label}" for r in timeline(history, evidence).rows]


def crashed() -> Story:
    story = Story(plan={"model": {"t1": [[{"text": "w1 "}, {"text": "w2 "}]]}})
    a = story.open("a")
    story.fault("cut", fires_on=a)
    story.send(a)
    story.call()
    story.start(a)
    story.words(a, "w1 ", "w2 ", "secret")
    story.kill(a, calls=[1])
    story.restart()
    story.open("b")
    return story


def test_lanes_stand_from_the_clients_to_the_far_ends() -> None:
    story = crashed()
    assert timeline(story.history, ()).lanes == ["client a", "client b", "proxy", "target", "model"]
    story.record("effects", "effect", {"key": "k"}, {})
    assert timeline(story.history, ()).lanes[-1] == "world"
    assert timeline(Story().history, ()).lanes == ["target"]


def test_every_happening_has_its_row() -> None:
    assert labels(crashed().history) == [
        "target>: ready",
        "client a>target: connects as a.1",
        "proxy>: fault cut fires",
        "client a>target: request · r1",
        "target>model: asks, t1 call 1",
        "target>client a: start seq 0 ⋯ text-delta '▒▒▒▒▒▒' seq 3 · r1",
        "target>: kill",
        "client a>: a.1 closed, 1006",
        "model>target: aborted, t1 call 1",
        "target>: ready",
        "client b>target: connects as b.1",
    ]


def test_frames_are_told_in_short_words() -> None:
    story = Story(plan={"model": {"t1": [[{"text": "w1 "}]]}})
    plain_turn(story, [story.open("a")])
    story.failure("a.1", done=False)
    story.complete_replay("a.1")
    story.terminal("a.1", outcome=None, replay=True)
    story.epilogue()
    told = labels(story.history)
    for label in (
        "target>client a: transcript: user, assistant",
        "target>client a: end completed · r1",
        "target>client a: error text · r1",
        "target>client a: replay complete replayed · r1",
        "target>client a: end replayed · r1",
        "client observer>target: stream resume request · epilogue-1",
        "target>client observer: stream resume none idle · epilogue-1",
        "target>client observer: reads transcript: empty",
        "target>: epilogue: idle",
    ):
        assert label in told


def test_chunks_to_two_clients_are_one_row_each() -> None:
    story = Story()
    names = [story.open("a"), story.open("b")]
    story.start(names)
    story.words(names, "x", "y", "z")
    assert [r.last - r.index for r in timeline(story.history, ()).rows][3:] == [6, 6]


def test_many_chunks_with_long_names_are_still_one_row() -> None:
    story = Story()
    a, name = story.open("a"), "r" * 60
    story.start(a, name)
    story.words(a, *"abcdefgh", request=name)
    story.words(a, "other", request="r2")
    assert [r.last - r.index for r in timeline(story.history, ()).rows][2:] == [8, 0]


def test_what_decides_stands_alone_and_is_marked() -> None:
    story = Story()
    a = story.open("a")
    story.start(a)
    decisive = story.words(a, "x")
    story.words(a, "y", first=2)
    rows = timeline(story.history, [decisive]).rows
    assert [(r.index, r.decisive) for r in rows[2:]] == [(4, False), (5, True), (6, False)]


def test_noise_is_left_out_unless_it_decides() -> None:
    story = Story()
    a = story.open("a")
    noise = story.record("client", "frame-in", {"client": "a"}, {"frame": {"type": "cf_agent_identity"}})
    story.open("control")
    assert len(timeline(story.history, ()).rows) == 2
    assert len(timeline(story.history, [noise]).rows) == 3
    assert timeline(story.history, ()).lanes == ["client a", "target"]
    assert a == "a.1"


def test_spans_tell_who_is_there() -> None:
    spans = timeline(crashed().history, ()).spans
    assert spans == [
        Span(lane="target", first=0, last=6),
        Span(lane="client a", first=1, last=7),
        Span(lane="target", first=9, last=11),
        Span(lane="client b", first=10, last=11),
    ]


def long_story(frames: int) -> tuple[History, int]:
    story = Story()
    a = story.open("a")
    for number in range(frames):
        story.probe(a, f"p{number}")
    return story.history, len(story.history) // 2


def test_a_long_story_keeps_its_ends_and_what_decides() -> None:
    history, middle = long_story(5000)
    rows = timeline(history, [middle]).rows
    assert len(rows) <= ROWS
    assert {0, 1, middle, middle - 3, middle + 3, len(history) - 1} - {r.index for r in rows} == {0}
    gaps = [r for r in rows if r.look == "gap"]
    assert [r.label for r in gaps] == ["left out", "left out"]
    untold = 2  # the case record and the dial
    assert sum(r.last - r.index + 1 for r in rows) == len(history) - untold


def test_a_story_that_decides_everywhere_stays_bounded() -> None:
    history, _ = long_story(5000)
    assert len(timeline(history, range(5000)).rows) <= 2 * ROWS + 1


def test_a_clients_name_cannot_take_the_lane_of_another_part() -> None:
    story = Story()
    story.open("target")
    assert timeline(story.history, ()).lanes == ["client target", "target"]


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_content_is_plain_and_short(kind: str) -> None:
    text = HOSTILE[kind]
    frame: dict[str, Any] = {"type": text, "id": text, "messages": [{"role": text}, text]}
    history = [
        Record(0, 1.0, "run", "case", {}, text),
        Record(1, 1.0, "client", "open", {"client": text, "connection": text}, text),
        Record(2, 1.0, "client", "frame-in", {"client": text}, {"frame": frame}),
        Record(3, 1.0, "client", "frame-in", {"client": text}, {"frame": {"type": text, "reason": text}}),
        Record(4, 1.0, "client", "frame-in", {"client": text}, {"text": text}),
        Record(5, 1.0, "model", "model-call", {"marker": text, "call": text}, {}),
        Record(6, 1.0, "proxy", "fault-fired", {"fault": text}, {"leg": text}),
        Record(7, 1.0, "run", "info", {}, {"reason": text}),
    ]
    picture = timeline(history, range(8))
    assert len(picture.rows) == 7
    for row in picture.rows:
        assert row.label.isprintable()
        assert len(row.label) <= LABEL
    assert all(lane.isprintable() and len(lane) <= 20 for lane in picture.lanes)


def test_content_where_a_name_is_due_is_covered() -> None:
    said = "my SECRET"
    chunk = dumps({"type": said, "delta": said})
    frames: list[dict[str, Any]] = [
        {"type": said, "id": said, "reason": said},
        {"type": "cf_agent_use_chat_response", "done": True, "outcome": said},
        {"type": "cf_agent_use_chat_response", "done": False, "seq": 1, "body": chunk},
        {"messages": [{"role": said}]},
    ]
    story = Story()
    for frame in frames:
        story.record("client", "frame-in", {"client": "a"}, {"frame": frame})
    story.record("run", "info", {}, {"reason": f"it said '{said}'"})
    told = labels(story.history)
    assert len(told) == 6
    assert not any("SECRET" in label for label in told)


@pytest.mark.parametrize("body", ['{"type": 5, "delta": []}', "[]", "{", '"x"', "null"])
def test_a_chunk_that_is_none_does_no_harm(body: str) -> None:
    story = Story()
    frame = {"type": "cf_agent_use_chat_response", "body": body, "done": False}
    story.record("client", "frame-in", {"client": "a"}, {"frame": frame})
    (_, row) = timeline(story.history, ()).rows
    assert isinstance(row, Row)


def test_no_history_is_no_rows() -> None:
    assert timeline([], ()).rows == []
