"""What of a scenario is out of reach of a target, or of the carrier of the faults. Pure.

What the kit starts it can also kill, configure and give a model; behind a URL runs what it can only talk to.
"""

from __future__ import annotations

from think_conformance.accounting import OUT_OF_REACH
from think_conformance.plan import Plan
from think_conformance.scenarios.base import Scenario
from think_conformance.targets.contract import Target
from think_proxy.carriers.abilities import carrier
from think_proxy.engine import Unsupported
from think_proxy.plan import Fault, ProcessAction

EFFECTS = ("record_effect", "slow_effect", "fail_effect")
"""Tools that act on the outside world."""

ENDING: tuple[ProcessAction, ...] = ("kill", "term", "restart", "evict")
"""What ends connections without a word."""


def missing(target: Target, scenario: Scenario) -> str:
    """`needs: model, restart` or `needs: leg routing`; empty when all of it can be played."""
    needs = sorted(_needs(scenario) - _offers(target)) if target.kind == "url" else []
    if needs:
        return f"{OUT_OF_REACH}{', '.join(needs)}"
    legs = sorted(scenario.legs - set(target.legs))
    return f"{OUT_OF_REACH}leg {', '.join(legs)}" if legs else ""


def refused(scenario: Scenario, name: str) -> str:
    """`needs: do.cut.reset, which the carrier mitmproxy does not do exactly`; empty when all can be done."""
    need = next(filter(None, (_lacking(fault, name) for fault in scenario.plan.faults)), "")
    return f"{OUT_OF_REACH}{need}, which the carrier {name} does not do exactly" if need else ""


def _lacking(fault: Fault, name: str) -> str:
    """What a fault needs and the carrier of this name lacks."""
    if fault.leg == "target":
        ends = any(action.process in ENDING for action in fault.do)
        kept = carrier("client", controls_process=True, name=name).keeps_endings
        return "connections that end without a close" if ends and not kept else ""
    try:
        carrier(fault.leg, controls_process=fault.leg == "client", name=name).moments(fault)
    except Unsupported as unsupported:
        return unsupported.need
    return ""


def _needs(scenario: Scenario) -> set[str]:
    """What a plan uses of a target beside its clients and its sockets."""
    actions = {action.process for fault in scenario.plan.faults for action in fault.do}
    more = {
        "evict": "evict" in actions,
        "effects": _calls_effects(scenario.plan),
        "rpc": any(operation.do == "rpc" for operation in scenario.plan.operations),
    }
    return {*scenario.needs, *(word for word, needed in more.items() if needed)}


def _calls_effects(plan: Plan) -> bool:
    steps = [step for calls in plan.model.values() for said in calls for step in said]
    return any(isinstance(step, dict) and step.get("tool") in EFFECTS for step in steps)


def _offers(target: Target) -> set[str]:
    given = {"model": target.model_listen, "effects": target.effects_listen}
    return {word for word, where in given.items() if where is not None}
