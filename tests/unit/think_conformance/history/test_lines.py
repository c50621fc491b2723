"""One record as one line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from think_conformance.history.content import COVER, OwnWords
from think_conformance.history.lines import LINE, line
from think_conformance.history.op import Record

PLAN = {"model": {"t1": [[{"text": "w1 "}]]}, "operations": [{"text": "Hello."}, {"text": "7"}]}
OWN = OwnWords([Record(0, 100.0, "run", "case", {}, {"name": "c", "plan": PLAN})])


def shown(payload: Any, source: Any = "client", kind: Any = "frame-in", **ids: Any) -> str:
    return line(Record(41, 100.5321, source, kind, ids, payload), 100.0, OWN)


def test_a_frame_shows_who_what_and_when() -> None:
    frame = {"type": "cf_agent_chat_clear"}
    text = shown({"frame": frame, "size": 9}, client="b", connection="b.1", epoch=2)
    assert text == '#41 +0.532 s  client b.1 frame-in {"type":"cf_agent_chat_clear"}'


def test_a_record_without_payload_is_names_only() -> None:
    assert shown(None, "proxy", "fault-fired", fault="cut") == "#41 +0.532 s  proxy cut fault-fired"


def test_the_chunk_in_a_body_is_opened() -> None:
    frame = {"type": "x", "body": '{"type":"text-delta","delta":"w1 ","id":"t"}', "done": False}
    assert shown({"frame": frame}).endswith(
        '{"type":"x","body":{"type":"text-delta","delta":"w1 ","id":"t"},"done":false}'
    )


def test_long_values_are_cut_where_they_stand() -> None:
    text = shown({"frame": {"id": "x" * 1000, "messageIds": [f"m{n}" for n in range(100)], "done": True}})
    assert text.endswith('"messageIds":["m0","m1","m2","m3","m4","m5","… 94 more"],"done":true}')
    assert "x" * 61 not in text


@pytest.mark.parametrize("depth", [9, 900])
def test_deep_values_are_cut(depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = {"message": value}
    assert shown(value).endswith(7 * '{"message":' + '{"message":"…"' + 8 * "}")


SECRETS: dict[str, Any] = {
    "answer": {"type": "x", "body": '{"type":"text-delta","delta":"SECRET"}'},
    "error text": {"type": "x", "error": True, "body": "SECRET SECRET"},
    "rpc error": {"type": "rpc", "id": "1", "error": "SECRET"},
    "rpc result": {"type": "rpc", "result": {"SECRET": [{"id": "SECRET"}, 4711]}},
    "transcript": {"messages": [{"id": "m", "parts": [{"type": "text", "text": "SECRET"}]}]},
    "prompt": {"messages": [{"role": "user", "content": [{"type": "text", "text": "SECRET"}]}]},
    "tool": {"type": "tool-input-available", "toolCallId": "c", "input": {"SECRET": 4711}},
    "agent state": {"type": "cf_agent_state", "state": {"phase": "SECRET"}},
    "a sentence where a name is due": {"id": "the SECRET"},
    "no JSON": {"text": "SECRET", "size": 6},
    "no object": "SECRET",
    "unknown field": {"newField": {"inside": ["SECRET", 4711, 47.11]}},
}


@pytest.mark.parametrize("what", SECRETS)
def test_content_from_elsewhere_is_covered(what: str) -> None:
    for payload in (SECRETS[what], {"frame": SECRETS[what], "size": 1}):
        text = shown(payload)
        assert COVER in text
        assert "SECRET" not in text
        assert "4711" not in text
        assert "47.11" not in text


def test_content_of_the_kit_is_shown() -> None:
    parts = [{"type": "text", "text": "Hello. w1 [[c/t1]]"}]
    assert shown({"messages": [{"id": "m", "role": "user", "parts": parts}]}).endswith(
        '{"messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"Hello. w1 [[c/t1]]"}]}]}'
    )
    assert shown({"result": [7, 8, True, None]}).endswith(f'{{"result":[7,"{COVER}",true,null]}}')


def test_what_the_run_says_of_itself_is_shown() -> None:
    said = {"reason": "the socket broke at 'w1 SECRET'"}
    assert shown(said, "run", "info").endswith(f"\"the socket broke at 'w1 {COVER * 6}'\"}}")
    assert "socket" not in shown(said, "client", "close")


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters())),
    lambda inner: st.one_of(
        st.lists(inner),
        st.dictionaries(st.text(st.characters()) | st.sampled_from(["id", "body", "messages"]), inner),
    ),
    max_leaves=10,
)


@given(JSON, st.dictionaries(st.sampled_from(["connection", "fault", "call"]), st.text() | st.integers()))
def test_any_payload_is_one_short_printable_line(payload: Any, ids: dict[str, Any]) -> None:
    text = shown(payload, **ids)
    assert text.isprintable()
    assert len(text) <= LINE
    text.encode()
