from __future__ import annotations

from typing import Any

import msgspec
import pytest

from think_proxy.plan import Fault

GOOD = {"id": "f", "leg": "client", "when": {}, "do": [{"cut": "reset"}]}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"do": []}, "does nothing"),
        ({"do": [{}]}, "exactly one thing"),
        ({"do": [{"cut": "fin", "drop": True}]}, "exactly one thing"),
        ({"do": [{"cut": {"close": 1006}}]}, "1006 is no code"),
        ({"do": [{"cut": {"close": 70000}}]}, "70000 is no code"),
        ({"do": [{"cut": {"close": 1011, "reason": "ä" * 62}}]}, "at most 123 bytes"),
        ({"do": [{"stall": {"for": -1}}]}, "number of seconds"),
        ({"do": [{"stall": {"for": float("inf")}}]}, "number of seconds"),
        ({"within_s": 0}, "above 0"),
        ({"within_s": float("inf")}, "above 0"),
        ({"times": 0}, "counts from 1"),
        ({"when": {"nth": 0}}, "counts from 1"),
        ({"when": {"nht": 1}}, "unknown field `nht`"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(row: dict[str, Any], message: str) -> None:
    assert msgspec.convert(GOOD, Fault).do[0].name == "cut"
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert({**GOOD, **row}, Fault)
