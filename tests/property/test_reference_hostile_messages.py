"""Whatever a client calls a message, the reference refuses it or lives with it: now, in the prompt, after a
restart."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from reference_world import World, terminals
from think_conformance.wire.codec import decode_client, encode, loads
from think_conformance.wire.frames import ChatRequest
from think_reference.agent import Think
from think_reference.core.effects import Effect, Persist, Rows
from think_reference.core.events import Received
from think_reference.shell.journal import Journal, path_of

HALF = "\ud83d"
TEXT = st.text(max_size=4) | st.sampled_from(["", HALF, "\0", "tool-", "streaming", "u1", "a1"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


def mostly(wanted: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What belongs there, and now and then anything."""
    return st.one_of(wanted, wanted, wanted, JSON)


FIELDS = {
    "text": mostly(TEXT),
    "state": mostly(st.sampled_from(["streaming", "done", "input-available", "output-available"])),
    "toolCallId": mostly(st.sampled_from(["c1", "c2", HALF])),
    "toolName": mostly(TEXT),
    "input": JSON,
    "output": JSON,
    "errorText": mostly(TEXT),
    "approval": JSON,
    "providerMetadata": JSON,
}
TYPES = ["text", "reasoning", "step-start", "dynamic-tool", "tool-look", "file", "data-x", HALF]
PART = st.fixed_dictionaries({"type": mostly(st.sampled_from(TYPES))}, optional=FIELDS)
MESSAGE = st.fixed_dictionaries(
    {
        "id": mostly(st.sampled_from(["u1", "a1", "x", HALF])),
        "role": mostly(st.sampled_from(["user", "assistant", "system"])),
        "parts": mostly(st.lists(mostly(PART), max_size=3)),
    },
    optional={"metadata": JSON, "extra": JSON},
)
BODY = st.fixed_dictionaries(
    {"messages": mostly(st.lists(mostly(MESSAGE), max_size=3))},
    optional={"trigger": st.just("regenerate-message"), "custom": JSON},
)
REQUEST_ID = st.sampled_from(["r1", "r2", "r3", HALF, ""])
REQUESTS = st.lists(st.tuples(REQUEST_ID, mostly(BODY)), min_size=1, max_size=3)


def part_of_an_answer(**fields: Any) -> list[tuple[str, Any]]:
    """A request that is told of an answer with this part."""
    parts = [fields]
    return [("r1", {"messages": [{"id": "a1", "role": "assistant", "parts": parts}]})]


class Life:
    """An agent over a real journal; every frame and prompt is written out as it would be sent."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory()
        self._journal = Journal(path_of(Path(self._folder.name), "k", "n"), "k", "n")
        self.world = World(Think)
        self.world.connect(1)

    def receive(self, request_id: str, body: Any) -> bool:
        """A client asks; whether it was accepted. One that is not is told so, and leaves no trace."""
        init = {"method": "POST", "body": json.dumps(body)}
        frame = decode_client(
            json.dumps({"type": "cf_agent_use_chat_request", "id": request_id, "init": init})
        )
        assert isinstance(frame, ChatRequest)
        before, told = self.world.rows, len(self.world.frames[1])
        known = {t.id for t in before.turns}
        self._keep(self.world.on(Received(1, frame)))
        accepted = {t.id for t in self.world.rows.turns} - known
        if not accepted and request_id not in known:
            assert terminals(self.world.frames[1][told:]) == [(request_id, "error")]
            assert self.world.rows == before
        return bool(accepted)

    def restart(self) -> None:
        """Load from the journal alone, then answer all that is open."""
        rows = self._journal.read()
        assert rows.messages == self.world.rows.messages
        assert rows == Rows(sorted(self.world.rows.turns, key=lambda t: t.id), *_others(self.world.rows))
        self.world = World(Think, rows=rows)
        self._keep(self.world.effects)
        self.world.connect(1)
        while self.world.calls:
            self._keep(self.world.say("so"))
            self._keep(self.world.finish())
        self._write_out()

    def interrupt(self) -> None:
        """The open call has said something when the process dies."""
        if self.world.calls:
            self._keep(self.world.say(HALF))

    def close(self) -> None:
        """Done."""
        self._journal.close()
        self._folder.cleanup()

    def _keep(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                self._journal.write(effect.writes)
        self._write_out()

    def _write_out(self) -> None:
        for frame in self.world.frames[1] if self.world.frames else []:
            encode(frame).encode()
        for call in self.world.called:
            json.dumps(call.messages, allow_nan=False).encode()


def _others(rows: Rows) -> tuple[Any, ...]:
    return rows.chunks, rows.messages, rows.meta


@settings(max_examples=150, deadline=None)
@given(requests=REQUESTS)
@example(requests=part_of_an_answer(type="tool-x", toolCallId="c", state=[1]))
@example(requests=part_of_an_answer(type="dynamic-tool", toolCallId="c"))
@example(requests=[(HALF, {"messages": []})])
@example(requests=[("r1", {"messages": [{"id": HALF, "role": "user", "parts": []}]})])
def test_no_message_of_a_client_stops_the_agent(requests: list[tuple[str, Any]]) -> None:
    life = Life()
    life.receive("r0", {"messages": [{"id": "u0", "role": "user", "parts": []}]})
    accepted = {"r0"} | {request_id for request_id, body in requests if life.receive(request_id, body)}
    life.interrupt()
    life.restart()
    ended = {t.root for t in life.world.rows.turns if t.outcome == "completed"}
    assert ended == accepted
    life.restart()
    life.close()


def test_a_split_emoji_reaches_the_model_and_the_transcript() -> None:
    life = Life()
    parts = [{"type": "text", "text": HALF}]
    assert life.receive("r1", {"messages": [{"id": "u1", "role": "user", "parts": parts}]})
    life.restart()
    asked = life.world.called[0].messages
    assert loads(json.dumps(asked)) == asked
    assert asked[0] == {"role": "user", "content": HALF}
    assert life.world.agent.messages[0]["parts"] == parts
    life.close()
