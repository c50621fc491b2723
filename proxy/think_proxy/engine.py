"""Which armed fault, if any, a message sets off. Pure: no clock, no socket, no chance of its own.

A fault is armed in a scope, the path below which connections concern it, so that cases which run
side by side do not touch each other. A decision depends on the seed, the fault, the connection, the
direction and the ordinal of the message, never on the time of its arrival.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256

from think_proxy.match import Message, client_of, connection_of, content_matches, path_of, within
from think_proxy.plan import Direction, Fault, Leg


class Unsupported(ValueError):
    """A plan needs what this carrier does not do exactly. One line; nothing was armed."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """What a carrier does exactly: on which leg it sits, which fields of `when` and which actions."""

    name: str
    leg: Leg
    triggers: frozenset[str]
    actions: frozenset[str]

    def check(self, fault: Fault) -> None:
        """Raises Unsupported with the first thing the fault needs and this carrier lacks."""
        asked = [name for name in fault.when.__struct_fields__ if getattr(fault.when, name) is not None]
        needs = [f"leg {fault.leg}"] if fault.leg != self.leg else []
        needs += [f"when.{name}" for name in asked if name not in self.triggers]
        needs += [f"do.{action.name}" for action in fault.do if action.name not in self.actions]
        if needs:
            raise Unsupported(f"fault `{fault.id}` needs `{needs[0]}`: not supported by the {self.name}")


@dataclass(eq=False, slots=True)
class Armed:
    """A fault in its scope, and how often it has fired."""

    fault: Fault
    scope: str
    fired: int = 0

    @property
    def spent(self) -> bool:
        return self.fired >= self.fault.times


@dataclass(frozen=True, slots=True)
class Firing:
    """A fault goes off. `token` names this one time: `<fault>#<n>`, n from 1 within the scope."""

    fault: Fault
    scope: str
    token: str


@dataclass(slots=True)
class Engine:
    """The armed faults of one proxy."""

    carrier: Carrier
    seed: int = 0
    armed: list[Armed] = field(default_factory=list)
    revision: int = 0

    def arm(self, faults: Iterable[Fault], scope: str) -> None:
        """Arms all of them or none. Raises Unsupported; ValueError for an id that is armed there."""
        taken = {one.fault.id for one in self.armed if one.scope == scope}
        fresh = []
        for fault in faults:
            self.carrier.check(fault)
            if fault.id in taken:
                raise ValueError(f"fault `{fault.id}` is already armed in scope `{scope}`")
            taken.add(fault.id)
            fresh.append(Armed(fault, scope))
        self.armed += fresh
        self.revision += 1

    def disarm(self, scope: str | None) -> None:
        """Forgets the faults of one scope, or all."""
        self.armed = [one for one in self.armed if scope is not None and one.scope != scope]
        self.revision += 1

    def watch(self, target: str) -> Watch:
        """The eye on one connection, which was opened with this request target."""
        return Watch(self, target)


class Watch:
    """Counts and decides for one connection."""

    def __init__(self, engine: Engine, target: str) -> None:
        self.path = path_of(target)
        self.connection = connection_of(target)
        self.client = None if self.connection is None else client_of(self.connection)
        self._engine = engine
        self._revision = -1
        self._armed: dict[Direction, list[Armed]] = {}
        self._matches: dict[Armed, int] = {}

    def active(self, direction: Direction) -> bool:
        """Whether any fault could go off on this connection in this direction. Cheap."""
        if self._revision != self._engine.revision:
            self._refresh()
        return bool(self._armed[direction])

    def decide(self, direction: Direction, message: Message) -> Firing | None:
        """The fault this message sets off: of several the first in plan order. All of them count it."""
        hits = [one for one in self._concerned(direction) if self._hits(one, direction, message)]
        if not hits:
            return None
        hit = hits[0]
        hit.fired += 1
        if hit.spent:
            self._engine.revision += 1
        return Firing(hit.fault, hit.scope, f"{hit.fault.id}#{hit.fired}")

    def _concerned(self, direction: Direction) -> list[Armed]:
        return self._armed[direction] if self.active(direction) else []

    def _hits(self, one: Armed, direction: Direction, message: Message) -> bool:
        when = one.fault.when
        if not content_matches(when, message) or not self._drawn(one.fault, direction, message.ordinal):
            return False
        count = self._matches[one] = self._matches.get(one, 0) + 1
        return when.nth is None or when.nth == count

    def _drawn(self, fault: Fault, direction: Direction, ordinal: int) -> bool:
        probability = fault.when.probability
        if probability is None:
            return True
        key = repr((self._engine.seed, fault.id, self.connection, direction, ordinal))
        return int.from_bytes(sha256(key.encode()).digest()[:8]) < probability * 2**64

    def _refresh(self) -> None:
        self._revision = self._engine.revision
        mine = [one for one in self._engine.armed if not one.spent and self._concerns(one)]
        self._armed = {
            "up": [one for one in mine if one.fault.when.direction in (None, "up")],
            "down": [one for one in mine if one.fault.when.direction in (None, "down")],
        }

    def _concerns(self, one: Armed) -> bool:
        return within(self.path, one.scope) and one.fault.when.client in (None, self.client)
