"""Each defect does its one wrong thing, and the clean core does not."""

from __future__ import annotations

import pytest

from reference_world import World, responses, terminals, user
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


@pytest.mark.parametrize(("name", "times"), [(None, 1), ("doubles-replay", 2)])
def test_doubles_replay(name: str | None, times: int) -> None:
    world = World(policies=policies(name))
    world.connect(1)
    world.send(1, "r1", user("u1"))
    world.say("one")
    world.connect(2)
    world.ack(2, "r1")
    shown = [(f.seq, f.replay) for f in responses(world.frames[2])]
    assert shown == [(seq, True) for seq in (0, 1, 2, 3) for _ in range(times)] + [(None, True)]
    world.say("two")
    assert responses(world.frames[2])[-1].seq == 4, "the live tail is sound"


@pytest.mark.parametrize(("name", "lost"), [(None, False), ("forgets-queued-turn", True)])
def test_forgets_queued_turn(name: str | None, lost: bool) -> None:
    world = World(policies=policies(name))
    world.connect(1)
    world.send(1, "r1", user("u1"))
    world.say("one")
    world.send(1, "r2", user("u2"))
    world.crash()
    world.finish()
    assert (world.calls == {}) == lost
    assert [m["id"] for m in world.agent.messages if m["role"] == "user"] == ["u1", "u2"]
    world.connect(2)
    (answer,) = world.probe(2)
    assert (answer == Send(2, ResumeNone(reason="idle", probe_id="p"))) == lost


@pytest.mark.parametrize(("name", "calls"), [(None, 1), ("reruns-resent-request", 2)])
def test_reruns_resent_request(name: str | None, calls: int) -> None:
    world = World(policies=policies(name))
    world.connect(1)
    world.send(1, "r1", user("u1"))
    world.send(1, "r1", user("u1"))
    world.finish()
    assert len(world.called) == 1, "while it lives the request is known"
    for _ in range(2):
        world.send(1, "r1", user("u1"))
        while world.calls:
            world.finish()
    assert len(world.called) == calls
    assert terminals(world.frames[1])[0] == ("r1", "completed")


def test_every_defect_names_itself_and_what_it_breaks() -> None:
    for name, defect in DEFECTS.items():
        assert defect.name == name
        assert defect.summary
        assert defect.breaks
        assert defect.policies != Policies()
