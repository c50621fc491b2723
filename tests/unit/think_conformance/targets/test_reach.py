"""What a target cannot be asked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from think_conformance.plan import Plan
from think_conformance.scenarios.base import Scenario, load
from think_conformance.targets.contract import Target
from think_conformance.targets.reach import missing, refused

STARTED = Target(name="t", agent="a", start=["x"], legs=("client",))
BARE = Target(name="t", agent="a", url="http://h")
POINTED = Target(name="t", agent="a", url="http://h", model_listen="127.0.0.1:1", legs=("client", "model"))

SAYS = {"t1": [[{"text": "a"}, "done"]]}
ACTS = {"t1": [[{"tool": "record_effect", "args": {"key": "k"}}, "done"], ["done"]]}


def scenario(**plan: Any) -> Scenario:
    return Scenario(id="x.y", title="", exercises=(), plan=msgspec.convert({"version": 1, **plan}, Plan))


def strikes(action: str) -> list[dict[str, Any]]:
    seen = {"seen": {"source": "client", "kind": "open"}}
    return [{"id": "f", "leg": "target", "when": seen, "do": [{"process": action}]}]


ON_THE_MODEL = {"id": "f", "leg": "model", "when": {"direction": "up"}, "do": [{"cut": "reset"}]}

PLANS: dict[str, tuple[dict[str, Any], str, str]] = {
    # plan, what a bare URL lacks for it, what one that was pointed at the kit's model lacks
    "nothing": ({}, "", ""),
    "scripted": ({"model": SAYS}, "needs: model", ""),
    "any model": ({"model": SAYS, "any_model": True}, "", ""),
    "effects": ({"model": ACTS}, "needs: effects, model", "needs: effects"),
    "configured": ({"configure": {"x": 1}}, "needs: configure", "needs: configure"),
    "killed": ({"faults": strikes("kill")}, "needs: restart", "needs: restart"),
    "evicted": ({"faults": strikes("evict")}, "needs: evict", "needs: evict"),
    "called": ({"operations": [{"do": "rpc", "method": "m"}]}, "needs: rpc", "needs: rpc"),
    "struck at the model": ({"model": SAYS, "faults": [ON_THE_MODEL]}, "needs: model", ""),
}


@pytest.mark.parametrize("what", PLANS)
def test_a_service_cannot_be_asked_what_only_a_process_can(what: str) -> None:
    plan, bare, pointed = PLANS[what]
    assert (missing(BARE, scenario(**plan)), missing(POINTED, scenario(**plan))) == (bare, pointed)


def test_a_process_lacks_only_the_legs_it_does_not_name() -> None:
    assert missing(STARTED, scenario(model=SAYS, faults=[ON_THE_MODEL])) == "needs: leg model"
    assert missing(STARTED, scenario(model=ACTS, configure={"x": 1})) == ""


def test_a_bare_url_is_asked_whatever_has_a_turn_for_any_model() -> None:
    asked = [s.id for s in load().values() if not missing(BARE, s)]
    assert {"bare.two-turns-two-tabs", "bare.questions-without-a-turn"} <= set(asked)
    exercised = {i for s in load().values() if s.id in asked for i in s.exercises}
    assert {"TURN-150", "WIRE-206", "WIRE-85", "WIRE-102"} <= exercised


def on(leg: str, *do: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"id": "f", "leg": leg, "when": {"direction": "up"}, "do": list(do), **more}]


CARRIED: dict[str, tuple[list[dict[str, Any]], str]] = {
    # faults, what mitmproxy lacks for them
    "none": ([], ""),
    "lost": (on("client", {"drop": True}), ""),
    "frozen": (strikes("pause"), ""),
    "killed": (strikes("kill"), "connections that end without a close"),
    "evicted": (strikes("evict"), "connections that end without a close"),
    "answered": (on("model", {"status": {"code": 500}}), ""),
    "cut": (on("model", {"status": {"code": 500}}, {"cut": "reset"}), "do.cut.reset"),
    "late": (on("client", {"delay": {"for": 1}}), "do.delay at up"),
    "behind": (on("client", {"stall": {"for": 1}}, after=True), "after"),
    "the second": ([*on("client", {"drop": True}), {**ON_THE_MODEL, "id": "g"}], "do.cut.reset"),
}


@pytest.mark.parametrize("what", CARRIED)
def test_a_carrier_refuses_what_it_does_not_do_exactly(what: str) -> None:
    faults, need = CARRIED[what]
    asked = scenario(faults=faults)
    expected = need and f"needs: {need}, which the carrier mitmproxy does not do exactly"
    assert refused(asked, "mitmproxy") == expected
    assert refused(asked, "embedded") == ""
