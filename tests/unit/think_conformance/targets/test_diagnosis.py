"""What the histories of probes tell of an adapter."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from histories import Story, answer, plain_turn, user
from think_conformance.history.views import View
from think_conformance.targets.contract import Target
from think_conformance.targets.diagnosis import PROBES, Start, of_file, of_start, probes


def target(**keys: Any) -> Target:
    return Target(name="t", agent="a", start=["serve"], **keys)


def found(probe: str, story: Story) -> list[str]:
    """Name and cause of every diagnosis of that probe."""
    (chosen,) = (p for p in PROBES if p.id == probe)
    return [f"{d.name}: {d.cause}" for d in chosen.find(View(story.history))]


def sent(**plan: Any) -> tuple[Story, str]:
    """A story in which client a has sent its turn."""
    story = Story(plan=plan)
    a = story.open()
    story.operation("send", messages=[user()])
    return story, a


def asked(*content: Any) -> list[dict[str, Any]]:
    return [{"role": "system", "content": "be kind"}, *({"role": "user", "content": c} for c in content)]


TEXT = user()["parts"][0]["text"]


# ---- the start and the file ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "name", "says"),
    [
        ({}, "never-ready", "it said nothing"),
        (
            {"elsewhere": frozenset({9, 8080})},
            "port-ignored",
            "on 9, 8080 and not on THINK_PORT 17000",
        ),
        ({"held": True}, "forks-away", "outside the target's process group listens on THINK_PORT 17000"),
    ],
)
def test_a_start_that_failed(seen: dict[str, Any], name: str, says: str) -> None:
    diagnosis = of_start(Start(reason="it said nothing", port=17000, **seen))
    assert diagnosis.name == name
    assert says in diagnosis.cause
    assert str(diagnosis) == f"{name}: {diagnosis.cause}; {diagnosis.advice}"


def test_a_leg_that_nobody_stands_in_is_told() -> None:
    assert list(of_file(target(legs=("client", "model", "effects")))) == []
    (diagnosis,) = of_file(target(legs=("client", "routing")))
    assert diagnosis.name == "claim-not-honoured"


@pytest.mark.parametrize(
    ("keys", "more"),
    [
        ({"claims": ("core",)}, []),
        ({"claims": ("core", "resume")}, ["resumes"]),
        ({"claims": ("core", "control")}, ["stops", "acts"]),
        ({"claims": ("recovery",)}, ["goes-on-after-a-kill", "goes-on-after-an-evict", "acts"]),
        ({"legs": ("client", "effects")}, ["acts"]),
    ],
)
def test_what_is_not_claimed_is_not_probed(keys: dict[str, Any], more: list[str]) -> None:
    assert [probe.id for probe in probes(target(**keys))] == ["talks", "remembers", *more]


def test_every_probe_is_a_plan_with_a_name_of_its_own() -> None:
    assert len({probe.scenario.id for probe in PROBES}) == len(PROBES)


# ---- talks ---------------------------------------------------------------------------------------


def talked(prompt: list[dict[str, Any]] | None, *, ends: bool = True) -> Story:
    story, a = sent()
    story.send(a)
    if prompt is not None:
        story.call(messages=prompt)
        story.words(a, "w1 ")
    if ends:
        story.terminal(a)
    return story.epilogue(user(), answer("w1 "))


@pytest.mark.parametrize("content", [TEXT, [{"type": "text", "text": TEXT}]])
def test_a_turn_that_went_well_tells_nothing(content: Any) -> None:
    assert found("talks", talked(asked(content))) == []


@pytest.mark.parametrize("content", [f"{TEXT} ", TEXT.upper(), [{"type": "text"}], None])
def test_a_text_that_did_not_arrive_as_it_was_sent(content: Any) -> None:
    (told,) = found("talks", talked(asked(content)))
    assert told.startswith("text-changed: ")


def test_a_text_that_arrived_in_another_role() -> None:
    prompt = [{"role": "system", "content": TEXT}, {"role": "user", "content": "[[case/t1]]"}]
    (told,) = found("talks", talked(prompt))
    assert told.startswith("text-changed: ")


def test_a_turn_whose_end_came_only_when_it_was_asked_for() -> None:
    story = talked(asked(TEXT), ends=False)
    story.terminal("observer.1")
    assert found("talks", story) == [
        "claim-not-honoured: core is claimed, and no terminal frame came when the model had answered"
    ]


def test_a_model_that_was_not_called() -> None:
    (told,) = found("talks", talked(None))
    assert told == "model-url-ignored: a turn was sent and THINK_MODEL_URL was not called"


def test_a_model_that_was_not_called_and_what_the_client_was_told() -> None:
    story, a = sent()
    story.send(a)
    story.failure(a, done=True)
    (told,) = found("talks", story.epilogue())
    assert told.endswith("was not called (the client was told: it broke)")


def test_a_turn_that_nobody_took() -> None:
    story, a = sent()
    story.send(a)
    (told,) = found("talks", story.epilogue())
    assert told.endswith("was not called, nor was the turn seen to be accepted")


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("a prompt without a marker", "text-changed"),
        ("a call without `stream`: true", "model-call-refused"),
        ("the prompt is no JSON object", "model-call-refused"),
    ],
)
def test_a_call_that_the_model_could_not_answer(reason: str, name: str) -> None:
    story, a = sent()
    story.send(a)
    story.record("model", "fail", {}, {"reason": reason})
    (told,) = found("talks", story.epilogue())
    assert told.startswith(f"{name}: ")


# ---- remembers -----------------------------------------------------------------------------------


def remembered(*stored: Any, outcome: str = "done") -> Story:
    story, a = sent()
    plain_turn(story, [a])
    story.kill(a)
    story.record("run", "fault-fired", {"fault": "crash", "token": "crash#1"}, {"leg": "target"})
    why = {"outcome": outcome, "reason": "it exited"}
    story.record("run", "fault-done", {"fault": "crash", "token": "crash#1"}, {"did": [], **why})
    story.restart()
    story.operation("get-messages", "ok", 2, messages=list(stored))
    return story.epilogue(user(), answer("w1 "))


def test_what_is_there_after_a_restart_is_remembered() -> None:
    assert found("remembers", remembered(user(), answer("w1 "))) == []


def test_what_is_not_there_is_forgotten_whatever_an_observer_reads_later() -> None:
    (told,) = found("remembers", remembered(answer("w1 ")))
    assert told.startswith("forgets: ")


def test_a_restart_that_failed_is_told_instead() -> None:
    (told,) = found("remembers", remembered(outcome="error"))
    assert told == "no-restart: once it had run it did not start again: it exited"


# ---- goes on, stops, resumes, acts ---------------------------------------------------------------


def woken(after_s: float | None) -> Story:
    """The turn is killed; the model is asked again that long after the restart, or only by an observer."""
    story, a = sent()
    story.send(a)
    story.call()
    story.kill(a, calls=[1])
    back = story.restart()
    if after_s is None:
        story.begin()
    again = story.call()
    at = story.history[back].at + (after_s or 0)
    story.history[again] = replace(story.history[again], at=at)
    return story.epilogue() if after_s is not None else story.end(story.observe())


@pytest.mark.parametrize(("after_s", "says"), [(30.9, None), (31.1, "it took 31.1 s"), (None, "it did not")])
def test_an_agent_goes_on_within_its_heartbeat_or_not(after_s: float | None, says: str | None) -> None:
    told = found("goes-on-after-a-kill", woken(after_s))
    assert [line.rpartition(", and ")[2] for line in told] == ([] if says is None else [says])


def test_an_evict_that_is_refused() -> None:
    story, _ = sent()
    story.record("process", "process", {"epoch": 1}, {"action": "evict"})
    story.record("run", "fail", {}, {"reason": "no such method"})
    assert found("goes-on-after-an-evict", story.epilogue()) == [
        "claim-not-honoured: recovery is claimed, and `evict` is refused: no such method"
    ]


@pytest.mark.parametrize(("outcome", "count"), [("aborted", 0), ("completed", 1), (None, 1)])
def test_a_stop_ends_the_turn_as_aborted_or_the_claim_is_not_honoured(outcome: Any, count: int) -> None:
    story, a = sent()
    story.send(a)
    story.cancel(a)
    if outcome is not None:
        story.terminal(a, outcome=outcome)
    story.epilogue(user())
    story.terminal("observer.1", outcome="aborted")
    assert len(found("stops", story)) == count


@pytest.mark.parametrize(("comes", "count"), [("before", 0), ("never", 1), ("in the epilogue", 1)])
def test_a_client_that_comes_back_is_replayed_the_answer(comes: str, count: int) -> None:
    story, a = sent()
    story.send(a)
    story.words(a, "w1 ")
    story.close(a)
    again = story.open()
    if comes == "before":
        story.words(again, "w1 ", replay=True)
    story.begin()
    if comes == "in the epilogue":
        story.words(again, "w1 ")
    assert len(found("resumes", story.end(story.observe()))) == count


def test_a_tool_that_told_the_outside_world_and_one_that_did_not() -> None:
    story, _ = sent()
    assert [line.partition(":")[0] for line in found("acts", story.epilogue())] == ["effects-url-ignored"]
    story.record("effects", "effect", {"key": "case/paid"}, {})
    assert found("acts", story) == []
