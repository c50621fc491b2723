"""The message that a stream of chunks builds (WIRE-210 ... WIRE-228, WIRE-131, WIRE-132)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from think_conformance.wire.chunks import KINDS, MessageBuilder, chunk_problem, settled

Chunk = dict[str, Any]


def built(*chunks: Chunk, base: Chunk | None = None) -> Chunk:
    builder = MessageBuilder("m1", base)
    for chunk in chunks:
        builder.apply(chunk)
    return builder.message


def parts(*chunks: Chunk, base: Chunk | None = None) -> list[Any]:
    found: list[Any] = built(*chunks, base=base)["parts"]
    return found


def c(kind: str, **fields: Any) -> Chunk:
    return {"type": kind, **fields}


CALL = {"toolCallId": "c1", "toolName": "search"}
START = c("tool-input-start", **CALL)
AVAILABLE = c("tool-input-available", **CALL, input={"q": 1})
APPROVAL = c("tool-approval-request", toolCallId="c1", approvalId="a1")
OUTPUT = c("tool-output-available", toolCallId="c1", output=[1])
ERROR = c("tool-output-error", toolCallId="c1", errorText="no")
DENIED = c("tool-output-denied", toolCallId="c1")
INPUT_ERROR = c("tool-input-error", **CALL, errorText="bad", input="{")


def tool(state: str, **fields: Any) -> Chunk:
    return {"type": "tool-search", **CALL, "state": state, **fields}


# ---- one row each --------------------------------------------------------------------------


def test_a_plain_answer() -> None:
    assert built(
        c("start", messageId="srv", messageMetadata={"a": 1}),
        c("start-step"),
        c("text-start", id="t"),
        c("text-delta", id="t", delta="Hel"),
        c("text-delta", id="t", delta="lo"),
        c("text-end", id="t"),
        c("finish-step"),
        c("message-metadata", messageMetadata={"b": 2}),
        c("finish", finishReason="stop", messageMetadata={"a": 3}),
    ) == {
        "id": "srv",
        "role": "assistant",
        "parts": [{"type": "step-start"}, {"type": "text", "text": "Hello", "state": "done"}],
        "metadata": {"a": 3, "b": 2},
    }


@pytest.mark.parametrize("kind", ["text", "reasoning"])
def test_a_delta_without_start_opens_a_part(kind: str) -> None:
    assert parts(c(f"{kind}-delta", id="t", delta="x")) == [{"type": kind, "text": "x", "state": "streaming"}]


def test_blocks_may_interleave() -> None:
    assert parts(
        c("text-start", id="1"),
        c("reasoning-start", id="1"),
        c("text-start", id="2"),
        c("text-delta", id="1", delta="a"),
        c("reasoning-delta", id="1", delta="r", providerMetadata={"p": {"s": 1}}),
        c("text-delta", id="2", delta="b"),
        c("text-end", id="1"),
        c("reasoning-end", id="1", providerMetadata={"q": {}}),
    ) == [
        {"type": "text", "text": "a", "state": "done"},
        {
            "type": "reasoning",
            "text": "r",
            "state": "done",
            "providerMetadata": {"p": {"s": 1}, "q": {}},
        },
        {"type": "text", "text": "b", "state": "streaming"},
    ]


def test_a_block_id_may_be_used_again_after_its_end() -> None:
    once = (c("text-start", id="0"), c("text-delta", id="0", delta="x"), c("text-end", id="0"))
    assert [p["text"] for p in parts(*once, *once)] == ["x", "x"]


def test_a_block_that_ended_does_not_grow() -> None:
    once = (c("text-delta", id="0", delta="x"), c("text-end", id="0"))
    assert [p["text"] for p in parts(*once, c("text-delta", id="0", delta="y"))] == ["x", "y"]


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [({"a": 1}, {"a": 1}), ('{"a":1}', {"a": 1}), ("", {}), ('{"a', {}), (None, {}), ([1], {}), ("[1]", {})],
)
def test_tool_input_becomes_an_object(raw: Any, wanted: Chunk) -> None:
    assert parts(c("tool-input-available", **CALL, input=raw)) == [tool("input-available", input=wanted)]


def test_streamed_input_shows_only_when_it_is_complete() -> None:
    pieces = [c("tool-input-delta", toolCallId="c1", inputTextDelta=text) for text in ('{"q"', ":1}")]
    assert parts(START, *pieces) == [tool("input-streaming")]
    assert parts(START, *pieces, AVAILABLE) == [tool("input-available", input={"q": 1})]
    assert parts(START, *pieces, APPROVAL) == [
        tool("approval-requested", input={"q": 1}, approval={"id": "a1"})
    ]


def test_late_input_fills_an_approval_once_and_leaves_its_state() -> None:
    other = c("tool-input-available", **CALL, input={"q": 2})
    piece = c("tool-input-delta", toolCallId="c1", inputTextDelta='{"q"')
    wanted = [tool("approval-requested", input={"q": 1}, approval={"id": "a1"})]
    assert parts(START, APPROVAL, AVAILABLE, other) == wanted
    assert parts(START, piece, APPROVAL, AVAILABLE, other) == wanted


def test_a_late_delta_reopens_no_input() -> None:
    late = c("tool-input-delta", toolCallId="c1", inputTextDelta="{}")
    other = c("tool-input-available", **CALL, input={"q": 2})
    assert parts(AVAILABLE, late, other) == [tool("input-available", input={"q": 1})]


def test_an_approval_carries_its_descriptor() -> None:
    (part,) = parts(AVAILABLE, {**APPROVAL, "approvalDescriptor": {"why": "x"}})
    assert part["approval"] == {"id": "a1", "descriptor": {"why": "x"}}


@pytest.mark.parametrize(
    ("chunk", "after"),
    [
        (OUTPUT, tool("output-available", input={"q": 1}, output=[1])),
        (ERROR, tool("output-error", input={"q": 1}, errorText="no")),
        (DENIED, tool("output-denied", input={"q": 1})),
        (INPUT_ERROR, tool("output-error", input={}, errorText="bad")),
    ],
    ids=lambda v: v["type"],
)
def test_every_terminal_state_is_the_first_one_written(chunk: Chunk, after: Chunk) -> None:
    later = [START, AVAILABLE, APPROVAL, ERROR, DENIED, INPUT_ERROR, {**OUTPUT, "output": "other"}]
    assert parts(AVAILABLE, chunk) == [after]
    assert parts(AVAILABLE, chunk, *later) == [after]


def test_a_preliminary_output_is_replaced_by_the_real_one() -> None:
    preliminary = c("tool-output-available", toolCallId="c1", output="part", preliminary=True)
    before = tool("output-available", input={"q": 1}, output="part", preliminary=True)
    assert parts(AVAILABLE, preliminary) == [before]
    assert parts(AVAILABLE, preliminary, START, AVAILABLE, APPROVAL) == [before]
    assert parts(AVAILABLE, preliminary, OUTPUT, preliminary) == [
        tool("output-available", input={"q": 1}, output=[1])
    ]
    assert parts(AVAILABLE, preliminary, ERROR)[0]["state"] == "output-error"


def test_an_approved_call_is_neither_asked_nor_denied_again() -> None:
    stored = tool("approval-responded", input={"q": 1}, approval={"id": "a1", "approved": True})
    base = {"id": "m1", "role": "assistant", "parts": [stored]}
    assert parts(APPROVAL, DENIED, START, AVAILABLE, base=base) == [stored]
    assert parts(OUTPUT, base=base) == [{**stored, "state": "output-available", "output": [1]}]


def test_an_input_error_without_a_call_opens_it() -> None:
    assert parts(INPUT_ERROR) == [tool("output-error", input={}, errorText="bad")]


@pytest.mark.parametrize("chunk", [OUTPUT, ERROR, DENIED, APPROVAL], ids=lambda v: v["type"])
def test_news_of_an_unknown_call_changes_nothing(chunk: Chunk) -> None:
    assert parts(chunk) == []


def test_provider_fields_pass_through() -> None:
    extra = {"providerExecuted": True, "providerMetadata": {"p": 1}, "title": "T"}
    (part,) = parts({**START, **extra})
    assert (part["providerExecuted"], part["callProviderMetadata"], part["title"]) == (True, {"p": 1}, "T")


@pytest.mark.parametrize(
    "part",
    [
        c("source-url", sourceId="s", url="u", title="t"),
        c("source-url", sourceId="s", url="u"),
        c("source-document", sourceId="s", mediaType="m", title="t", filename="f"),
        c("file", mediaType="m", url="data:,"),
    ],
    ids=lambda v: v["type"],
)
def test_sources_and_files_become_parts(part: Chunk) -> None:
    assert parts({**part, "unknown": 1}) == [part]


def test_data_parts_replace_by_type_and_id_and_transient_ones_are_not_kept() -> None:
    assert parts(
        c("data-a", id="1", data=1),
        c("data-b", id="1", data=2),
        c("data-a", data=3),
        c("data-a", data=4),
        c("data-a", id="1", data=5),
        c("data-a", id="1", data=6, transient=True),
    ) == [
        {"type": "data-a", "id": "1", "data": 5},
        {"type": "data-b", "id": "1", "data": 2},
        {"type": "data-a", "data": 3},
        {"type": "data-a", "data": 4},
    ]


@pytest.mark.parametrize(
    "chunk",
    [c("finish-step"), c("abort"), c("error", errorText="x"), c("from-the-future", parts=[1])],
    ids=lambda v: v["type"],
)
def test_chunks_without_an_effect(chunk: Chunk) -> None:
    assert chunk_problem(chunk) is None
    assert built(chunk) == {"id": "m1", "role": "assistant", "parts": []}


# ---- continuations and copies --------------------------------------------------------------


def test_a_continuation_extends_the_stored_message() -> None:
    base = {
        "id": "m1",
        "role": "assistant",
        "parts": [
            {"type": "text", "text": "Hel", "state": "streaming"},
            {"type": "data-a", "id": "1", "data": 1},
        ],
        "metadata": {"k": 1},
    }
    builder = MessageBuilder("m1", base)
    assert builder.message == base
    assert not builder.has_content
    for chunk in (c("start", messageId="ignored"), c("start-step"), c("data-a", id="1", data=2)):
        builder.apply(chunk)
    assert not builder.has_content
    for chunk in (c("text-start", id="t"), c("text-delta", id="t", delta="lo"), c("text-end", id="t")):
        builder.apply(chunk)
    assert builder.has_content
    assert builder.message == {
        "id": "m1",
        "role": "assistant",
        "parts": [
            {"type": "text", "text": "Hel", "state": "done"},
            {"type": "data-a", "id": "1", "data": 2},
            {"type": "step-start"},
            {"type": "text", "text": "lo", "state": "done"},
        ],
        "metadata": {"k": 1},
    }
    assert base["parts"][0]["state"] == "streaming"  # type: ignore[index]


def test_a_message_taken_earlier_does_not_move() -> None:
    builder = MessageBuilder("m1")
    builder.apply(c("text-delta", id="t", delta="a"))
    early = builder.message
    builder.apply(c("text-delta", id="t", delta="b"))
    builder.apply(c("text-end", id="t"))
    assert early["parts"] == [{"type": "text", "text": "a", "state": "streaming"}]
    builder.message["parts"].clear()
    assert builder.message["parts"] == [{"type": "text", "text": "ab", "state": "done"}]


def test_settled_touches_streaming_texts_only() -> None:
    message = {
        "id": "m1",
        "parts": [
            {"type": "text", "state": "streaming"},
            {"type": "reasoning", "state": "streaming"},
            {"type": "text"},
            {"type": "tool-x", "state": "input-streaming"},
            {"type": "other", "state": "streaming"},
        ],
    }
    states = [part.get("state") for part in settled(message)["parts"]]
    assert states == ["done", "done", None, "input-streaming", "streaming"]
    assert message["parts"][0] == {"type": "text", "state": "streaming"}


# ---- hostile input ---------------------------------------------------------------------------

NAMES = [*sorted(KINDS), "data-x", "other"]
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(max_size=3),
    st.just([]),
    st.just({}),
    st.just({"a": [{}]}),
)
FIELDS = sorted({f for kind in KINDS.values() for f in (*kind.required, *kind.optional)} | {"data", "id"})
ANY_CHUNK = st.builds(
    lambda name, fields: {"type": name, **fields},
    st.one_of(st.sampled_from(NAMES), VALUES),
    st.dictionaries(st.sampled_from(FIELDS), VALUES),
)
NEAR_CHUNK = st.builds(
    lambda name, fields: {"type": name, **dict.fromkeys(FIELDS, "c1"), **fields},
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=2),
)
ANY_PART = st.one_of(VALUES, st.dictionaries(st.sampled_from(["type", "state", "id", "toolCallId"]), VALUES))


@given(
    st.lists(st.one_of(ANY_CHUNK, NEAR_CHUNK, VALUES), max_size=12),
    st.one_of(st.none(), st.fixed_dictionaries({"parts": st.one_of(VALUES, st.lists(ANY_PART))})),
)
def test_nothing_a_peer_sends_raises(chunks: list[Any], base: Chunk | None) -> None:
    message = built(*chunks, base=base)
    assert message["role"] == "assistant"
    assert isinstance(message["id"], str)
    settled(message)


def test_a_stored_part_in_no_known_state_is_left_alone() -> None:
    base = {"parts": [{"type": "tool-search", "toolCallId": "c1", "state": ["?"]}]}
    assert parts(OUTPUT, AVAILABLE, DENIED, base=base) == base["parts"]


@pytest.mark.parametrize("name", NAMES[:-1])
def test_a_chunk_without_a_needed_field_is_named_and_ignored(name: str) -> None:
    good = c(name, **{"data" if name == "data-x" else f: "c1" for f in _required(name)})
    assert chunk_problem(good) is None
    for field in _required(name):
        lacking = {k: v for k, v in good.items() if k != field}
        assert f"`{field}`" in str(chunk_problem(lacking))
        assert parts(lacking) == []


def _required(name: str) -> list[str]:
    return list(KINDS[name].required) if name in KINDS else ["data"]


@pytest.mark.parametrize(
    ("chunk", "says"),
    [
        ([], "JSON object"),
        ({}, "`type`"),
        ({"type": 1}, "`type`"),
        (c("text-delta", id="t", delta=3), "`delta`"),
        (c("data-x", data=1, transient="yes"), "`transient`"),
    ],
)
def test_problems_are_told(chunk: Any, says: str) -> None:
    assert says in str(chunk_problem(chunk))


# ---- laws ------------------------------------------------------------------------------------


@given(st.text(max_size=30), st.lists(st.integers(0, 30), max_size=6))
def test_any_split_of_a_text_gives_the_same_message(text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    deltas = [c("text-delta", id="t", delta=text[a:b]) for a, b in itertools.pairwise(places)]
    whole = [c("text-delta", id="t", delta=text)] if text else []
    frame = (c("text-start", id="t"), c("text-end", id="t"))
    assert built(frame[0], *deltas, frame[1]) == built(frame[0], *whole, frame[1])


WELL_FORMED = st.lists(
    st.one_of(
        st.sampled_from([START, AVAILABLE, APPROVAL, OUTPUT, ERROR, DENIED, INPUT_ERROR, c("start-step")]),
        st.builds(
            lambda kind, block, text: c(f"{kind}-delta", id=block, delta=text),
            st.sampled_from(["text", "reasoning"]),
            st.sampled_from("ab"),
            st.text(max_size=3),
        ),
        st.sampled_from([c("text-end", id="a"), c("text-start", id="a"), c("data-x", id="1", data=2)]),
    ),
    max_size=20,
)


@given(WELL_FORMED, st.data())
def test_a_cut_replay_and_the_live_rest_give_the_live_message(
    chunks: list[Chunk], data: st.DataObject
) -> None:
    """A client that drops by seq sees each chunk once, wherever the connection was cut (WIRE-115)."""
    cut = data.draw(st.integers(0, len(chunks)))
    builder = MessageBuilder("m1")
    highest = -1
    for seq, chunk in [*enumerate(chunks[:cut]), *enumerate(chunks)]:
        if seq > highest:
            builder.apply(chunk)
            _ = builder.message  # looking at it midway must not change it
            highest = seq
    assert builder.message == built(*chunks)


@given(WELL_FORMED)
def test_a_terminal_tool_state_never_changes(chunks: list[Chunk]) -> None:
    builder = MessageBuilder("m1")
    final = None
    for chunk in chunks:
        builder.apply(chunk)
        call = next((p for p in builder.message["parts"] if "toolCallId" in p), None)
        if final is not None:
            assert call == final
        elif call is not None and call["state"].startswith("output-"):
            final = call
