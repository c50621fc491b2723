"""Cases played against the reference: what chance decides, and what cannot be played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from played import recorder, reference, scenario
from think_conformance.errors import UsageError
from think_conformance.scenarios.base import DELTA, saw_terminal, words
from think_conformance.shell.case import Case, check_faults
from think_conformance.shell.recorder import Recorder

AT_RANDOM = scenario(
    model={"t1": [[*words(1, 12), "done"]]},
    operations=[
        {"client": "a", "do": "connect"},
        {"client": "a", "do": "send", "turn": "t1"},
        {"do": "wait", "after": {"seen": saw_terminal("a")}},
    ],
    faults=[
        {
            "id": leg,
            "leg": leg,
            "when": {"direction": "down", "probability": 0.5, **message},
            "do": [{"delay": {"for": 0}}],
            "times": 100,
        }
        for leg, message in (("client", DELTA), ("model", {}))
    ],
)


async def struck(seed: int, folder: Path) -> dict[str, list[int]]:
    """The ordinals of the messages that chance struck, by leg."""
    async with reference(folder, seed) as (instance, world):
        recorded = recorder()
        await Case(AT_RANDOM, f"mine-{folder.name}", instance, world, recorded).play(20)
    fired = [r.payload for r in recorded.records if r.kind == "fault-fired"]
    return {leg: [p["ordinal"] for p in fired if p["leg"] == leg] for leg in ("client", "model")}


async def test_chance_comes_from_the_seed_on_every_leg(tmp_path: Path) -> None:
    one = await struck(1, tmp_path / "one")
    again = await struck(1, tmp_path / "again")
    other = await struck(2, tmp_path / "other")
    assert again == one
    assert other["client"] != one["client"]
    assert other["model"] != one["model"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "effects": ({"leg": "effects", "do": [{"drop": True}]}, "fault `f`: .*cannot strike the leg `effects`"),
    "routing": ({"leg": "routing", "do": [{"drop": True}]}, "fault `f`: .*cannot strike the leg `routing`"),
    "evict on a wire": ({"do": [{"process": "evict"}]}, "fault `f`: `evict` .* from the leg `client`"),
    "a process action from the model": (
        {"leg": "model", "do": [{"process": "kill"}]},
        r"fault `f` needs `do\.process`",
    ),
    "no carrier does it": ({"do": [{"duplicate": 2}]}, r"fault `f` needs `do\.duplicate`"),
    "chance on the target": (
        {"leg": "target", "when": {"seen": {}, "probability": 0.5}, "do": [{"process": "kill"}]},
        r"fault `f`: the leg `target` knows no `when\.probability`",
    ),
    "often on the target": (
        {"leg": "target", "when": {"seen": {}}, "times": 2, "do": [{"process": "kill"}]},
        "fault `f`: the leg `target` knows no `times`",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_fault_that_would_not_be_carried_out_is_refused_in_one_line(what: str) -> None:
    row, says = REFUSED[what]
    plan = scenario(faults=[{"id": "f", "leg": "client", "when": {}, **row}]).plan
    with pytest.raises(UsageError, match=says) as refused:
        check_faults(plan.faults)
    assert "\n" not in str(refused.value)


async def test_a_case_that_cannot_be_armed_is_not_begun(tmp_path: Path) -> None:
    mine = scenario(faults=[{"id": "f", "leg": "effects", "when": {}, "do": [{"drop": True}]}])
    async with reference(tmp_path / "one") as (instance, world):
        with pytest.raises(UsageError, match="`effects`"):
            Case(mine, "mine", instance, world, Recorder(None))
