"""What is read of the world around a target: prompts, effects, crashes, faults."""

from __future__ import annotations

from typing import Any

import pytest

from histories import Story
from think_conformance.history.views import View


def prompt(*messages: dict[str, Any]) -> Story:
    story = Story()
    story.call(messages=[{"role": "user", "content": "[[case/t1]]"}, *messages])
    return story


def test_a_prompt_tells_which_tool_calls_have_ended() -> None:
    asked = {"role": "assistant", "tool_calls": [{"id": "x"}, {"id": "y"}, "noise"]}
    (call,) = View(prompt(asked, {"role": "tool", "tool_call_id": "x", "content": "done"}).history).calls
    assert call.tool_results == {"x": "done"}
    assert call.unanswered == {"y"}


def test_a_prompt_of_nonsense_tells_nothing() -> None:
    (call,) = View(prompt({"role": "assistant", "tool_calls": "x"}).history).calls
    assert call.tool_results == {}
    assert call.unanswered == set()


LARGE = {"truncated": True, "size": 50_000_000}
OVERFLOWS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a frame": ("frame-in", LARGE, "a record `frame-in` of 50000000 bytes is more than a history keeps"),
    "a transcript": ("ok", LARGE, "a record `ok` of 50000000 bytes is more than a history keeps"),
    "too much in all": (
        "close",
        {"code": 1009, "reason": "too much", "by": "self"},
        "a connection was closed for what came on it: too much",
    ),
    "a close of the peer": ("close", {"code": 1009, "reason": "too much", "by": "peer"}, ""),
    "a frame that says it was": ("frame-in", {"frame": LARGE, "size": 9}, ""),
    "an effect that says it was": ("effect", LARGE, ""),
}


@pytest.mark.parametrize("what", OVERFLOWS)
def test_a_history_tells_that_more_came_than_it_keeps(what: str) -> None:
    kind, payload, told = OVERFLOWS[what]
    story = Story()
    story.record("client", kind, {"client": "a", "connection": story.open("a")}, payload)
    assert View(story.history).overflow == told


def test_effects_are_read_in_order() -> None:
    story = Story()
    first = story.record("effects", "effect", {"key": "case/a"}, {})
    second = story.record("effects", "effect", {"key": "case/b"}, {})
    assert [(e.index, e.key) for e in View(story.history).effects] == [(first, "case/a"), (second, "case/b")]


def test_several_records_of_one_death_are_one_crash() -> None:
    story = Story()
    fired = story.fault("f", {"process": "kill"}, leg="target", fires_on="") - 1
    story.kill()
    story.record("process", "process", {}, {"action": "exit"})
    start = story.record("process", "process", {}, {"action": "start"})
    ready = story.restart()
    (crash,) = View(story.history).crashes
    assert (crash.death, crash.back, crash.ready) == (fired, start, ready)


def test_each_restart_ends_a_crash_of_its_own() -> None:
    story = Story()
    deaths = []
    for _ in range(2):
        deaths.append(story.kill())
        story.restart()
    assert [crash.death for crash in View(story.history).crashes] == deaths


def test_who_never_came_back_is_not_back() -> None:
    story = Story()
    story.kill()
    (crash,) = View(story.history).crashes
    assert (crash.back, crash.ready) == (None, None)


def test_an_evicted_agent_is_back_at_once() -> None:
    story = Story()
    story.fault("f", {"process": "evict"}, leg="target", fires_on="")
    evicted = story.record("process", "process", {}, {"action": "evict"})
    called = story.operation("rpc", method="evict")
    story.restart()
    assert [(c.back, c.ready) for c in View(story.history).crashes] == [(evicted, evicted), (called, called)]


@pytest.mark.parametrize(
    ("outcome", "undone"), [("done", ""), ("overtaken", ""), ("timeout", "timeout"), ("error", "error")]
)
def test_a_restart_that_was_overtaken_was_carried_out(outcome: str, undone: str) -> None:
    story = Story()
    story.fault("f", {"process": "restart"}, leg="target", fires_on="", outcome=outcome)
    assert [fault.undone for fault in View(story.history).faults] == [undone]


@pytest.mark.parametrize(
    ("action", "breaks"),
    [
        ({"status": {"code": 500}}, True),
        ({"cut": "reset"}, True),
        ({"truncate": {"end": "reset"}}, True),
        ({"truncate": {"keep": 0, "end": "clean"}}, False),
        ({"cut": "fin"}, False),
        ({"stall": {"for": 1}}, False),
        ("noise", False),
    ],
)
def test_which_faults_leave_no_answer(action: Any, breaks: bool) -> None:
    story = Story()
    story.fault("f", action, leg="model", fires_on="")
    assert [fault.breaks for fault in View(story.history).faults] == [breaks]


# ---- what the target refused ------------------------------------------------------------------


def prepared(method: str) -> Story:
    """A case whose preparation failed at this method."""
    story = Story()
    if method == "evict":
        story.record("process", "process", {}, {"action": "evict"})
    story.record("run", "fail", {}, {"reason": "no such method"})
    return story


def called(method: str) -> Story:
    """A plan that calls this method, in vain."""
    story = Story()
    story.operation("rpc", number=3, method=method)
    story.record("run", "fail", {"operation": 3}, {"reason": "no such method"})
    return story


def struck(*do: Any, outcome: str = "error") -> Story:
    """A fault of these actions that came to this end."""
    story = Story()
    story.fault("f", *do, leg="target", fires_on="", outcome=outcome)
    return story


EVICT = {"process": "evict"}


@pytest.mark.parametrize(
    ("story", "method"),
    [
        (prepared("configure"), "configure"),
        (prepared("evict"), "evict"),
        (called("configure"), "configure"),
        (called("evict"), "evict"),
        (struck(EVICT), "evict"),
    ],
)
def test_a_refused_method_is_named_by_the_record_of_its_refusal(story: Story, method: str) -> None:
    missing = View(story.history).missing
    assert missing is not None
    assert (missing.method, missing.index) == (method, len(story.history) - 1)


@pytest.mark.parametrize(
    "story",
    [
        called("inspectSubmission"),
        struck(EVICT, outcome="done"),
        struck(EVICT, outcome="timeout"),
        struck({"process": "restart"}),
        struck(EVICT, {"process": "restart"}),
    ],
)
def test_other_failures_are_no_refusal_of_the_agent(story: Story) -> None:
    assert View(story.history).missing is None
