"""Which record is the moment a plan speaks of."""

from __future__ import annotations

import pytest

from think_conformance.history.op import Record
from think_conformance.shell.seen import sees
from think_proxy.plan import Nested, Seen

DELTA = Record(
    index=4,
    at=0.1,
    source="client",
    kind="frame-in",
    ids={"client": "a", "connection": "a.1"},
    payload={"frame": {"type": "r", "done": False, "body": '{"type":"text-delta","delta":"x"}'}, "size": 60},
)
GATE = Record(index=5, at=0.1, source="model", kind="model-gate", ids={"gate": "g"}, payload={"x": 1})
TEXT = Record(index=6, at=0.1, source="client", kind="frame-in", ids={"client": "a"}, payload={"text": "no"})

SEEN = {
    "everything": (Seen(), DELTA, True),
    "source": (Seen(source="client"), DELTA, True),
    "other source": (Seen(source="model"), DELTA, False),
    "other kind": (Seen(kind="frame-out"), DELTA, False),
    "client": (Seen(client="a"), DELTA, True),
    "other client": (Seen(client="b"), DELTA, False),
    "no client": (Seen(client="a"), GATE, False),
    "frame field": (Seen(json={"type": "r"}), DELTA, True),
    "other frame field": (Seen(json={"type": "q"}), DELTA, False),
    "absent frame field": (Seen(json={"outcome": "completed"}), DELTA, False),
    "nested": (Seen(nested=Nested("body", {"type": "text-delta"})), DELTA, True),
    "other nested": (Seen(nested=Nested("body", {"type": "finish"})), DELTA, False),
    "payload of other kinds": (Seen(json={"x": 1}), GATE, True),
    "text that is no frame": (Seen(json={"type": "r"}), TEXT, False),
    "nested in text that is no frame": (Seen(nested=Nested("body", {})), TEXT, False),
}


@pytest.mark.parametrize("what", SEEN)
def test_sees(what: str) -> None:
    seen, record, expected = SEEN[what]
    assert sees(seen, record) is expected
