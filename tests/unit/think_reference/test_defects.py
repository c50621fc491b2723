"""Each defect does its one wrong thing, and the clean core does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from reference_world import World, responses, terminals, user
from think_conformance.wire.frames import ResumeNone, ServerFrame
from think_reference.agent import Think
from think_reference.core.effects import Effect, Send
from think_reference.core.policies import Policies
from think_reference.core.transcript import text_of
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


def busy(name: str | None) -> World:
    """`r1` has said a word to its sender, 1, and to 2, which was offered its stream."""
    world = World(policies=policies(name))
    world.connect(1)
    world.send(1, "r1", user("u1"))
    world.connect(2)
    world.say("one ")
    return world


def done(name: str | None) -> World:
    """A whole turn."""
    world = busy(name)
    world.say("two")
    world.finish()
    return world


def recovered(name: str | None) -> World:
    """A turn that goes on after a crash."""
    world = busy(name)
    world.crash()
    world.connect(3)
    return world


def ended(world: World) -> World:
    world.finish()
    return world


def told(frames: list[ServerFrame]) -> list[tuple[str, str | None]]:
    return terminals(frames, live=False)


def kinds(frames: Iterable[object]) -> list[str]:
    return [type(frame).__name__ for frame in frames]


def sent(effects: list[Effect]) -> list[str]:
    return kinds(e.frame for e in effects if isinstance(e, Send))


def spoken(name: str | None) -> World:
    world = busy(name)
    world.say("this turn is cancelled")
    return world


def lost(name: str | None) -> World:
    world = busy(name)
    world.disconnect(1)
    return world


def stopped(name: str | None) -> World:
    world = busy(name)
    world.cancel(2, "r1")
    return world


def cleared(name: str | None) -> World:
    world = busy(name)
    world.send(1, "r2", user("u2"))
    world.clear(2)
    return world


def failed(name: str | None) -> World:
    world = busy(name)
    world.fail("it broke")
    return world


def waiting(name: str | None) -> World:
    """An agent that prepares a turn."""

    class Slow(Think):
        prepare_delay_ms = 1000

    world = World(Slow, policies=policies(name))
    world.connect(1)
    world.send(1, "r1", user("u1"))
    return world


def called(name: str | None) -> list[str]:
    """What a client gets that waited when the stream opens."""
    world = waiting(name)
    world.connect(2)
    world.probe(2)
    before = len(world.frames[2])
    world.fire()
    return kinds(world.frames[2][before:])


def stopped_after_a_crash(name: str | None) -> World:
    world = recovered(name)
    world.cancel(3, "r1")
    return world


LAST_WORDS = ["ChatMessages", "ChatResponse"]

DOES: list[tuple[str, Callable[[str | None], object], object, object]] = [
    ("keeps-the-end-to-itself", lambda n: len(terminals(ended(recovered(n)).frames[3])), 1, 0),
    ("tells-a-stop-twice", lambda n: len(terminals(stopped_after_a_crash(n).frames[3])), 1, 2),
    (
        "takes-skipped-for-aborted",
        lambda n: told(cleared(n).frames[1])[-1],
        ("r2", "skipped"),
        ("r2", "aborted"),
    ),
    ("terminal-before-transcript", lambda n: kinds(done(n).frames[1][-2:]), LAST_WORDS, LAST_WORDS[::-1]),
    (
        "loses-a-live-chunk",
        lambda n: [f.seq for f in responses(done(n).frames[1])][4:7],
        [4, 5, 6],
        [4, 6, 7],
    ),
    ("live-chunk-before-ack", lambda n: len(responses(busy(n).frames[2])), 0, 2),
    ("silent-about-a-waiting-turn", lambda n: "StreamPending" in kinds(waiting(n).connect(2)), True, False),
    ("answers-a-probe-twice", lambda n: sent(busy(n).probe(2)), ["StreamResuming"], ["StreamResuming"] * 2),
    ("forgets-who-waits", called, ["StreamResuming"], []),
    ("answers-a-stray-ack", lambda n: sent(busy(n).ack(2, "nothing")), [], ["ChatResponse"]),
    (
        "status-stuck-after-restart",
        lambda n: "ChatRecovering" in kinds(ended(recovered(n)).connect(4)),
        False,
        True,
    ),
    ("clears-unseen", lambda n: "ChatClear" in kinds(cleared(n).frames[1]), True, False),
    ("tells-the-one-who-clears", lambda n: "ChatClear" in kinds(cleared(n).frames[2]), False, True),
    ("answers-a-stray-stop", lambda n: sent(busy(n).cancel(2, "nothing")), [], ["ChatResponse"]),
    ("recovery-without-handover", lambda n: len(recovered(n).called), 2, 1),
    (
        "repeats-itself-after-a-crash",
        lambda n: text_of(ended(recovered(n)).agent.messages[1]),
        "one ",
        "one one ",
    ),
    ("reruns-when-probed", lambda n: kinds(done(n).probe(2)).count("CallModel"), 0, 1),
    ("ignores-cancel", lambda n: told(stopped(n).frames[1]), [("r1", "aborted")], []),
    ("loss-is-cancel", lambda n: told(lost(n).frames[2]), [], [("r1", "aborted")]),
    ("puts-words-behind-the-question", lambda n: len(busy(n).called[0].messages), 1, 2),
    ("obeys-the-model", lambda n: told(spoken(n).frames[1]), [], [("r1", "aborted")]),
    ("error-shaped-success", lambda n: told(failed(n).frames[1]), [("r1", "error")], [("r1", "completed")]),
    ("forgets-a-failure", lambda n: sent(failed(n).probe(2)), ["StreamResuming"], ["ResumeNone"]),
    ("loses-last-delta", lambda n: text_of(done(n).agent.messages[1]), "one two", "one"),
    ("stores-an-answer-twice", lambda n: len(done(n).agent.messages), 2, 3),
    (
        "forgets-a-question",
        lambda n: [m["role"] for m in done(n).agent.messages],
        ["user", "assistant"],
        ["assistant"],
    ),
    ("clear-forgets-to-forget", lambda n: [m["id"] for m in cleared(n).agent.messages], [], ["u1", "u2"]),
]
"""A defect, what is looked at, what the clean core shows and what this one does."""


@pytest.mark.parametrize(
    ("name", "shows", "clean", "wrong"), DOES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_each_does_its_one_wrong_thing(
    name: str, shows: Callable[[str | None], object], clean: object, wrong: object
) -> None:
    assert shows(None) == clean
    assert shows(name) == wrong


@pytest.mark.parametrize(("name", "roles"), [(None, ["uaua"]), ("appends-answers", ["uuaa"])])
def test_appends_answers(name: str | None, roles: list[str]) -> None:
    world = busy(name)
    world.send(1, "r2", user("u2"))
    world.finish()
    world.finish()
    assert ["".join(m["role"][0] for m in world.agent.messages)] == roles


def test_every_defect_names_itself_and_what_it_breaks() -> None:
    for name, defect in DEFECTS.items():
        assert defect.name == name
        assert defect.summary
        assert defect.breaks
        assert defect.policies != Policies()


def test_each_defect_has_its_test() -> None:
    alone = ["two-terminals", "no-terminal-after-crash", "doubles-replay", "forgets-queued-turn"]
    assert {name for name, *_ in DOES} | {*alone, "reruns-resent-request", "appends-answers"} == set(DEFECTS)
