"""Lawful histories, bent in one place, are red under the right id."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from histories import renumbered
from simulated import ACTIONS, Dialect, play
from think_conformance.catalogue.model import requirements
from think_conformance.checkers.base import judge
from think_conformance.history.op import History, Record
from think_conformance.history.views import View

FEW = settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

actions = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 40)), max_size=40)


def red(history: History, state: str = "failed") -> set[str]:
    return {v.requirement for v in judge(history, requirements()) if v.state == state}


PRELUDE = [
    ("deliver", 60),
    ("deliver", 61),
    ("step", 0),
    ("step", 0),
    ("deliver", 60),
    ("deliver", 61),
    ("drop", 1),
    ("connect", 5),
    ("deliver", 61),
    ("deliver", 61),
    ("step", 0),
    ("deliver", 60),
    ("deliver", 61),
]
"""One client stays; another streams a little, loses its socket, comes back and acks."""

Bend = Callable[[View, st.DataObject], History]


def frame(record: Record) -> dict[str, object]:
    payload = record.payload if isinstance(record.payload, dict) else {}
    found = payload.get("frame")
    return found if isinstance(found, dict) else {}


def changed(record: Record, **fields: object) -> Record:
    return msgspec.structs.replace(record, payload={**record.payload, "frame": {**frame(record), **fields}})


def without(view: View, indexes: set[int]) -> History:
    return [record for record in view.history if record.index not in indexes]


def with_before(view: View, index: int, *records: Record) -> History:
    return [*view.history[:index], *records, *view.history[index:]]


def some(data: st.DataObject, choices: list[int]) -> int:
    assume(choices)
    return data.draw(st.sampled_from(choices))


def final_read(view: View) -> Record:
    assert view.final is not None
    return view.history[view.final.index]


def reading(view: View, messages: list[object]) -> History:
    """The history in which the final transcript is this one."""
    read = final_read(view)
    bent = msgspec.structs.replace(read, payload={**read.payload, "messages": messages})
    return [bent if record is read else record for record in view.history]


def chunks(view: View, *, replay: bool, first: int = 0) -> list[int]:
    return [
        r.index
        for r in view.history
        if r.kind == "frame-in"
        and "seq" in (f := frame(r))
        and f.get("replay", False) is replay
        and f["seq"] >= first
    ]


def drop_the_terminal_of_the_sender(view: View, data: st.DataObject) -> History:
    ends = [
        [index for index, reply in e.replies if reply.done]
        for e in view.exchanges.values()
        if e.sender and e.connection.closed is None and len(view.chain_of[e.request].ids) == 1
    ]
    ends = [end for end in ends if end]
    assume(ends)
    return without(view, set(data.draw(st.sampled_from(ends))))


def change_one_of_several_outcomes(view: View, data: st.DataObject) -> History:
    told = [[t for t in c.terminals if "outcome" in frame(view.history[t.index])] for c in view.chains]
    told = [[t for t in terminals if t.final] for terminals in told]
    index = some(data, [t.index for terminals in told if len(terminals) > 1 for t in terminals])
    other = "aborted" if frame(view.history[index])["outcome"] != "aborted" else "completed"
    return [changed(r, outcome=other) if r.index == index else r for r in view.history]


def double_a_live_chunk(view: View, data: st.DataObject) -> History:
    index = some(data, chunks(view, replay=False))
    return with_before(view, index, view.history[index])


def double_a_replayed_chunk(view: View, data: st.DataObject) -> History:
    index = some(data, chunks(view, replay=True, first=1))
    return with_before(view, index, view.history[index])


def lose_a_replayed_chunk(view: View, data: st.DataObject) -> History:
    inner = [
        index
        for index in chunks(view, replay=True)
        if frame(view.history[index + 1]).get("seq") == frame(view.history[index])["seq"] + 1  # type: ignore[operator]
        and view.history[index + 1].ids == view.history[index].ids
    ]
    return without(view, {some(data, inner)})


def call_the_model_once_more(view: View, data: st.DataObject) -> History:
    begin = view.phases["begin"]
    ended = [
        c for c in view.calls if any(k.marker == c.marker and (k.ended or begin) < begin for k in view.chains)
    ]
    index = some(data, [c.index for c in ended])
    call = view.history[index]
    number = 1 + max(c.number for c in view.calls if c.marker == call.ids["marker"])
    again = msgspec.structs.replace(call, ids={**call.ids, "call": number})
    end = msgspec.structs.replace(again, kind="model-end", payload={"how": "done"})
    return with_before(view, begin, again, end)


def forget_a_user_message(view: View, data: st.DataObject) -> History:
    messages = final_read(view).payload["messages"]
    lost = data.draw(st.sampled_from([m for m in messages if m["role"] == "user"]))
    return reading(view, [m for m in messages if m is not lost])


def forget_an_answer_that_was_stored(view: View, data: st.DataObject) -> History:
    messages = final_read(view).payload["messages"]
    seen = {str(m["id"]) for t in view.transcripts for m in t.messages if t.index < final_read(view).index}
    lost = [i for i, m in enumerate(messages) if m["role"] == "assistant" and m["id"] in seen]
    index = some(data, lost)
    return reading(view, messages[:index] + messages[index + 1 :])


def store_a_message_twice(view: View, data: st.DataObject) -> History:
    messages = final_read(view).payload["messages"]
    return reading(view, [*messages, data.draw(st.sampled_from(messages))])


def say_nothing_of_a_turn(view: View, data: st.DataObject) -> History:
    chains = [
        c for c in view.chains if c.accepted is not None and not c.cancels and c.request and not c.ambiguous
    ]
    assume(chains)
    chain = data.draw(st.sampled_from(chains))
    number = chain.root[1:]
    kept = [m for m in final_read(view).payload["messages"] if not str(m["id"]).startswith(f"a{number}.")]
    ends = {t.index for t in chain.terminals}
    bent = [record for record in reading(view, kept) if record.index not in ends]
    assume(not any(c.ambiguous for c in View(renumbered(bent)).chains))
    return bent


def answer_a_probe_twice(view: View, data: st.DataObject) -> History:
    index = some(data, [r.index for r in view.history if r.kind == "frame-in" and "probeId" in frame(r)])
    return with_before(view, index, view.history[index])


def stream_to_who_has_not_acked(view: View, data: st.DataObject) -> History:
    offers = [
        r.index
        for r in view.history
        if frame(r).get("type") == "cf_agent_stream_resuming"
        and not any(
            p.index < r.index and p.sent
            for p in view.exchanges[r.ids["connection"], str(frame(r)["id"])].frames
        )
    ]
    index = some(data, offers)
    live = {"type": "cf_agent_use_chat_response", "id": frame(view.history[index])["id"], "body": "{}"}
    chunk = msgspec.structs.replace(
        view.history[index], payload={"frame": {**live, "done": False}, "size": 1}
    )
    return with_before(view, index + 1, chunk)


BENDS: list[tuple[Bend, str, str]] = [
    (drop_the_terminal_of_the_sender, "WIRE-85", "failed"),
    (change_one_of_several_outcomes, "WIRE-206", "failed"),
    (change_one_of_several_outcomes, "TURN-150", "failed"),
    (double_a_live_chunk, "WIRE-83", "warned"),
    (double_a_replayed_chunk, "WIRE-104", "failed"),
    (lose_a_replayed_chunk, "WIRE-104", "failed"),
    (call_the_model_once_more, "KIT-02", "failed"),
    (forget_a_user_message, "KIT-01", "failed"),
    (store_a_message_twice, "KIT-03", "failed"),
    (say_nothing_of_a_turn, "TURN-150", "failed"),
    (answer_a_probe_twice, "WIRE-102", "warned"),
    (stream_to_who_has_not_acked, "WIRE-105", "warned"),
]


@pytest.mark.parametrize(
    ("bend", "requirement", "state"), BENDS, ids=lambda value: getattr(value, "__name__", value)
)
@FEW
@given(tail=actions, data=st.data())
def test_a_bent_history_is_red_under_the_right_id(
    bend: Bend, requirement: str, state: str, tail: list[tuple[str, int]], data: st.DataObject
) -> None:
    view = View(play(Dialect(), [*PRELUDE, *tail]).history)
    bent = renumbered(bend(view, data))
    assert requirement in red(bent, state)


@FEW
@given(tail=actions, data=st.data())
def test_an_answer_that_was_stored_and_is_gone_is_red(
    tail: list[tuple[str, int]], data: st.DataObject
) -> None:
    view = View(play(Dialect(), [*PRELUDE, *tail]).history)
    bent = renumbered(forget_an_answer_that_was_stored(view, data))
    assert red(bent) & {"KIT-04", "KIT-05", "KIT-07"}
