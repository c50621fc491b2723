"""What a client saw: the conversation, for requests that repeat it; the newest stream, for a stop."""

from __future__ import annotations

from typing import Any

from think_conformance.history.op import Record
from think_conformance.shell.echo import conversation, newest_stream
from think_conformance.wire.codec import dumps


def user(ident: str, text: str) -> dict[str, Any]:
    return {"id": ident, "role": "user", "parts": [{"type": "text", "text": text}]}


def history(*events: tuple[str, str, dict[str, Any]]) -> list[Record]:
    return [
        Record(i, 0.0, "run" if kind == "invoke" else "client", kind, {"client": client}, payload)  # type: ignore[arg-type]
        for i, (kind, client, payload) in enumerate(events)
    ]


def sent(message: dict[str, Any], client: str = "a") -> tuple[str, str, dict[str, Any]]:
    return ("invoke", client, {"do": "send", "request": "r1", "messages": [message]})


def chunk(body: dict[str, Any] | str, client: str = "a", **more: Any) -> tuple[str, str, dict[str, Any]]:
    text = body if isinstance(body, str) else dumps(body)
    frame = {"type": "cf_agent_use_chat_response", "id": "r1", "body": text, "done": False, **more}
    return ("frame-in", client, {"frame": frame})


STREAMED = [
    sent(user("u1", "hi")),
    chunk({"type": "start", "messageId": "m1"}),
    chunk({"type": "text-start", "id": "t"}),
    chunk({"type": "text-delta", "id": "t", "delta": "w1 "}),
    chunk({"type": "text-delta", "id": "t", "delta": "w2 "}),
]


def texts(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(m["id"], "".join(p.get("text", "") for p in m["parts"])) for m in messages]


def test_a_streamed_answer_is_repeated_as_far_as_it_came() -> None:
    assert texts(conversation(history(*STREAMED), "a", "server-ids")) == [("u1", "hi"), ("m1", "w1 w2 ")]


def test_answers_can_stand_under_ids_the_client_made_up() -> None:
    assert texts(conversation(history(*STREAMED), "a", "own-ids")) == [("u1", "hi"), ("own-1", "w1 w2 ")]


def test_other_clients_and_errors_do_not_matter() -> None:
    more = [sent(user("u9", "no"), "b"), chunk("a plain text", error=True)]
    assert texts(conversation(history(*STREAMED, *more), "a", "server-ids"))[-1] == ("m1", "w1 w2 ")


def test_a_transcript_frame_overrules_what_was_streamed() -> None:
    answer = {"id": "m1", "role": "assistant", "parts": [{"type": "text", "text": "all"}]}
    frame = {"type": "cf_agent_chat_messages", "messages": [user("u1", "hi"), answer]}
    seen = history(*STREAMED, ("frame-in", "a", {"frame": frame}))
    assert texts(conversation(seen, "a", "server-ids")) == [("u1", "hi"), ("m1", "all")]


def test_nonsense_from_the_target_is_passed_over() -> None:
    nonsense = [
        ("frame-in", "a", {"frame": {"type": "cf_agent_chat_messages", "messages": [1, {}, {"id": 1}]}}),
        ("frame-in", "a", {"frame": {"type": "cf_agent_chat_messages"}}),
        ("frame-in", "a", {"frame": {"type": "cf_agent_use_chat_response"}}),
        ("frame-in", "a", {"frame": {"type": "cf_agent_use_chat_response", "id": [], "body": "{}"}}),
        chunk("{"),
        chunk("[]"),
        ("frame-in", "a", {"text": "no"}),
    ]
    seen = history(*STREAMED, *nonsense)
    assert texts(conversation(seen, "a", "server-ids")) == [("u1", "hi"), ("m1", "w1 w2 ")]


def test_a_stream_without_text_is_no_message() -> None:
    assert texts(conversation(history(*STREAMED[:2]), "a", "server-ids")) == [("u1", "hi")]


def test_the_newest_stream_is_that_which_this_client_was_offered_or_shown_last() -> None:
    offer = ("frame-in", "a", {"frame": {"type": "cf_agent_stream_resuming", "id": "r2"}})
    others = ("frame-in", "b", {"frame": {"type": "cf_agent_stream_resuming", "id": "r3"}})
    notice = ("frame-in", "a", {"frame": {"type": "cf_agent_chat_recovering", "id": "r4"}})
    shown = [*STREAMED, others, notice]
    assert newest_stream(history(*shown), "a") == "r1"
    assert newest_stream(history(*STREAMED, offer, others), "a") == "r2"
    assert newest_stream(history(others), "a") is None
    assert newest_stream(history(("frame-in", "a", {"text": "no frame"})), "a") is None
