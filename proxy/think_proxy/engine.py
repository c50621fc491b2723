"""Which armed fault, if any, a message sets off. Pure: no clock, no socket, no chance of its own.

A fault is armed in a scope, which tells the connections that concern it, so that cases which run
side by side do not touch each other. A decision depends on the seed, the fault, the connection, the
direction and the ordinal of the message, never on the time of its arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

from think_proxy.match import Message, Place, content_matches
from think_proxy.plan import Direction, Fault, Leg, When

Moment = Literal["opening", "up", "down"]
"""When a fault can fire: at the request that opens a connection, or at a message of a direction."""

MOMENTS: frozenset[Moment] = frozenset({"opening", "up", "down"})


class Unsupported(ValueError):
    """A plan needs what this carrier does not do exactly. One line; nothing was armed. `need`: what it
    is, in the words of the plan."""

    def __init__(self, text: str, need: str) -> None:
        super().__init__(text)
        self.need = need


@dataclass(frozen=True, slots=True)
class Carrier:
    """What a carrier does exactly: on which leg it sits, which fields of `when`, and which forms of
    actions at which moments; `forwards_first`: whether it can act behind a message that has passed;
    `keeps_endings`: whether a connection that one side ends without a word ends so for the other."""

    name: str
    leg: Leg
    triggers: frozenset[str]
    actions: Mapping[str, frozenset[Moment]]
    forwards_first: bool = True
    keeps_endings: bool = True

    def moments(self, fault: Fault) -> frozenset[Moment]:
        """When the fault can fire: where all its actions can be done, and at the opening only if they
        cannot be done later. Raises Unsupported with the first thing it needs and this carrier lacks."""
        asked = [name for name in fault.when.__struct_fields__ if getattr(fault.when, name) is not None]
        needs = [f"leg {fault.leg}"] if fault.leg != self.leg else []
        needs += [f"when.{name}" for name in asked if name not in self.triggers]
        needs += [f"do.{action.form}" for action in fault.do if action.form not in self.actions]
        needs += ["after"] if fault.after and not self.forwards_first else []
        if needs:
            text = f"fault `{fault.id}` needs `{needs[0]}`: not supported by the {self.name}"
            raise Unsupported(text, needs[0])
        left = possible(fault.when)
        for action in fault.do:
            asked_at, left = left, left & self.actions[action.form]
            if not left:
                text = f"fault `{fault.id}` needs `do.{action.form}` where {self._only(action.form)}"
                raise Unsupported(text, f"do.{action.form} at {' or '.join(sorted(asked_at))}")
        return left - {"opening"} or left

    def _only(self, form: str) -> str:
        moments = " and ".join(sorted(self.actions[form]))
        return f"it cannot be done: the {self.name} does it at these moments: {moments}"


def possible(when: When) -> frozenset[Moment]:
    """The moments that `when` leaves open. An opening has no direction and no content."""
    if when.direction is not None:
        return frozenset({when.direction})
    messages = (when.json, when.nested, when.text, when.nth)
    return MOMENTS if messages == (None,) * 4 else MOMENTS - {"opening"}


@dataclass(eq=False, slots=True)
class Armed:
    """A fault in its scope. opened: how many connections it has concerned. fired: how often."""

    fault: Fault
    scope: str
    moments: frozenset[Moment]
    opened: int = 0
    fired: int = 0

    @property
    def spent(self) -> bool:
        return self.fired >= self.fault.times


@dataclass(frozen=True, slots=True)
class Firing:
    """A fault goes off. token: names this one time, `<fault>#<n>`, n from 1 within the scope. number:
    which connection it is for `when.connection`; None for one that is older than the fault."""

    fault: Fault
    scope: str
    token: str
    number: int | None


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
            moments = self.carrier.moments(fault)
            if fault.id in taken:
                raise ValueError(f"fault `{fault.id}` is already armed in scope `{scope}`")
            taken.add(fault.id)
            fresh.append(Armed(fault, scope, moments))
        self.armed += fresh
        self.revision += 1

    def disarm(self, scope: str | None) -> None:
        """Forgets the faults of one scope, or all."""
        self.armed = [one for one in self.armed if scope is not None and one.scope != scope]
        self.revision += 1

    @property
    def alert(self) -> bool:
        """Whether any fault could still go off anywhere."""
        return any(not one.spent for one in self.armed)

    def watch(self, place: Place) -> Watch:
        """The eye on a connection that opens now."""
        return Watch(self, place)


class Watch:
    """Counts and decides for one connection, or for one exchange."""

    def __init__(self, engine: Engine, place: Place) -> None:
        self.place = place
        self._engine = engine
        self._revision = -1
        self._armed: dict[Moment, list[Armed]] = {}
        self._matches: dict[Armed, int] = {}
        self._numbers: dict[Armed, int] = {}
        for one in engine.armed:
            if self._concerns(one):
                one.opened += 1
                self._numbers[one] = one.opened

    def active(self, moment: Moment) -> bool:
        """Whether any fault could go off here at this moment. Cheap."""
        if self._revision != self._engine.revision:
            self._refresh()
        return bool(self._armed[moment])

    def decide(self, direction: Direction, message: Message) -> Firing | None:
        """The fault this message sets off: of several the first in plan order. All of them count it."""
        moment: Moment = direction if message.ordinal else "opening"
        concerned = self._armed[moment] if self.active(moment) else []
        hits = [one for one in concerned if self._hits(one, moment, message)]
        if not hits:
            return None
        hit = hits[0]
        hit.fired += 1
        if hit.spent:
            self._engine.revision += 1
        return Firing(hit.fault, hit.scope, f"{hit.fault.id}#{hit.fired}", self._numbers.get(hit))

    def _hits(self, one: Armed, moment: Moment, message: Message) -> bool:
        when = one.fault.when
        if not content_matches(when, message) or not self._drawn(one, moment, message.ordinal):
            return False
        count = self._matches[one] = self._matches.get(one, 0) + 1
        return when.nth is None or when.nth == count

    def _drawn(self, one: Armed, moment: Moment, ordinal: int) -> bool:
        probability = one.fault.when.probability
        if probability is None:
            return True
        here = self.place.name or self._numbers.get(one)
        key = repr((self._engine.seed, one.fault.id, here, moment, ordinal))
        return int.from_bytes(sha256(key.encode()).digest()[:8]) < probability * 2**64

    def _refresh(self) -> None:
        self._revision = self._engine.revision
        mine = [
            one for one in self._engine.armed if not one.spent and self._concerns(one) and self._is_due(one)
        ]
        self._armed = {moment: [one for one in mine if moment in one.moments] for moment in MOMENTS}

    def _concerns(self, one: Armed) -> bool:
        return self.place.within(one.scope) and one.fault.when.client in (None, self.place.client)

    def _is_due(self, one: Armed) -> bool:
        return one.fault.when.connection in (None, self._numbers.get(one))
