"""The text a client was shown: repeats dropped, gaps kept apart, replays read anew."""

from __future__ import annotations

from typing import Any

import pytest

from histories import Story
from think_conformance.history.streams import MAX_TEXTS, shown, texts
from think_conformance.history.views import View


def read(*steps: tuple[Any, ...]) -> list[str]:
    """Each step: (text, seq, replay?), or an "ack"."""
    story = Story()
    a = story.open("a")
    story.send(a)
    for step in steps:
        if step[0] == "ack":
            story.ack(a)
        elif step[0] == "start":
            story.start(a, seq=step[1])
        else:
            story.words(a, step[0], first=step[1], replay=len(step) > 2)
    return shown(View(story.history).streams[a, "r1"])


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("w1 ", 0), ("w2 ", 1)], ["w1 w2 "]),
        ([("w1 ", 0), ("w1 ", 0), ("w2 ", 1)], ["w1 w2 "]),
        ([("w1 ", 0), ("w3 ", 2)], ["w1 ", "w3 "]),
        ([("w1 ", 0), ("ack",), ("w1 ", 0, True), ("w2 ", 1)], ["w1 w2 "]),
        ([("w1 ", 0), ("start", 1), ("w2 ", 2)], ["w2 "]),
        ([("w1 ", 0), ("huge ", None), ("w2 ", 1)], ["w1 ", "w2 "]),
        ([("w1 ", None), ("w2 ", None)], ["w1 w2 "]),
        ([("w1 ", None), ("ack",), ("w1 ", None, True), ("w2 ", None)], ["w1 ", "w1 w2 "]),
        ([("ack",), ("w1 ", None, True), ("ack",), ("w1 ", None, True)], ["w1 ", "w1 "]),
    ],
)
def test_what_a_client_was_shown(steps: list[tuple[Any, ...]], expected: list[str]) -> None:
    assert read(*steps) == expected


def test_text_parts_are_told_apart_by_id_and_by_opening() -> None:
    def delta(ident: str, text: str) -> dict[str, Any]:
        return {"type": "text-delta", "id": ident, "delta": text}

    opened = {"type": "text-start", "id": "x"}
    assert texts([opened, delta("x", "a"), delta("y", "b"), delta("x", "c"), opened, delta("x", "d")]) == [
        "ac",
        "b",
        "d",
    ]


def test_a_stream_of_endless_parts_is_cut() -> None:
    flood = [{"type": "text-delta", "id": str(n), "delta": "x"} for n in range(MAX_TEXTS + 50)]
    assert len(texts(flood)) == MAX_TEXTS
