"""Server-sent events, however they are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from think_reference.core.sse import MAX_EVENT, EventTooLarge, SseParser

STREAM = (
    b"data: one\n\n"
    b": a comment\r\n\r\n"
    b"event: x\r\ndata: two\r\ndata:  lines\r\n\r\n"
    b"data\rdata:three\r\r"
    b"data: \xf0\x9f\x99\x82\n\n"
    b"id: 7\n\n"
    b"data: never ended\n"
)
EVENTS = ["one", "two\n lines", "\nthree", "🙂"]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_segmentation_gives_the_same_events(cuts: list[int]) -> None:
    parser, events = SseParser(), []
    edges = [0, *sorted(cuts), len(STREAM)]
    for start, end in pairwise(edges):
        events += parser.feed(STREAM[start:end])
    assert events == EVENTS


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 1000 + b"\n", b"x" * 1000])
def test_an_event_without_end_is_refused(piece: bytes) -> None:
    parser = SseParser()
    for _ in range(MAX_EVENT // len(piece)):
        assert parser.feed(piece) == []
    with pytest.raises(EventTooLarge):
        parser.feed(piece)
