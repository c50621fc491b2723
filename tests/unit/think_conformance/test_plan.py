"""A plan that could never be played to its end is refused, with the place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from think_conformance.plan import Plan

GOOD: dict[str, Any] = {
    "version": 1,
    "model": {"t1": [[{"text": "w1 "}, {"gate": "g"}, "done"]]},
    "operations": [
        {"do": "connect", "client": "a"},
        {"do": "send", "client": "a", "turn": "t1"},
        {
            "do": "open-gate",
            "gate": "g",
            "after": {"fired": "cut", "seen": {"kind": "model-gate", "gate": "g"}},
        },
        {"do": "stop", "client": "a", "request": "r", "after": {"fault": "cut"}},
        {"do": "raw", "client": "a", "text": ""},
    ],
    "faults": [{"id": "cut", "leg": "client", "when": {"direction": "up"}, "do": [{"cut": "reset"}]}],
}


def plan(**changes: Any) -> Plan:
    return msgspec.convert({**GOOD, **changes}, Plan)


def test_a_plan_whose_names_all_stand_for_something_is_taken() -> None:
    assert len(plan().operations) == 5


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a fault to fire": ({"do": "wait", "after": {"fired": "ct"}}, r"`ct` is no fault; did you mean `cut`\?"),
    "a fault to end": (
        {"do": "wait", "after": {"fault": "x"}},
        r"`x` is no fault; known: cut - at .*after\.fault",
    ),
    "a gate to see": ({"do": "wait", "after": {"seen": {"gate": "h"}}}, "`h` is no gate of a model script"),
    "a gate to open": ({"do": "open-gate", "gate": "h"}, r"`h` is no gate .* at `\$\.operations\[0\]\.gate`"),
    "no gate": ({"do": "open-gate"}, "`open-gate` needs `gate`"),
    "no turn to send": ({"do": "send", "request": "r"}, r"`send` needs `turn` - at `\$\.operations\[0\]`"),
    "nothing to stop": ({"do": "stop"}, "`stop` needs `turn` or `request`"),
    "nothing to acknowledge": ({"do": "ack"}, "`ack` needs `turn` or `request`"),
    "a turn without a script": ({"do": "send", "turn": "t2"}, "`t2` is no turn with a model script"),
    "no method": ({"do": "rpc"}, "`rpc` needs `method`"),
    "no text": ({"do": "raw"}, "`raw` needs `text`"),
    "nothing to wait for": ({"do": "wait"}, "`wait` needs `after`"),
    "a count from 0": ({"do": "wait", "after": {"seen": {"nth": 0}}}, "`nth` counts from 1"),
    "time that is none": ({"do": "probe", "within_s": -1}, "`within_s` is a number of seconds"),
    "a code that is none": ({"do": "close", "code": 1006}, "1006 is no code"),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_operation_that_cannot_be_played_is_refused(what: str) -> None:
    operation, says = WRONG[what]
    with pytest.raises(msgspec.ValidationError, match=says):
        plan(operations=[operation])


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"leg": "client", "when": {"fired": "x"}, "do": [{"cut": "fin"}]}, "`x` is no fault"),
        ({"leg": "target", "when": {"seen": {"gate": "h"}}, "do": [{"process": "kill"}]}, "`h` is no gate"),
        ({"leg": "target", "when": {"seen": {"nth": 0}}, "do": [{"process": "kill"}]}, "`nth` counts"),
        (
            {"leg": "target", "when": {}, "do": [{"process": "kill"}]},
            r"needs `when: .* at `\$\.faults\[0\]\.when`",
        ),
        (
            {"leg": "target", "when": {"seen": {}}, "do": [{"cut": "fin"}]},
            r"only process .*\.faults\[0\]\.do`",
        ),
    ],
)
def test_a_fault_that_can_never_fire_is_refused(fault: dict[str, Any], says: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=says):
        plan(operations=[], faults=[{"id": "f", **fault}])
