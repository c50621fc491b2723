from __future__ import annotations

from typing import Any

import pytest

from think_proxy.match import (
    NOTHING,
    Message,
    client_of,
    connection_of,
    contains,
    contains_nested,
    content_matches,
    path_of,
    within,
)
from think_proxy.plan import Nested, When


@pytest.mark.parametrize(
    ("value", "pattern", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"b": None}, False),
        ({"a": None}, {"a": None}, True),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 1}}}, True),
        ({"a": {"b": 1}}, {"a": {"b": {}}}, False),
        ([1, 2], [1, 2], True),
        ([1, 2], [1], False),
        ([1], [1, 2], False),
        ([{"a": 1, "b": 2}], [{"a": 1}], True),
        ([{"a": 1}], {"a": 1}, False),
        (1, 1.0, True),
        (1, True, False),
        (True, 1, False),
        (False, 0, False),
        (True, True, True),
        ("1", 1, False),
        (NOTHING, {}, False),
        (NOTHING, None, False),
    ],
)
def test_a_pattern_is_partial_and_typed(value: Any, pattern: Any, expected: bool) -> None:
    assert contains(value, pattern) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"body": '{"type":"text-delta","delta":"x"}'}, True),
        ({"body": '{"type":"finish"}'}, False),
        ({"body": "not json"}, False),
        ({"body": {"type": "text-delta"}}, False),
        ({"other": '{"type":"text-delta"}'}, False),
        (['{"type":"text-delta"}'], False),
    ],
)
def test_a_field_may_hold_json_as_text(value: Any, expected: bool) -> None:
    assert contains_nested(value, Nested(field="body", json={"type": "text-delta"})) is expected


def test_all_that_is_given_must_hold() -> None:
    message = Message(b"", b'{"type":"t","body":"{\\"k\\":1}"}', 1, 0)
    nested = Nested(field="body", json={"k": 1})
    assert content_matches(When(json={"type": "t"}, nested=nested), message)
    assert not content_matches(When(json={"type": "u"}, nested=nested), message)
    assert not content_matches(When(json={"type": "t"}, nested=Nested(field="body", json={"k": 2})), message)


@pytest.mark.parametrize(
    ("content", "expected"), [(b"[DONE]", True), (b"[DONE] ", False), (b"", False), (None, False)]
)
def test_text_is_the_whole_content(content: bytes | None, expected: bool) -> None:
    assert content_matches(When(text="[DONE]"), Message(b"", content, 1, 0)) is expected


@pytest.mark.parametrize("content", [None, b"\xff", b"hello", b"[" * 100_000])
def test_what_is_no_json_matches_only_who_asks_for_nothing(content: bytes | None) -> None:
    message = Message(b"", content, 1, 0)
    assert content_matches(When(), message)
    assert not content_matches(When(json={}), message)


def test_the_proof_is_of_the_content() -> None:
    assert Message(b"\x81\x02hi", b"hi", 3, 40).proof() == {
        "ordinal": 3,
        "offset": 40,
        "size": 2,
        "sha256": "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4",
    }
    assert Message(b"raw", None, 1, 0).proof()["size"] == 3


@pytest.mark.parametrize(
    ("target", "connection"),
    [
        ("/agents/x/y?_pk=a.1", "a.1"),
        ("/agents/x/y?token=1&_pk=a%2E2", "a.2"),
        ("/agents/x/y?_pk=", None),
        ("/agents/x/y", None),
        ("/x?" + "&".join(["a=1"] * 1000), None),
    ],
)
def test_a_connection_is_named_by_the_query(target: str, connection: str | None) -> None:
    assert connection_of(target) == connection


@pytest.mark.parametrize(
    ("connection", "client"), [("a.1", "a"), ("a.b.12", "a.b"), ("a", "a"), ("a.", "a"), (".1", ".1")]
)
def test_a_client_is_what_precedes_the_last_dot(connection: str, client: str) -> None:
    assert client_of(connection) == client


@pytest.mark.parametrize(
    ("path", "scope", "expected"),
    [
        ("/agents/x/one", "/agents/x/one", True),
        ("/agents/x/one/get-messages", "/agents/x/one", True),
        ("/agents/x/one-more", "/agents/x/one", False),
        ("/agents/x", "/agents/x/one", False),
        ("/agents/x/one", "/agents/x/", True),
        ("/anything", "", True),
        ("/anything", "/", True),
    ],
)
def test_a_scope_is_a_path_and_all_below_it(path: str, scope: str, expected: bool) -> None:
    assert within(path, scope) is expected


def test_a_path_ends_at_the_query() -> None:
    assert path_of("/a%2Fb/c?d=/e") == "/a%2Fb/c"
