from __future__ import annotations

import msgspec
import pytest

from think_proxy.plan import FaultPlan
from think_proxy.plan_file import PlanError, load

YAML = """\
version: 1
seed: 42
operations:
  - {client: a, do: send}
faults:
  - id: lose
    leg: client
    when: {client: a, nested: {field: body, json: {type: text-delta}}, nth: 3}
    do: [{process: kill}, {stall: {for: 1.5}}, {cut: {close: 1011}}]
"""


def test_yaml_and_json_read_the_same() -> None:
    plan = load(YAML, "p", FaultPlan)
    assert plan.seed == 42
    assert [action.name for action in plan.faults[0].do] == ["process", "stall", "cut"]
    assert plan.operations == [{"client": "a", "do": "send"}]
    assert load(msgspec.json.encode(plan).decode(), "p", FaultPlan) == plan


def test_json_that_yaml_reads_differently() -> None:
    text = '{\n\t"version": 1,\n\t"faults": [],\n\t"model": 1e5\n}'
    assert load(text, "p", FaultPlan).model == 100000


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("nth: 3", "nth: x", "p:8:77: Expected `int | null`, got `str`"),
        ("nth: 3", "nht: 3", "p:8:72: Object contains unknown field `nht`"),
        ("    leg: client\n", "", "p:6:5: Object missing required field `leg`"),
        ("leg: client", "leg: moon", "p:7:10: Invalid enum value 'moon'"),
        ("{process: kill}", "{}", "p:9:10: an action names exactly one thing to do, this one names none"),
        ("for: 1.5", "for: -1", "p:9:35: `for` is a number of seconds"),
        ("1011", "1006", "p:9:54: 1006 is no code a close frame can carry"),
        ("version: 1", "version: 2", "p:1:10: Invalid enum value 2"),
        ("version: 1\n", "", "p:1:1: Object missing required field `version`"),
        ("faults:", "falts:", "p:5:1: Object contains unknown field `falts`"),
        ("nth: 3}", "nth: 3", "p:9:7: expected ',' or '}', but got ':'"),
        ("seed: 42", "seed: @", "p:2:7: found character '@' that cannot start any token"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(old: str, new: str, expected: str) -> None:
    text = YAML.replace(old, new, 1)
    assert text != YAML
    with pytest.raises(PlanError) as wrong:
        load(text, "p", FaultPlan)
    assert str(wrong.value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "p:1:1: Expected `object`, got `null`"),
        ("- 1", "p:1:1: Expected `object`, got `array`"),
        ('{\n  "version": 1,\n  "seed": "x"\n}', "p:3:11: Expected `int`, got `str`"),
        ('{\n\t"version": 1,\n\t"seed": "x"\n}', "p:3:10: Expected `int`, got `str`"),
        ("version: 1\n---\nversion: 1\n", "p:2:1: but found another document"),
        ("a: *b", "p:1:4: found undefined alias 'b'"),
    ],
)
def test_texts_that_are_no_plan(text: str, expected: str) -> None:
    with pytest.raises(PlanError) as wrong:
        load(text, "p", FaultPlan)
    assert str(wrong.value) == expected


def doubled(times: int) -> str:
    """A list of two, of which each line holds the one before twice."""
    lines = [f"- &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, times)]
    return "\n".join(["- &a0 [x, x]", *lines])


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "\x00", "a: !!python/object:os.system {}", doubled(60), "&a [*a]"],
    ids=["deep", "NUL", "tag", "aliases of aliases", "a list in itself"],
)
def test_hostile_texts_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(PlanError) as wrong:
        load(text, "p", FaultPlan)
    assert str(wrong.value).startswith("p:1:")
    assert "\n" not in str(wrong.value)
