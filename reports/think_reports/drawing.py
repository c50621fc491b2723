"""A timeline as a spacetime diagram in SVG. Pure; colours and fonts come from the page's style sheet."""

from __future__ import annotations

from xml.etree import ElementTree as xml

from think_conformance.history.plain import plain
from think_reports.timeline import Row, Timeline

ROW, TOP, LEFT, LANE, RIGHT = 20, 34, 104, 86, 415
"""Pixels: height of a row, of the heads, width of the index and time, of a lane, of the labels."""


def svg(timeline: Timeline, title: str) -> str:
    """The markup of a picture. Every text in it is escaped."""
    return xml.tostring(_Drawing(timeline, title).root, encoding="unicode")


class _Drawing:
    def __init__(self, timeline: Timeline, title: str) -> None:
        self._timeline = timeline
        self._width = LEFT + LANE * len(timeline.lanes) + RIGHT
        self._height = TOP + ROW * (len(timeline.rows) + 1)
        size = {"width": str(self._width), "height": str(self._height)}
        box = {"viewBox": f"0 0 {self._width} {self._height}", "role": "img", "class": "timeline"}
        self.root = xml.Element("svg", {**size, **box})
        self._text(self.root, "title", title)
        for number, row in enumerate(timeline.rows):
            if row.decisive:
                self._rect("decisive", 0, self._y(number) - ROW / 2, self._width, ROW)
        self._lanes()
        for number, row in enumerate(timeline.rows):
            self._row(number, row)

    def _lanes(self) -> None:
        for lane in self._timeline.lanes:
            x = self._x(lane)
            self._line("lane", x, TOP - 8, x, self._height)
            self._label("head", x, TOP - 16, lane if len(lane) <= 10 else lane.removeprefix("client "))
        for span in self._timeline.spans:
            if span.lane in self._timeline.lanes:
                top, bottom = self._y(span.first), self._y(span.last)
                self._rect("alive", self._x(span.lane) - 2.5, top, 5, max(bottom - top, 3))

    def _row(self, number: int, row: Row) -> None:
        y = self._y(number)
        group = xml.SubElement(self.root, "g", {"class": f"row is-{row.look}"})
        span = f"#{row.index}" if row.index == row.last else f"#{row.index}–{row.last}"
        self._label("index", 4, y + 4, span, group)
        self._label("time", LEFT - 14, y + 4, f"{row.at:.3f}", group)
        self._label("label", self._width - RIGHT + 8, y + 4, row.label, group)
        start = self._x_of(row)
        if row.end is not None and row.end in self._timeline.lanes:
            self._arrow(start, self._x(row.end), y, group)
        elif row.look in ("fault", "close"):
            self._cross(start, y, group)
        elif row.look == "gap":
            self._line("skip", LEFT, y, self._width - RIGHT, y, group)
        else:
            xml.SubElement(group, "circle", cx=f"{start:g}", cy=f"{y:g}", r="4")

    def _x_of(self, row: Row) -> float:
        """Where a row starts; a fault stands on the leg it hits."""
        if row.look == "fault" and row.where == "target":
            return self._x("target")
        if row.look == "fault" and row.where in ("model", "effects"):
            return self._x("target") + LANE / 2
        return self._x(row.start)

    def _x(self, lane: str) -> float:
        lanes = self._timeline.lanes
        return LEFT + LANE * (lanes.index(lane) + 0.5) if lane in lanes else LEFT

    @staticmethod
    def _y(number: int) -> float:
        return TOP + ROW * (number + 0.5)

    # ---- shapes ---------------------------------------------------------------------------------

    def _arrow(self, x1: float, x2: float, y: float, group: xml.Element) -> None:
        back = -7 if x2 > x1 else 7
        self._line("shaft", x1, y, x2 + back, y, group)
        points = f"{x2 + back / 3:g},{y:g} {x2 + back:g},{y - 4:g} {x2 + back:g},{y + 4:g}"
        xml.SubElement(group, "polygon", points=points)

    def _cross(self, x: float, y: float, group: xml.Element) -> None:
        self._line("cross", x - 5, y - 5, x + 5, y + 5, group)
        self._line("cross", x - 5, y + 5, x + 5, y - 5, group)

    def _line(
        self, name: str, x1: float, y1: float, x2: float, y2: float, parent: xml.Element | None = None
    ) -> None:
        ends = {"x1": f"{x1:g}", "y1": f"{y1:g}", "x2": f"{x2:g}", "y2": f"{y2:g}"}
        xml.SubElement(self.root if parent is None else parent, "line", {"class": name, **ends})

    def _rect(self, name: str, x: float, y: float, width: float, height: float) -> None:
        box = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{width:g}", "height": f"{height:g}"}
        xml.SubElement(self.root, "rect", {"class": name, **box})

    def _label(self, name: str, x: float, y: float, text: str, parent: xml.Element | None = None) -> None:
        place = {"class": name, "x": f"{x:g}", "y": f"{y:g}"}
        self._text(self.root if parent is None else parent, "text", text, place)

    @staticmethod
    def _text(parent: xml.Element, tag: str, text: str, attributes: dict[str, str] | None = None) -> None:
        xml.SubElement(parent, tag, attributes or {}).text = plain(text)
