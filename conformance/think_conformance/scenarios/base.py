"""What a scenario is, and how scenarios are found.

A scenario provokes; it judges nothing. It is a plan with a name and the ids of the requirements it
is meant to exercise: a case that says so and then shows nothing of them is inconclusive.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from think_conformance import scenarios
from think_conformance.plan import Plan


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """`id` is `<family>.<what happens>`; `exercises` are requirement ids."""

    id: str
    title: str
    exercises: tuple[str, ...]
    plan: Plan

    @property
    def needs(self) -> frozenset[str]:
        """What of the target the plan cannot do without: model, restart, configure."""
        actions = [action for fault in self.plan.faults for action in fault.do]
        return frozenset(
            word
            for word, needed in (
                ("model", bool(self.plan.model) and not self.plan.any_model),
                ("restart", any(a.process not in (None, "evict") for a in actions)),
                ("configure", bool(self.plan.configure)),
            )
            if needed
        )

    @property
    def legs(self) -> frozenset[str]:
        """The legs its faults hit."""
        return frozenset(fault.leg for fault in self.plan.faults if fault.leg != "target")


_found: dict[str, Scenario] = {}


def scenario(
    ident: str, title: str, *, exercises: str
) -> Callable[[Callable[[], dict[str, Any]]], Callable[[], dict[str, Any]]]:
    """Register a function that returns a plan as plain data (without `version`). `exercises` is a
    list of requirement ids, separated by blanks."""

    def register(build: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
        if ident in _found:
            raise ValueError(f"two scenarios are named `{ident}`")
        plan = msgspec.convert({"version": 1, **build()}, Plan)
        _found[ident] = Scenario(id=ident, title=title, exercises=tuple(exercises.split()), plan=plan)
        return build

    return register


@cache
def load() -> dict[str, Scenario]:
    """Every scenario by id, in order of id."""
    for module in pkgutil.iter_modules(scenarios.__path__):
        importlib.import_module(f"{scenarios.__name__}.{module.name}")
    return dict(sorted(_found.items()))


# ---- words that plans share ------------------------------------------------------------------

RESPONSE = "cf_agent_use_chat_response"
CONNECT_TWO: list[dict[str, Any]] = [{"client": "a", "do": "connect"}, {"client": "b", "do": "connect"}]
NEVER = {"gate": "never"}
"""A gate that no plan opens."""
DELTA = {
    "json": {"type": RESPONSE, "done": False},
    "nested": {"field": "body", "json": {"type": "text-delta"}},
}
"""Matches one text delta, live or replayed, in `when` and in `seen`."""


def chunk(kind: str) -> dict[str, Any]:
    """Matches a stream chunk of this type, live or replayed."""
    return {"json": {"type": RESPONSE}, "nested": {"field": "body", "json": {"type": kind}}}


def saw_delta(client: str, nth: int) -> dict[str, Any]:
    """`seen`: this client received its nth text delta."""
    return {"source": "client", "kind": "frame-in", "client": client, "nth": nth, **DELTA}


def saw_frame(client: str, nth: int = 1, **fields: Any) -> dict[str, Any]:
    """`seen`: this client received its nth frame with these fields."""
    return {"source": "client", "kind": "frame-in", "client": client, "nth": nth, "json": fields}


def saw_terminal(client: str, nth: int = 1, **fields: Any) -> dict[str, Any]:
    """`seen`: this client received its nth terminal frame."""
    return saw_frame(client, nth, type=RESPONSE, done=True, **fields)


def at_gate(gate: str = "never") -> dict[str, Any]:
    """`seen`: the model holds at a gate."""
    return {"source": "model", "kind": "model-gate", "gate": gate}


def words(first: int, last: int) -> list[dict[str, str]]:
    """Model steps: one delta per word, `w<first> ` to `w<last> `."""
    return [{"text": f"w{n} "} for n in range(first, last + 1)]


HELD_FOR_EVER = {"t1": [[*words(1, 2), NEVER, *words(3, 4), "done"]]}
"""Two words, a gate that no plan opens, two words."""
SETTLED = "TURN-150 TURN-151 WIRE-85 WIRE-206 WIRE-209 KIT-01 KIT-02 KIT-03 KIT-12"
"""What a turn shows that was watched to its end, whatever ended it."""
STOPPED = f"{SETTLED} CANCEL-05 CANCEL-13"
"""The same of one that was stopped."""


def model_end(nth: int = 1) -> dict[str, Any]:
    """`seen`: the nth model call to end has ended, or was hung up on."""
    return {"source": "model", "kind": "model-end", "nth": nth}


def by(client: str, do: str, after: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """What one client does, once `after` was seen."""
    return {"client": client, "do": do, **({"after": {"seen": after}} if after else {}), **more}


def send(client: str = "a", turn: str = "t1", after: dict[str, Any] | None = None) -> dict[str, Any]:
    """A client sends a turn."""
    return by(client, "send", after, turn=turn, text="Count, please.")


def until(seen: dict[str, Any]) -> dict[str, Any]:
    """The end of a plan; waiting in vain costs nothing but time."""
    return {"do": "wait", "after": {"seen": seen}}
