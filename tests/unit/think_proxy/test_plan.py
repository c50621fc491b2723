from __future__ import annotations

from typing import Any

import msgspec
import pytest

from think_proxy.plan import Action, Fault

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
        ({"when": {"connection": 0}}, "`connection` counts from 1"),
        ({"do": [{"delay": {"for": 1, "direction": "up"}}]}, "`delay` has no direction"),
        ({"do": [{"truncate": {"keep": -1}}]}, "number of bytes"),
        ({"do": [{"truncate": {"end": "soon"}}]}, "Invalid enum value 'soon'"),
        ({"do": [{"status": {"code": 101}}]}, "101 is no status of an answer"),
        ({"do": [{"status": {"code": 600}}]}, "600 is no status of an answer"),
        ({"do": [{"status": {"code": 500, "headers": {"a b": "c"}}}]}, "`a b: c` is no header"),
        ({"do": [{"status": {"code": 500, "headers": {"a": "b\r\nc: d"}}}]}, r"is no header"),
        ({"when": {"nht": 1}}, "unknown field `nht`"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(row: dict[str, Any], message: str) -> None:
    assert msgspec.convert(GOOD, Fault).do[0].name == "cut"
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert({**GOOD, **row}, Fault)


@pytest.mark.parametrize(
    ("action", "form"),
    [
        ({"cut": "reset"}, "cut.reset"),
        ({"cut": {"close": 1011}}, "cut.close"),
        ({"truncate": {}}, "truncate.fin"),
        ({"truncate": {"end": "clean"}}, "truncate.clean"),
        ({"process": "kill"}, "process"),
        ({"status": {"code": 500}}, "status"),
    ],
)
def test_the_form_of_an_action(action: dict[str, Any], form: str) -> None:
    assert msgspec.convert(action, Action).form == form
