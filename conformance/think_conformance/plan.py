"""The whole plan of one case, as data: what clients do, what the model says, which faults strike.

Extends the fault half (`think_proxy.plan`) by target, configure, model and operations. A plan is
what a scenario yields, what is saved when a case fails, and what `replay` reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from think_conformance.errors import suggest
from think_proxy.plan import CloseCode, FaultPlan, Seen

Do = Literal[
    "connect",  # open a socket as client `client` and, unless `quiet`, follow the resume protocol
    "send",  # a chat request for `turn`; the text gets the turn's marker
    "stop",  # the cancel frame for the request of `turn`, or for the `newest` the client was shown
    "close",  # close the socket, code 1000 unless `code`
    "probe",  # a resume request
    "ack",  # an ack for the request of `turn` or the literal `request`
    "clear",  # clear the chat
    "get-messages",  # read the transcript over HTTP
    "rpc",  # call `method` with `args` on a connection that checks ignore
    "raw",  # send `text` as it stands
    "open-gate",  # let the model go on
    "wait",  # only wait for `after`
]


_NEEDS: dict[Do, tuple[str, ...]] = {
    "send": ("turn",),
    "stop": ("turn", "request"),
    "ack": ("turn", "request"),
    "rpc": ("method",),
    "raw": ("text",),
    "open-gate": ("gate",),
    "wait": ("after",),
}
"""What an operation cannot do without: one of these fields."""


class After(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """When an operation may start; all that is given must hold."""

    fault: str | None = None  # its list of actions is done
    fired: str | None = None  # its moment was seen
    seen: Seen | None = None


class Operation(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One step. Steps start in list order, each when its `after` holds. A `send` of a turn that was
    sent before is a resend. `echo`: its list also repeats the conversation as the client has seen it,
    answers under the server's ids or under ids the client made up. `newest`: a stop names the request
    the client was shown a stream of last, as a client does that has no other id; else that of `turn`.
    `within_s` bounds the waiting for `after`, on top of the heartbeat in which an agent may take to wake."""

    do: Do
    client: str | None = None
    turn: str | None = None
    text: str | None = None
    gate: str | None = None
    request: str | None = None
    method: str | None = None
    args: list[Any] | None = None
    code: int | None = None
    quiet: bool = False
    newest: bool = False
    echo: Literal["server-ids", "own-ids"] | None = None
    after: After | None = None
    within_s: float = 5.0

    def __post_init__(self) -> None:
        needs = _NEEDS.get(self.do, ())
        if needs and all(getattr(self, field) is None for field in needs):
            raise ValueError(f"`{self.do}` needs {' or '.join(f'`{field}`' for field in needs)}")
        if not 0 <= self.within_s < inf:
            raise ValueError("`within_s` is a number of seconds")
        if self.code is not None:
            CloseCode(close=self.code)


class About(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """Where a saved plan comes from, so that its replay is judged as the case was. `scenario` names
    files too: letters, digits, `_`, `-` and, inside, dots."""

    scenario: Annotated[str, Meta(pattern=r"^[\w-][\w.-]*\Z")] = "plan"
    title: str = ""
    exercises: tuple[str, ...] = ()


class TargetPart(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """What the case asks of the target: a defect switched on."""

    defect: str | None = None


Step = dict[str, Any] | str
"""One step of a model script: {text}, {gate}, {reasoning}, {tool, args, id?}, {usage}, {status, body?},
{error}, {silence: true}, {cut: true}, or the word `done`."""


class Plan(FaultPlan, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A plan file, as the kit reads it. `any_model`: its turns show what they are to show whatever a model
    answers, so that it can also be played where the scripts of `model` are out of reach."""

    about: About = About()
    target: TargetPart = TargetPart()
    configure: dict[str, Any] = {}
    model: dict[str, list[list[Step]]] = {}
    any_model: bool = False
    operations: list[Operation] = []

    def __post_init__(self) -> None:
        super().__post_init__()
        for number, fault in enumerate(self.faults):
            if fault.leg != "target":
                continue
            if fault.when.seen is None:
                what = f"fault `{fault.id}`: on the leg `target` it needs `when: {{seen: ...}}`"
                raise _wrong(what, f"faults[{number}].when")
            if any(action.process is None for action in fault.do):
                what = f"fault `{fault.id}`: on the leg `target` only process actions can be done"
                raise _wrong(what, f"faults[{number}].do")
        self._check_names()

    def _check_names(self) -> None:
        """Whatever is named is there: else the plan could never be played to its end."""
        known = {
            "fault": [fault.id for fault in self.faults],
            "turn with a model script": list(self.model),
            "gate of a model script": _gates(self.model),
        }
        for what, name, place in self._names():
            if name is not None and name not in known[what]:
                raise _wrong(f"`{name}` is no {what}{suggest(name, known[what])}", place)

    def _names(self) -> Iterator[tuple[str, str | None, str]]:
        """What kind of thing is named, its name, and where."""
        for number, op in enumerate(self.operations):
            place, after = f"operations[{number}]", op.after or After()
            yield "turn with a model script", op.turn, f"{place}.turn"
            yield "gate of a model script", op.gate, f"{place}.gate"
            yield "fault", after.fault, f"{place}.after.fault"
            yield "fault", after.fired, f"{place}.after.fired"
            if after.seen is not None:
                yield "gate of a model script", after.seen.gate, f"{place}.after.seen.gate"
        for number, fault in enumerate(self.faults):
            place, when = f"faults[{number}].when", fault.when
            yield "fault", when.fired, f"{place}.fired"
            if when.seen is not None:
                yield "gate of a model script", when.seen.gate, f"{place}.seen.gate"


def _gates(model: dict[str, list[list[Step]]]) -> list[str]:
    steps = [step for calls in model.values() for steps in calls for step in steps]
    gates = [step.get("gate") for step in steps if isinstance(step, dict)]
    return [gate for gate in gates if isinstance(gate, str)]


def _wrong(what: str, place: str) -> ValueError:
    """The place as msgspec writes it, so that who reads plan files finds line and column."""
    return ValueError(f"{what} - at `$.{place}`")
