"""The body of a chat request (WIRE-50 ... WIRE-60)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reference_world import assistant, user
from think_conformance.wire.codec import dumps
from think_conformance.wire.frames import ChatRequest, RequestInit
from think_reference.core.request import BadRequest, ChatBody, parse


def body(text: str, request_id: str = "r1") -> ChatBody:
    return parse(ChatRequest(id=request_id, init=RequestInit(method="POST", body=text)))


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


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (1, "must be an object"),
        ({}, "needs a text `type`"),
        ({"type": ["text"]}, "needs a text `type`"),
        ({"type": "text"}, "needs a text `text`"),
        ({"type": "text", "text": None}, "needs a text `text`"),
        ({"type": "text", "text": "", "state": {}}, "has a `state` that is no text"),
        ({"type": "reasoning", "text": 1}, "needs a text `text`"),
        ({"type": "tool-x"}, "needs a text `toolCallId`"),
        ({"type": "tool-x", "toolCallId": "c", "state": [1]}, "has a `state` that is no text"),
        ({"type": "tool-x", "toolCallId": "c", "errorText": 1}, "has a `errorText` that is no text"),
        ({"type": "dynamic-tool", "toolCallId": "c"}, "needs a text `toolName`"),
        ({"type": "dynamic-tool", "toolCallId": 1, "toolName": "x"}, "needs a text `toolCallId`"),
    ],
)
@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_bad_parts_say_why(role: str, part: Any, why: str) -> None:
    parts = [{"type": "step-start"}, part]
    with pytest.raises(BadRequest, match=re.escape(f"`messages[1].parts[1]` {why}")):
        body(dumps({"messages": [user("u1"), {"id": "m", "role": role, "parts": parts}]}))


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "half \ud83d"},
        {"type": "tool-x", "toolCallId": "c"},
        {"type": "tool-x", "toolCallId": "\ud83d", "state": None, "input": [1], "output": [2]},
        {"type": "dynamic-tool", "toolCallId": "c", "toolName": "x", "state": "made-up"},
        {"type": "data-x", "data": 1, "state": [1]},
        {"type": "unheard-of", "text": 1, "toolCallId": 2},
    ],
)
def test_parts_that_can_be_kept_are_good(part: Any) -> None:
    listed = [{"id": "m", "role": "assistant", "parts": [part]}]
    assert body(dumps({"messages": listed})).messages == listed


@pytest.mark.parametrize("name", ["", "\ud800", "r\udfff"])
def test_what_can_name_no_row_is_no_id(name: str) -> None:
    with pytest.raises(BadRequest, match=r"^`id` must"):
        body(dumps({"messages": []}), name)
    with pytest.raises(BadRequest, match=r"^`messages\[0\]` must"):
        body(dumps({"messages": [user(name, "hello")]}))


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
