"""One record as one line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from think_conformance.history.op import Record
from think_reports.frames import LINE, line


def shown(payload: Any, **ids: Any) -> str:
    return line(Record(41, 100.5321, "client", "frame-in", ids, payload), 100.0)


def test_a_frame_shows_who_what_and_when() -> None:
    frame = {"type": "cf_agent_chat_clear"}
    text = shown({"frame": frame, "size": 9}, client="b", connection="b.1", epoch=2)
    assert text == '#41 +0.532 s  client b.1 frame-in {"type":"cf_agent_chat_clear"}'


def test_a_record_without_payload_is_names_only() -> None:
    record = Record(3, 101.0, "proxy", "fault-fired", {"fault": "cut"})
    assert line(record, 100.0) == "#3 +1.000 s  proxy cut fault-fired"


def test_long_values_are_cut_where_they_stand() -> None:
    text = shown({"frame": {"body": "x" * 1000, "list": list(range(100)), "done": True}})
    assert text.endswith('"list":[0,1,2,3,4,5,"… 94 more"],"done":true}')
    assert "x" * 61 not in text


@pytest.mark.parametrize("depth", [7, 900])
def test_deep_values_are_cut(depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    assert shown(value).endswith(6 * '{"a":' + '"…"' + 6 * "}")


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters())),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(st.characters()), inner)),
    max_leaves=10,
)


@given(JSON, st.dictionaries(st.sampled_from(["connection", "fault", "call"]), st.text() | st.integers()))
def test_any_payload_is_one_short_printable_line(payload: Any, ids: dict[str, Any]) -> None:
    text = shown(payload, **ids)
    assert text.isprintable()
    assert len(text) <= LINE
    text.encode()
