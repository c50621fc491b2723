"""Laws of the codec: writing and reading agree for every frame, and no input is too strange to read."""

from __future__ import annotations

import json
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from think_conformance.wire import frames as f
from think_conformance.wire.codec import Unreadable, decode_client, decode_server, dumps, encode, loads

TEXT = st.text(max_size=6)
JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)
BY_HINT: dict[Any, st.SearchStrategy[Any]] = {
    Any: JSON,
    Any | UnsetType: st.just(UNSET) | JSON,
    list[Any]: st.lists(JSON, max_size=2),
    f.Message: OBJECT,
    list[f.Message]: st.lists(OBJECT, max_size=2),
    f.RequestInit: st.builds(f.RequestInit, st.none() | TEXT, st.none() | TEXT),
    list[f.ClientTool] | None: st.none()
    | st.lists(st.builds(f.ClientTool, TEXT, st.none() | TEXT, JSON), max_size=2),
}


def of_hint(hint: Any) -> st.SearchStrategy[Any]:
    return BY_HINT[hint] if hint in BY_HINT else st.from_type(hint)


def frames_of(union: Any) -> st.SearchStrategy[f.Frame]:
    def of(cls: type[f.Frame]) -> st.SearchStrategy[f.Frame]:
        hints = get_type_hints(cls)
        return st.builds(cls, **{name: of_hint(hints[name]) for name in cls.__struct_fields__})

    return st.one_of([of(cls) for cls in get_args(union)])


CLIENT = frames_of(f.ClientFrame)
SERVER = frames_of(f.ServerFrame)


@given(CLIENT)
def test_a_client_frame_survives_the_wire(frame: f.Frame) -> None:
    assert decode_client(encode(frame)) == frame


@given(SERVER)
def test_a_server_frame_survives_the_wire(frame: f.Frame) -> None:
    assert decode_server(encode(frame)) == frame


@given(SERVER, st.dictionaries(TEXT.map(lambda t: f"x-{t}"), JSON, max_size=3))
def test_unknown_fields_are_ignored(frame: f.Frame, more: dict[str, Any]) -> None:
    assert decode_server(json.dumps({**more, **json.loads(encode(frame)), **more})) == frame


@given(SERVER)
def test_flags_are_left_out_when_false_and_done_never(frame: f.Frame) -> None:
    written = json.loads(encode(frame))
    optional = {"connect", "stateFollows", "error", "continuation", "replay", "replayComplete"}
    assert all(written[name] is not False for name in optional & set(written))
    assert ("done" in written) or not isinstance(frame, f.ChatResponse)


NEARLY = st.dictionaries(
    st.sampled_from(["type", "id", "body", "done", "init", "args", "method", "messages", "success"]), JSON
).map(json.dumps)


@given(st.one_of(st.text(), st.binary(), NEARLY, JSON.map(json.dumps), st.characters(categories=["Cs"])))
def test_reading_never_raises(text: str | bytes) -> None:
    for decode in (decode_client, decode_server):
        got = decode(text)
        assert isinstance(got, f.Frame | Unreadable)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"type":' * 100_000, '{"type":"cf_agent_state","state":' + "[" * 5000]
)
def test_deep_nesting_is_no_frame(text: str) -> None:
    for got in (decode_client(text), decode_server(text)):
        assert isinstance(got, Unreadable)
        assert got.why == "not-json"


@given(JSON)
def test_json_survives_dumps_and_loads(value: Any) -> None:
    assert loads(dumps(value)) == value


def test_half_a_surrogate_pair_survives_both_ways() -> None:
    frame = f.ChatResponse(id="r", body=dumps({"type": "text-delta", "delta": "\ud83c"}), done=False, seq=1)
    assert decode_server(encode(frame)) == frame
    assert loads(frame.body)["delta"] == "\ud83c"
    odd = f.ResumeAck(id="\udf0d")
    assert decode_client(encode(odd)) == odd
    assert encode(odd).isascii()


@pytest.mark.parametrize("text", ["", "{", b"\xff", "\ud800", "[" * 100_000])
def test_loads_says_why(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"not JSON: ."):
        loads(text)
