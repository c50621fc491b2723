"""The body of a chat request (WIRE-50 ... WIRE-60)."""

from __future__ import annotations

import pytest

from reference_world import assistant, user
from think_conformance.wire.codec import dumps
from think_conformance.wire.frames import RequestInit
from think_reference.core.request import BadRequest, ChatBody, parse


def body(text: str) -> ChatBody:
    return parse(RequestInit(method="POST", body=text))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "`messages` must be an array"),
        ("{}", "`messages` must be an array"),
        ('{"messages":{}}', "`messages` must be an array"),
        ('{"messages":[1]}', r"`messages\[0\]` must be an object"),
        ('{"messages":[{"id":"","role":"user","parts":[]}]}', r"`messages\[0\]`"),
        ('{"messages":[{"id":"a","role":"tool","parts":[]}]}', r"`messages\[0\]`"),
        ('{"messages":[{"id":"a","role":["user"],"parts":[]}]}', r"`messages\[0\]`"),
        ('{"messages":[{"id":"a","role":"user","parts":{}}]}', r"`messages\[0\]`"),
        ('{"messages":[],"x":' + "[" * 200 + "]" * 200 + "}", "nested more than 100 deep"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_bad_bodies_say_why(text: str, why: str) -> None:
    with pytest.raises(BadRequest, match=why):
        body(text)


def test_a_body_is_read() -> None:
    listed = [user("u0"), assistant("a0", "x"), user("u1"), user("u2")]
    read = body(dumps({"messages": listed, "trigger": "submit-message", "clientTools": [], "tone": 1}))
    assert read == ChatBody(listed, False, {"tone": 1})
    assert read.message_ids == ("u1", "u2")
    assert read.last_user == "u2"


def test_a_list_that_ends_in_an_answer_names_no_messages() -> None:
    read = body(dumps({"messages": [user("u1"), assistant("a1", "x")], "trigger": "regenerate-message"}))
    assert (read.message_ids, read.last_user, read.regenerate) == ((), "u1", True)


def test_the_empty_list_is_good() -> None:
    read = body('{"messages":[]}')
    assert (read.message_ids, read.last_user) == ((), None)
