"""What the embedded proxy does exactly, leg by leg. `docs/faults.md` says the same in words."""

from __future__ import annotations

from collections.abc import Mapping

from think_proxy.engine import MOMENTS, Carrier, Moment
from think_proxy.plan import Leg

SOCKET_LEGS: frozenset[Leg] = frozenset({"client", "routing"})
"""There WebSockets are struck, on all other legs HTTP exchanges."""

_CONTENT = frozenset({"direction", "json", "nested", "text", "nth", "connection", "probability"})

SOCKET_TRIGGERS = _CONTENT | {"client"}
EXCHANGE_TRIGGERS = _CONTENT

_MESSAGES: frozenset[Moment] = frozenset({"up", "down"})
_OPENING: frozenset[Moment] = frozenset({"opening"})
_UP: frozenset[Moment] = frozenset({"up"})
_DOWN: frozenset[Moment] = frozenset({"down"})

SOCKET_ACTIONS: Mapping[str, frozenset[Moment]] = {
    "cut.reset": _MESSAGES,
    "cut.fin": _MESSAGES,
    "cut.close": _MESSAGES,
    "cut.blackhole": _MESSAGES,
    "drop": _MESSAGES,
    "stall": MOMENTS,
    "delay": MOMENTS,
    "refuse": _OPENING,
    "status": _OPENING,
    "process": MOMENTS,
}

EXCHANGE_ACTIONS: Mapping[str, frozenset[Moment]] = {
    "cut.reset": _MESSAGES,
    "cut.fin": _MESSAGES,
    "cut.blackhole": _MESSAGES,
    "truncate.reset": _DOWN,
    "truncate.fin": _DOWN,
    "truncate.clean": _DOWN,
    "drop": _MESSAGES,
    "stall": _MESSAGES,
    "delay": _MESSAGES,
    "status": _UP,
    "process": _MESSAGES,
}


def carrier(leg: Leg, *, controls_process: bool) -> Carrier:
    """The embedded proxy on one leg; without process control it has no process actions."""
    sockets = leg in SOCKET_LEGS
    actions = dict(SOCKET_ACTIONS if sockets else EXCHANGE_ACTIONS)
    if not controls_process:
        del actions["process"]
    name = (
        ("WebSocket" if sockets else "HTTP") + " carrier" + ("" if controls_process else " without a process")
    )
    return Carrier(name, leg, SOCKET_TRIGGERS if sockets else EXCHANGE_TRIGGERS, actions)
