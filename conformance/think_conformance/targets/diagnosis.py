"""What is wrong with an adapter, by name: the plans that probe one, and what their histories tell. Pure.

A diagnosis says what was observed and what to do next. Whether an implementation is right is for the
requirements to say; here it is asked whether the kit can find that out at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from think_conformance.history.chains import Chain
from think_conformance.history.views import View
from think_conformance.history.work import Call
from think_conformance.plan import Plan
from think_conformance.scenarios.base import Scenario, saw_delta, saw_terminal, words
from think_conformance.targets.contract import Target
from think_conformance.wire.frames import ChatResponse

Diagnoses = Iterator["Diagnosis"]

LATE_S = 1.0
"""Seconds that an agent may take to wake on top of its heartbeat, as in the epilogue of a case."""

TEXT = "  Grüße, 你好 \t<b>&amp;\nand a second line."
"""What a user may well send: characters that are lost by whoever trims, escapes or encodes."""


class Diagnosis(Struct, frozen=True):
    """One thing that is wrong. `cause` is what was observed, `advice` the next step."""

    name: str
    cause: str
    advice: str

    def __str__(self) -> str:
        return f"{self.name}: {self.cause}; {self.advice}"


class Start(Struct, frozen=True, kw_only=True):
    """How a start failed. `reason` in one line; `port` is THINK_PORT; `elsewhere` are the ports on which its
    group was last seen to listen; `held`: the port is taken although the group is gone."""

    reason: str
    port: int
    elsewhere: frozenset[int] = frozenset()
    held: bool = False


class Probe(Struct, frozen=True, kw_only=True):
    """A plan, when it is worth playing, and what its history tells. `vital`: where it finds something,
    others would only find the same again."""

    id: str
    title: str
    plan: dict[str, Any]
    find: Callable[[View], Diagnoses]
    wanted: Callable[[Target], bool] = lambda target: True
    vital: bool = False

    @property
    def scenario(self) -> Scenario:
        """As the engine plays it."""
        plan = msgspec.convert({"version": 1, **self.plan}, Plan)
        return Scenario(id=f"probe.{self.id}", title=self.title, exercises=(), plan=plan)


def of_start(start: Start) -> Diagnosis:
    """Why a target did not start; `never-ready` where nothing better is known."""
    if start.held:
        return Diagnosis(
            "forks-away",
            f"a process outside the target's process group listens on THINK_PORT {start.port}",
            "start the server in the foreground, without a daemon, and end what is left of it",
        )
    if start.elsewhere:
        ports = ", ".join(map(str, sorted(start.elsewhere)))
        return Diagnosis(
            "port-ignored",
            f"it listens on {ports} and not on THINK_PORT {start.port}",
            "take the port from the environment variable THINK_PORT, or give `port` in the target file",
        )
    return Diagnosis("never-ready", start.reason, "make it answer `ready` with a status below 500")


def no_restart(reason: str) -> Diagnosis:
    """A target that started once, and then not again for that reason."""
    advice = "make it start on a data folder that a SIGKILL left as it was"
    return Diagnosis("no-restart", f"once it had run it did not start again: {reason}", advice)


def of_file(target: Target) -> Diagnoses:
    """What the target file alone tells."""
    if "routing" in target.legs:
        yield Diagnosis(
            "claim-not-honoured",
            "`legs` names routing, and nothing of the kit stands between the parts of a target",
            "remove it from `legs`",
        )


def probes(target: Target) -> list[Probe]:
    """Those that what the target claims makes worth playing, in order."""
    return [probe for probe in PROBES if probe.wanted(target)]


def _claims(*profiles: str) -> Callable[[Target], bool]:
    return lambda target: bool(set(profiles) & set(target.claims))


def _talks(view: View) -> Diagnoses:
    chain, calls = _turn(view), view.calls
    if not calls and view.strays:
        yield from _of_a_stray(view.strays[0])
    elif not calls:
        yield Diagnosis(
            "model-url-ignored",
            f"a turn was sent and THINK_MODEL_URL was not called{_told(view, chain)}",
            "send the prompt to THINK_MODEL_URL + /chat/completions, with `stream`: true",
        )
    elif not set(_sent(view).values()).issubset(_texts(calls[0])):
        yield _changed("the user's text reached the model, but not as it was sent")
    elif not _in_time(view, chain):
        yield Diagnosis(
            "claim-not-honoured",
            "core is claimed, and no terminal frame came when the model had answered",
            "end each turn with a cf_agent_use_chat_response that says `done`: true",
        )


def _of_a_stray(reason: str) -> Diagnoses:
    if "marker" in reason:
        yield _changed("the model was called without the user's text")
    else:
        advice = "call it as an OpenAI-compatible provider is called, with `stream`: true"
        yield Diagnosis("model-call-refused", f"the scripted model refused the call: {reason}", advice)


def _changed(cause: str) -> Diagnosis:
    advice = "pass it on unchanged as the content of a message with role `user`: it holds the marker"
    return Diagnosis("text-changed", cause, advice)


def _told(view: View, chain: Chain | None) -> str:
    """What the client was told instead, where it was told anything."""
    errors = [
        p.frame.body
        for p in view.frames
        if isinstance(p.frame, ChatResponse) and p.frame.error is True and not p.sent
    ]
    if errors:
        return f" (the client was told: {' '.join(errors[-1].split())[:200]})"
    accepted = chain is not None and chain.accepted is not None
    return "" if accepted else ", nor was the turn seen to be accepted"


def _turn(view: View) -> Chain | None:
    """The one turn of a probe."""
    return next((chain for chain in view.chains if chain.request is not None), None)


def _sent(view: View) -> dict[str, str]:
    """What the user said, by the id of the message."""
    sent = (o.payload["messages"] for o in view.operations if o.payload.get("do") == "send")
    return {message["id"]: message["parts"][0]["text"] for messages in sent for message in messages}


def _texts(call: Call) -> Iterator[str]:
    """The texts of the user in a prompt, whether content is text or parts."""
    for message in call.prompt:
        content = message.get("content")
        parts = [{"text": content}] if isinstance(content, str) else content
        if message.get("role") == "user" and isinstance(parts, list):
            yield "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def _in_time(view: View, chain: Chain | None) -> list[str]:
    """The final outcomes that were told before the epilogue asked for them."""
    finals = {} if chain is None else chain.finals
    return [kind for kind, index in finals.items() if index < view.phases["begin"]]


def _remembers(view: View) -> Diagnoses:
    broken = _undone(view)
    read = [t for t in view.transcripts if t.connection is None and t.index < view.phases["begin"]]
    if broken:
        yield no_restart(broken)
    elif not {str(m.get("id")) for t in read for m in t.messages}.intersection(_sent(view)):
        yield Diagnosis(
            "forgets",
            "a turn that had ended is not in get-messages after a SIGKILL and a restart on the same data",
            "keep everything durable in the folder THINK_DATA_DIR, and nowhere else",
        )


def _undone(view: View) -> str:
    """Why a crash that was planned could not be carried out, if so."""
    return next((fault.undone for fault in view.faults if fault.undone), "")


def _alone_after_s(view: View) -> float | None:
    """Seconds from the coming back of what had crashed until it asked the model again, below 0 where it did
    so before it was ready; None when it did not as long as nobody was there."""
    for crash in view.crashes:
        for call in view.calls:
            if crash.ready is not None and crash.death < call.index < view.phases["begin"]:
                return view.history[call.index].at - view.history[crash.ready].at
    return None


def _goes_on(how: str) -> Callable[[View], Diagnoses]:
    """For a crash of that kind."""

    def find(view: View) -> Diagnoses:
        if view.missing is not None:
            cause = f"recovery is claimed, and `{view.missing.method}` is refused: {view.missing.reason}"
            yield Diagnosis("claim-not-honoured", cause, "offer the RPC method, or cases are not-testable")
            return
        if broken := _undone(view):
            yield no_restart(broken)
            return
        took_s = _alone_after_s(view)
        if took_s is None or took_s > view.case.heartbeat_s + LATE_S:
            when = "it did not" if took_s is None else f"it took {took_s:.1f} s"
            yield Diagnosis(
                "heartbeat-too-slow",
                f"after {how} it should go on by itself within {view.case.heartbeat_s:g} s, and {when}",
                "wake agents with open turns though nobody calls, or raise `heartbeat_s`",
            )

    return find


def _resumes(view: View) -> Diagnoses:
    if not any(
        chunk.index < view.phases["begin"]
        for (connection, _), chunks in view.streams.items()
        if connection == "a.2"
        for chunk in chunks
    ):
        yield Diagnosis(
            "claim-not-honoured",
            "resume is claimed, and a client that came back during an answer was not replayed it",
            "offer the running stream with cf_agent_stream_resuming and replay it when it is acked",
        )


def _stops(view: View) -> Diagnoses:
    if "aborted" not in _in_time(view, _turn(view)):
        yield Diagnosis(
            "claim-not-honoured",
            "control is claimed, and a stop in mid-answer did not end the turn as aborted",
            "end the turn of a cf_agent_chat_request_cancel with `outcome`: aborted, or claim less",
        )


def _acts(view: View) -> Diagnoses:
    if not view.effects:
        yield Diagnosis(
            "effects-url-ignored",
            "the model called the tool `record_effect` and nothing was posted to THINK_EFFECTS_URL",
            "offer the tools of the contract, and post {key, tool} there when one runs",
        )


SEND: dict[str, Any] = {"client": "a", "do": "send", "turn": "t1", "text": "Count to four."}
OPENING: list[dict[str, Any]] = [{"client": "a", "do": "connect"}, SEND]
ENDED: dict[str, Any] = {"do": "wait", "after": {"seen": saw_terminal("a")}}
BRIEF: dict[str, Any] = {"within_s": 2 * LATE_S}
"""What may never come is waited for no longer than that, on top of the heartbeat."""
HELD = {"t1": [[*words(1, 2), {"gate": "held"}, *words(3, 4), "done"]]}


def _crash(seen: dict[str, Any], *actions: str) -> list[dict[str, Any]]:
    do = [{"process": action} for action in actions]
    return [{"id": "crash", "leg": "target", "when": {"seen": seen}, "do": do}]


def _interrupted(*actions: str, **more: Any) -> dict[str, Any]:
    """One turn, interrupted while the model holds; nobody connects until it was asked again. Then somebody
    follows it to its end, so that nothing is left to be waited for."""
    again = {"source": "model", "kind": "model-call", "nth": 2}
    return {
        "model": {"t1": [*HELD["t1"], [*words(3, 3), {"gate": "rest"}, *words(4, 4), "done"]]},
        "operations": [
            *OPENING,
            {"do": "wait", "after": {"fault": "crash"}},
            {"do": "wait", "after": {"seen": again}, **BRIEF},
            {"client": "b", "do": "connect"},
            {"do": "open-gate", "gate": "rest", "after": {"seen": saw_delta("b", 1)}},
            {"do": "wait", "after": {"seen": saw_terminal("b")}},
        ],
        "faults": _crash({"source": "model", "kind": "model-gate", "gate": "held"}, *actions),
        **more,
    }


PROBES = (
    Probe(
        id="talks",
        title="one turn: the text reaches the model, the answer the client",
        plan={
            "model": {"t1": [[*words(1, 2), "done"]]},
            "operations": [OPENING[0], {**SEND, "text": TEXT}, ENDED],
        },
        find=_talks,
        vital=True,
    ),
    Probe(
        id="remembers",
        title="a turn ends, the target is killed and started again: the turn is still there",
        plan={
            "model": {"t1": [[*words(1, 2), "done"]]},
            "operations": [*OPENING, {"client": "a", "do": "get-messages", "after": {"fault": "crash"}}],
            "faults": _crash(saw_terminal("a"), "kill", "restart"),
        },
        find=_remembers,
    ),
    Probe(
        id="resumes",
        title="a client leaves during an answer and comes back",
        plan={
            "model": HELD,
            "operations": [
                *OPENING,
                {"client": "a", "do": "close", "after": {"seen": saw_delta("a", 2)}},
                {"client": "a", "do": "connect"},
                {"do": "wait", "after": {"seen": saw_delta("a", 4)}, **BRIEF},
                {"do": "open-gate", "gate": "held"},
                ENDED,
            ],
        },
        find=_resumes,
        wanted=_claims("resume"),
    ),
    Probe(
        id="stops",
        title="stop is pressed during an answer",
        plan={
            "model": HELD,
            "operations": [
                *OPENING,
                {"client": "a", "do": "stop", "turn": "t1", "after": {"seen": saw_delta("a", 2)}},
                {**ENDED, **BRIEF},
            ],
        },
        find=_stops,
        wanted=_claims("control"),
    ),
    Probe(
        id="goes-on-after-a-kill",
        title="the target is killed during an answer and started again; nobody connects",
        plan=_interrupted("kill", "restart"),
        find=_goes_on("a SIGKILL"),
        wanted=_claims("recovery"),
    ),
    Probe(
        id="goes-on-after-an-evict",
        title="the agent is evicted during an answer; nobody connects",
        plan=_interrupted("evict", configure={"prepareDelayMs": 0}),
        find=_goes_on("`evict`"),
        wanted=_claims("recovery"),
    ),
    Probe(
        id="acts",
        title="the model calls a tool that acts on the outside world",
        plan={
            "model": {
                "t1": [
                    [{"tool": "record_effect", "args": {"key": "{case}/paid"}}, "done"],
                    [*words(1, 2), "done"],
                ]
            },
            "operations": [*OPENING, ENDED],
        },
        find=_acts,
        wanted=lambda target: "effects" in target.legs or _claims("control", "recovery", "tools")(target),
    ),
)
"""In the order in which they are played."""
