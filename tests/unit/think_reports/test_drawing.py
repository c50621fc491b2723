"""Timelines as SVG."""

from __future__ import annotations

from xml.etree import ElementTree as xml

import pytest

from histories import Story
from sample_run import HOSTILE
from think_reports.drawing import svg
from think_reports.timeline import Row, Span, Timeline, timeline


def drawn(picture: Timeline, title: str = "A case") -> xml.Element:
    return xml.fromstring(svg(picture, title))


def row(**more: object) -> Row:
    given = {
        "index": 1,
        "last": 1,
        "at": 0.5,
        "look": "down",
        "start": "target",
        "end": "client a",
        "label": "x",
    }
    return Row(**{**given, **more})  # type: ignore[arg-type]


def lane_x(root: xml.Element, lane: str) -> float:
    (head,) = [t for t in root.iter("text") if t.get("class") == "head" and t.text == lane]
    return float(head.get("x", ""))


def test_an_arrow_runs_from_lane_to_lane() -> None:
    root = drawn(Timeline(lanes=["client a", "target"], rows=[row()], spans=[]))
    (shaft,) = [line for line in root.iter("line") if line.get("class") == "shaft"]
    assert float(shaft.get("x1", "")) == lane_x(root, "target")
    assert abs(float(shaft.get("x2", "")) - lane_x(root, "client a")) < 10
    texts = [t.text for t in root.iter("text")]
    assert texts == ["client a", "target", "#1", "0.500", "x"]


def test_rows_go_down_the_page_and_stay_inside() -> None:
    rows = [row(index=n, last=n) for n in range(5)] + [row(index=5, last=9)]
    root = drawn(Timeline(lanes=["client a", "target"], rows=rows, spans=[]))
    heights = [float(t.get("y", "")) for t in root.iter("text") if t.get("class") == "index"]
    assert heights == sorted(set(heights))
    assert heights[-1] < float(root.get("height", ""))
    assert [t.text for t in root.iter("text") if t.get("class") == "index"][-1] == "#5–9"


@pytest.mark.parametrize(
    ("where", "lane", "offset"), [("target", "target", 0), ("client", "proxy", 0), ("model", "target", 43)]
)
def test_a_fault_stands_on_the_leg_it_hits(where: str, lane: str, offset: float) -> None:
    fault = row(look="fault", start="proxy", end=None, where=where)
    root = drawn(Timeline(lanes=["client a", "proxy", "target", "model"], rows=[fault], spans=[]))
    crosses = [line for line in root.iter("line") if line.get("class") == "cross"]
    assert len(crosses) == 2
    assert (float(crosses[0].get("x1", "")) + float(crosses[0].get("x2", ""))) / 2 == lane_x(
        root, lane
    ) + offset


def test_what_decides_is_lit_and_who_is_there_is_drawn() -> None:
    picture = Timeline(
        lanes=["target"],
        rows=[row(decisive=True), row(look="gap", end=None), row(look="gate", end=None)],
        spans=[Span(lane="target", first=0, last=2), Span(lane="nowhere", first=0, last=1)],
    )
    boxes = [rect.get("class") for rect in drawn(picture).iter("rect")]
    assert boxes == ["decisive", "alive"]


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_is_only_text(kind: str) -> None:
    text = HOSTILE[kind]
    story = Story()
    story.open(text)
    markup = svg(timeline(story.history, ()), text)
    root = xml.fromstring(markup)
    assert {e.tag for e in root.iter()} == {"svg", "title", "line", "rect", "g", "text", "polygon", "circle"}
    assert len(markup) < 10_000
