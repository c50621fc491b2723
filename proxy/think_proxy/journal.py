"""The records a proxy makes, in the shapes of the history. Where they go is the owner's business.

`fault-fired` is written before anything is done, `fault-done` after the last action.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from think_proxy.engine import Firing, Watch
from think_proxy.match import Exchange, Message, Place
from think_proxy.plan import Direction, Fault

Journal = Callable[[str, dict[str, Any], dict[str, Any]], None]
"""Called with kind, ids and payload; it must not block."""

Done = Literal["done", "timeout", "error"]


def planned(journal: Journal, fault: Fault) -> None:
    """A fault is armed."""
    plain = msgspec.to_builtins(fault)
    journal("fault-planned", {"fault": fault.id}, {name: plain[name] for name in ("leg", "when", "do")})


def fired(journal: Journal, firing: Firing, watch: Watch, direction: Direction, message: Message) -> None:
    """The moment was seen; the payload proves which message it was."""
    ids = {"fault": firing.fault.id, "token": firing.token}
    place = watch.place
    if place.name is not None and place.client is not None:
        ids |= {"connection": place.name, "client": place.client}
    payload = {"leg": firing.fault.leg, "direction": direction, **message.proof()}
    if isinstance(place, Exchange):
        payload["exchange"] = firing.number
    journal("fault-fired", ids, payload)


def done(journal: Journal, firing: Firing, did: list[str], outcome: Done, reason: str) -> None:
    """The list of actions is over; `did` names those that were done to the end."""
    payload: dict[str, Any] = {"did": did, "outcome": outcome}
    if reason:
        payload["reason"] = reason
    journal("fault-done", {"fault": firing.fault.id, "token": firing.token}, payload)


def unreachable(journal: Journal, reason: str) -> None:
    """A client was turned away, because nobody answers upstream."""
    journal("info", {}, {"reason": reason})


def retold(journal: Journal, place: Place) -> None:
    """A server ended a connection without a word, and the client was told a close."""
    ids = {name: value for name, value in (("connection", place.name), ("client", place.client)) if value}
    journal("info", ids, {"reason": "the carrier told a client a close that the target did not say"})
