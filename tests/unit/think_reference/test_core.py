"""Names, derived ids, nesting, budgets, prompts, answer chunks, storage, RPC."""

from __future__ import annotations

from typing import Any

import pytest

from reference_world import assistant, stored_user
from think_conformance.wire.chunks import MessageBuilder, chunk_problem
from think_conformance.wire.frames import RpcRequest, RpcResponse
from think_reference.agent import Think, callable_by_clients
from think_reference.core.answer import AnswerChunks
from think_reference.core.application import Storage
from think_reference.core.bounds import MAX_DEPTH, too_deep
from think_reference.core.budgets import exhausted, next_attempt
from think_reference.core.effects import PutMeta
from think_reference.core.ids import answer_id, run_id
from think_reference.core.names import kebab
from think_reference.core.prompt import GO_ON, prompt_for
from think_reference.core.rpc import call
from think_reference.core.transcript import Transcript
from think_reference.core.turn import Turn


@pytest.mark.parametrize(
    ("binding", "name"),
    [
        ("MyAgent", "my-agent"),
        ("MY_AGENT", "my-agent"),
        ("my_agent", "my-agent"),
        ("Conformance", "conformance"),
        ("_Odd_", "odd"),
        ("HTTPAgent", "h-t-t-p-agent"),
    ],
)
def test_binding_names_become_kebab(binding: str, name: str) -> None:
    assert kebab(binding) == name


def test_derived_ids_depend_on_every_part() -> None:
    ids = [
        run_id("a", "r", 1),
        run_id("a", "r", 2),
        run_id("a", "r1", 1),
        run_id("b", "r", 1),
        run_id("a\nb", "c", 1),
        run_id("a", "b\nc", 1),
        answer_id("a", "r", 1),
        answer_id("a", "r", 1, 1),
    ]
    assert len(set(ids)) == len(ids)
    assert run_id("a", "r", 1) == ids[0]


@pytest.mark.parametrize(("depth", "deep"), [(MAX_DEPTH, False), (MAX_DEPTH + 1, True)])
@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"k": v, "other": 1}])
def test_nesting_is_measured(depth: int, deep: bool, wrap: Any) -> None:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    assert too_deep(value) == deep


@pytest.mark.parametrize(
    ("attempt", "evaluated_at", "progress", "expected"),
    [(0, 0.0, False, 1), (3, 99.0, True, 1), (3, 71.0, False, 3), (3, 70.0, False, 4)],
)
def test_attempts_are_counted(attempt: int, evaluated_at: float, progress: bool, expected: int) -> None:
    assert next_attempt(attempt, evaluated_at, progress=progress, now=100.0) == expected


def test_the_last_allowed_attempt_is_not_too_many() -> None:
    assert not exhausted(10, 10)
    assert exhausted(11, 10)


def test_a_prompt_holds_nothing_behind_its_own_message() -> None:
    transcript = Transcript(
        [
            {"id": "s", "role": "system", "parts": [{"type": "text", "text": "be kind"}]},
            stored_user("u1"),
            assistant("a1", ""),
            stored_user("u2"),
            assistant("a2", "half"),
            stored_user("u3"),
        ]
    )
    turn = Turn(id="r", root="r", order=0, anchor="u2", message_id="a2")
    own = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "u1"},
        {"role": "user", "content": "u2"},
    ]
    assert prompt_for(turn, transcript, assistant("a2", "")) == own
    assert prompt_for(turn, transcript, assistant("a2", "half")) == [
        *own,
        {"role": "assistant", "content": "half"},
        {"role": "user", "content": GO_ON},
    ]


def test_reasoning_and_text_are_separate_closed_blocks() -> None:
    chunks = AnswerChunks()
    said = chunks.opening("m") + chunks.delta("reasoning", "hm") + chunks.delta("text", "a")
    said += chunks.delta("text", "b") + chunks.closing("stop")
    assert [c["type"] for c in said] == [
        "start",
        "start-step",
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]
    builder = MessageBuilder("x")
    for chunk in said:
        assert chunk_problem(chunk) is None
        builder.apply(chunk)
    assert builder.message["id"] == "m"
    assert builder.message["parts"][1:] == [
        {"type": "reasoning", "text": "hm", "state": "done"},
        {"type": "text", "text": "ab", "state": "done"},
    ]


def test_storage_gives_back_what_was_put_and_each_write_once() -> None:
    storage = Storage({"app.a": 1, "failure": "r"})
    assert (storage.get("a"), storage.get("failure"), storage.get("b", 2)) == (1, None, 2)
    storage.put("a", 3)
    assert storage.get("a") == 3
    assert storage.drain() == (PutMeta("app.a", 3),)
    assert storage.drain() == ()


class Caller(Think):
    """Methods of each kind."""

    @callable_by_clients
    def add(self, a: int, b: int) -> int:
        """Works."""
        return a + b

    @callable_by_clients
    def nothing(self) -> None:
        """Gives nothing."""

    @callable_by_clients
    def broken(self) -> None:
        """Fails."""
        raise ValueError("broken on purpose")

    @callable_by_clients
    def silent(self) -> None:
        """Fails without a word."""
        raise ValueError

    def hidden(self) -> None:
        """Not for clients."""


@pytest.mark.parametrize(
    ("method", "args", "answer"),
    [
        ("add", [1, 2], RpcResponse(id="x", success=True, result=3, done=True)),
        ("nothing", [], RpcResponse(id="x", success=True, done=True)),
        ("broken", [], RpcResponse(id="x", success=False, error="broken on purpose")),
        ("silent", [], RpcResponse(id="x", success=False, error="Unknown error occurred")),
        ("hidden", [], RpcResponse(id="x", success=False, error="Method hidden is not callable")),
        ("__init__", [], RpcResponse(id="x", success=False, error="Method __init__ is not callable")),
        ("storage", [], RpcResponse(id="x", success=False, error="Method storage does not exist")),
        ("nope", [], RpcResponse(id="x", success=False, error="Method nope does not exist")),
    ],
)
def test_a_call_is_always_answered(method: str, args: list[Any], answer: RpcResponse) -> None:
    request = RpcRequest(id="x", method=method, args=args)
    assert call(Caller(Storage({})), request) == answer


def test_wrong_arguments_are_an_answer_too() -> None:
    assert not call(Caller(Storage({})), RpcRequest(id="x", method="add", args=[1])).success
