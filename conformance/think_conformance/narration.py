"""A plan in words: what the model says, what the clients do and when, which faults strike. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from think_conformance.plan import After, Operation, Plan, Step
from think_proxy.plan import Action, CloseCode, Fault, For, Nested, Seen, Status, When


def tell(plan: Plan) -> Iterator[str]:
    """One sentence a line: configuration, model, numbered operations, faults."""
    if plan.configure:
        yield f"the agent is configured with {_pairs(plan.configure)}"
    for turn, calls in plan.model.items():
        for number, steps in enumerate(calls, start=1):
            yield f"model, turn {turn}, call {number}: {_script(steps)}"
    for number, operation in enumerate(plan.operations, start=1):
        yield f"{number}. {_operation(operation)}"
    for fault in plan.faults:
        yield f"fault `{fault.id}` {_fault(fault)}"


# ---- the model ------------------------------------------------------------------------------


def _script(steps: Sequence[Step]) -> str:
    said: list[str] = []
    for step in steps:
        words = _step(step)
        if said and words.startswith("says ") and said[-1].startswith("says "):
            said[-1] += f", {words.removeprefix('says ')}"
        else:
            said.append(words)
    return "; ".join(said)


def _step(step: Step) -> str:
    match step:
        case str():
            return "ends" if step == "done" else step
        case {"text": text}:
            return f'says "{text}"'
        case {"reasoning": text}:
            return f'thinks "{text}"'
        case {"gate": gate}:
            return f"holds at gate `{gate}`"
        case {"tool": tool}:
            return f"calls {tool}({_pairs(step.get('args') or {})})"
        case _:
            return _pairs(step)


# ---- operations -----------------------------------------------------------------------------


def _operation(op: Operation) -> str:
    if op.after is None:
        return _deed(op)
    return f"{_deed(op)}{' until' if op.do == 'wait' else ', once'} {_after(op.after)}"


_PLAIN_DEEDS = {
    "stop": "stops {request}",
    "ack": "acknowledges {request}",
    "probe": "asks for a stream to resume",
    "clear": "clears the chat",
    "get-messages": "reads the transcript",
}


def _deed(op: Operation) -> str:
    who, request = op.client or "a", op.request or f"turn {op.turn}"
    if op.newest:
        request += ", under the id it was shown last"
    match op.do:
        case "connect":
            return f"{who} connects" + (", and does not follow what it is offered" if op.quiet else "")
        case "send":
            echo = f", repeating the conversation under {op.echo.replace('-', ' ')}" if op.echo else ""
            return f"{who} sends {request}" + (f': "{op.text}"' if op.text else "") + echo
        case "close":
            return f"{who} closes its socket with {op.code or 1000}"
        case "rpc":
            return f"{op.method}({', '.join(map(str, op.args or []))}) is called"
        case "raw":
            return f'{who} sends the text "{op.text}"'
        case "open-gate":
            return f"gate `{op.gate}` opens"
        case "wait":
            return "wait"
        case _:
            return f"{who} {_PLAIN_DEEDS[op.do].format(request=request)}"


def _after(after: After) -> str:
    parts = [f"fault `{after.fired}` has fired"] if after.fired else []
    parts += [f"fault `{after.fault}` is over"] if after.fault else []
    parts += [_seen(after.seen)] if after.seen else []
    return " and ".join(parts)


# ---- moments --------------------------------------------------------------------------------


def _seen(seen: Seen) -> str:
    who = seen.client or "a client"
    match seen.kind:
        case "frame-in":
            return f"{who} has received its {_nth(seen.nth)} {_message(seen.json, seen.nested)}"
        case "frame-out":
            return f"{who} has sent its {_nth(seen.nth)} {_message(seen.json, seen.nested)}"
        case "model-gate":
            return f"the model holds at gate `{seen.gate}`"
        case "model-call":
            return f"the model is called for the {_nth(seen.nth)} time"
        case "effect":
            return f"the {_nth(seen.nth)} effect has reached the outside world"
        case _:
            where = f" of {seen.client or seen.source}" if seen.client or seen.source else ""
            return f"the {_nth(seen.nth)} {seen.kind or 'record'}{where}" + _with(seen.json)


def _when(when: When, leg: str) -> str:
    if when.seen is not None:
        return f"when {_seen(when.seen)}"
    parts = [f"at the {_nth(when.nth or 1)} {_message(when.json, when.nested)} {_way(when, leg)}".rstrip()]
    known = ("connection", "offset", "elapsed_s", "probability", "fired", "call")
    parts += [f"{name} {getattr(when, name)}" for name in known if getattr(when, name) is not None]
    return ", ".join(parts)


_FAR_ENDS = {"routing": "the agent host", "model": "the model", "effects": "the outside world"}


def _way(when: When, leg: str) -> str:
    """From whom or to whom the message goes, seen from the target."""
    if leg == "client":
        return {"up": "from ", "down": "to ", None: "of "}[when.direction] + (when.client or "a client")
    return {"up": "to ", "down": "from ", None: "of "}[when.direction] + _FAR_ENDS.get(leg, leg)


def _message(json: dict[str, Any] | None, nested: Nested | None) -> str:
    """What a frame is recognised by: its chunk type, else its type, and the fields that go with it."""
    if nested is not None:
        return f"{_short(nested.json.get('type', 'chunk'))} chunk" + _with(_without_type(nested.json))
    if not json:
        return "message"
    return f"{_short(json.get('type', 'message'))} frame" + _with(_without_type(json))


def _short(kind: Any) -> str:
    return str(kind).removeprefix("cf_agent_").replace("use_chat_response", "response")


def _without_type(json: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in json.items() if name != "type"}


def _with(json: dict[str, Any] | None) -> str:
    return f" with {_pairs(json)}" if json else ""


# ---- faults ---------------------------------------------------------------------------------


def _fault(fault: Fault) -> str:
    where = "" if fault.leg == "target" else f" on the {fault.leg} leg"
    often = f", up to {fault.times} times" if fault.times > 1 else ""
    return f"strikes{where} {_when(fault.when, fault.leg)}{often}: {', then '.join(map(_action, fault.do))}"


def _action(action: Action) -> str:
    value = getattr(action, action.name)
    match value:
        case CloseCode():
            return f"close with {value.close}"
        case For():
            way = f" {value.direction}" if value.direction else ""
            return f"{action.name.replace('_', ' ')}{way} for {value.for_:g} s"
        case Status():
            return f"answer with status {value.code}"
        case str():
            return value if action.name == "process" else f"{action.name} ({value})"
        case True:
            return action.name
        case dict() | Struct():
            return f"{action.name} ({_pairs(to_builtins(value))})"
        case _:
            return f"{action.name} {value}"


def _pairs(fields: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in fields.items())


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _nth(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
