"""What each carrier does exactly, leg by leg. `docs/faults.md` says the same in words."""

from __future__ import annotations

from collections.abc import Mapping

from think_proxy.engine import MOMENTS, Carrier, Moment
from think_proxy.plan import Leg

SOCKET_LEGS: frozenset[Leg] = frozenset({"client", "routing"})
"""There WebSockets are struck, on all other legs HTTP exchanges."""

EMBEDDED, MITMPROXY = "embedded", "mitmproxy"
"""The carriers."""

_CONTENT = frozenset({"direction", "json", "nested", "text", "nth", "connection", "probability"})

SOCKET_TRIGGERS = _CONTENT | {"client"}
EXCHANGE_TRIGGERS = _CONTENT

_MESSAGES: frozenset[Moment] = frozenset({"up", "down"})
_OPENING: frozenset[Moment] = frozenset({"opening"})
_UP: frozenset[Moment] = frozenset({"up"})
_DOWN: frozenset[Moment] = frozenset({"down"})

_Actions = Mapping[str, frozenset[Moment]]

SOCKET_ACTIONS: _Actions = {
    "cut.reset": _MESSAGES,
    "cut.fin": _MESSAGES,
    "cut.close": _MESSAGES,
    "cut.blackhole": _MESSAGES,
    "drop": _MESSAGES,
    "stall": MOMENTS,
    "stall.up": MOMENTS,
    "stall.down": MOMENTS,
    "delay": MOMENTS,
    "refuse": _OPENING,
    "status": _OPENING,
    "process": MOMENTS,
}

EXCHANGE_ACTIONS: _Actions = {
    "cut.reset": _MESSAGES,
    "cut.fin": _MESSAGES,
    "cut.blackhole": _MESSAGES,
    "truncate.reset": _DOWN,
    "truncate.fin": _DOWN,
    "truncate.clean": _DOWN,
    "drop": _MESSAGES,
    "stall": _MESSAGES,
    "stall.up": _MESSAGES,
    "stall.down": _MESSAGES,
    "delay": _MESSAGES,
    "status": _UP,
    "process": _MESSAGES,
}


MITM_SOCKET_ACTIONS: _Actions = {
    "drop": _MESSAGES,
    "stall": MOMENTS,
    "stall.up": _OPENING,
    "stall.down": _OPENING,
    "delay": _OPENING,
    "status": _OPENING,
}
"""mitmproxy holds a WebSocket in both directions or in none, and says a close where there was none."""

MITM_EXCHANGE_ACTIONS: _Actions = {
    "cut.fin": _UP,
    "stall": _UP,
    "stall.up": _UP,
    "stall.down": _UP,
    "delay": _UP,
    "status": _UP,
}
"""It passes an answer on in pieces that are no events, and cannot hold one without all that it carries."""


def carrier(leg: Leg, *, controls_process: bool, name: str = EMBEDDED) -> Carrier:
    """The carrier of this name on one leg; without process control it has no process actions."""
    if name == MITMPROXY:
        return _mitm(leg)
    sockets = leg in SOCKET_LEGS
    actions = dict(SOCKET_ACTIONS if sockets else EXCHANGE_ACTIONS)
    if not controls_process:
        del actions["process"]
    called = (
        ("WebSocket" if sockets else "HTTP") + " carrier" + ("" if controls_process else " without a process")
    )
    return Carrier(called, leg, SOCKET_TRIGGERS if sockets else EXCHANGE_TRIGGERS, actions)


def _mitm(leg: Leg) -> Carrier:
    if leg in SOCKET_LEGS:
        called, triggers, actions = "mitmproxy WebSocket carrier", SOCKET_TRIGGERS, MITM_SOCKET_ACTIONS
    else:
        called, triggers, actions = "mitmproxy HTTP carrier", EXCHANGE_TRIGGERS, MITM_EXCHANGE_ACTIONS
    return Carrier(called, leg, triggers, actions, forwards_first=False, keeps_endings=False)
