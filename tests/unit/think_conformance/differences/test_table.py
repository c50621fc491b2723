"""The table of differences, as a person and as a program reads it."""

from __future__ import annotations

import json

from think_conformance.differences import table
from think_conformance.differences.decisions import Decision, Decisions, decide
from think_conformance.differences.rows import Comparison, Example, Row

ROWS = (
    Row("frames", "file", "nothing", ("one", "two"), Example("one", "a.1", 7, None)),
    Row("prompts", "a|b\n<i>", "nothing", ("one",), Example("one", "t1", 3, 4)),
)
COMPARISON = Comparison(ROWS, 4, 3)
KNOWN = Decision(spec=["WIRE-1", "WIRE-2"], why="So it is.", row="frames: file / nothing", case="*o*")
STALE = Decision(spec=["WIRE-1"], why="So it was.", match="probe: */ none", racy=False)
DECIDED = decide(COMPARISON, [KNOWN, STALE])


def test_a_person_sees_what_is_decided_how_and_where_the_rest_shows() -> None:
    assert table.text(DECIDED).splitlines() == [
        "decided   2  frames: file / nothing",
        "             WIRE-1, WIRE-2: So it is.",
        "open      1  prompts: a|b\\n<i> / nothing",
        "             as in one t1, records 3 / 4",
        "stale        probe: */ none",
    ]


def test_markdown_keeps_every_text_in_its_cell() -> None:
    lines = table.markdown(DECIDED, "mine", "yours").splitlines()
    assert lines[0] == "| what | mine | yours | cases | decision |"
    assert lines[3].startswith("| prompts | a\\|b\\\\n\\<i\\> | nothing | 1 | ")
    assert len(lines) == 4


def test_json_holds_the_whole_of_it() -> None:
    found = json.loads(table.as_json(DECIDED, COMPARISON))
    assert (found["connections"], found["compared"], found["open"]) == (4, 3, 1)
    assert found["stale"] == ["probe: */ none"]
    assert [row["text"] for row in found["rows"]] == [row.text for row in ROWS]
    assert found["rows"][0]["example"] == {"case": "one", "whose": "a.1", "a": 7, "b": None}


def test_the_page_tells_every_decision() -> None:
    racy = Decision(spec=["TURN-3"], why="By chance.", match="*: p / q", racy=True)
    page = table.page(Decisions(version=1, a="x@1", b="y", decision=[KNOWN, racy]))
    assert page.startswith("# What differs: x@1 and y\n")
    assert "| frames | file | nothing | \\*o\\* | WIRE-1, WIRE-2 | So it is. |" in page
    assert "| \\* | p | q | \\* | TURN-3 | By chance. Not in every run. |" in page
