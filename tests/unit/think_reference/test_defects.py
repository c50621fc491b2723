"""Each defect does its one wrong thing, and the clean core does not."""

from __future__ import annotations

import pytest

from reference_world import World, terminals, user
from think_conformance.wire.frames import ResumeNone
from think_reference.core.effects import Send
from think_reference.core.policies import Policies
from think_reference.defects import DEFECTS


def policies(name: str | None) -> Policies:
    return DEFECTS[name].policies if name else Policies()


@pytest.mark.parametrize(
    ("name", "told"),
    [(None, [("r1", "completed")]), ("two-terminals", [("r1", "completed"), ("r1", "aborted")])],
)
def test_two_terminals(name: str | None, told: list[tuple[str, str]]) -> None:
    world = World(policies=policies(name))
    world.connect(1)
    world.send(1, "r1", user("u1"))
    world.finish()
    assert terminals(world.frames[1]) == told
    world.send(1, "r2", user("u2"))
    world.cancel(1, "r2")
    assert terminals(world.frames[1])[len(told) :] == [("r2", "aborted")]


@pytest.mark.parametrize(("name", "lost"), [(None, False), ("no-terminal-after-crash", True)])
def test_no_terminal_after_crash(name: str | None, lost: bool) -> None:
    world = World(policies=policies(name))
    world.connect(1)
    world.send(1, "r1", user("u1"))
    world.say("one")
    before = world.rows
    world.crash()
    world.connect(2)
    (answer,) = world.probe(2)
    assert (answer == Send(2, ResumeNone(reason="idle", probe_id="p"))) == lost
    assert (world.rows == before) == lost
    assert (world.calls == {}) == lost
    world.ack(2, "r1")
    assert ("r1", "completed") not in terminals(world.frames[2], live=False)
    world.crash()
    assert (world.rows == before) == lost


def test_every_defect_names_itself_and_what_it_breaks() -> None:
    for name, defect in DEFECTS.items():
        assert defect.name == name
        assert defect.summary
        assert defect.breaks
        assert defect.policies != Policies()
