"""Why a model call was made and what a client did to a turn: shared by the checks, none itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf

from think_conformance.history.chains import Chain
from think_conformance.history.traffic import Connection
from think_conformance.history.views import View
from think_conformance.history.work import Call
from think_conformance.wire.frames import ChatRequest, ResumeAck, ResumeRequest

FAILING_STEPS = frozenset({"status", "error", "silence", "cut"})
"""Steps of a model script after which asking the model again is the target's right."""

NO_END = "the epilogue did not read the transcript"

PATIENCE_S = 5.0
"""How long a silence lasts at least that says something: what the kit cuts short earlier says nothing."""


def unexplained_calls(view: View) -> Iterator[tuple[Call, Call, str]]:
    """Each model call of a turn that nothing explains, the call before it, and what is wrong."""
    chains: dict[str, list[Chain]] = {}
    for chain in view.chains:
        if chain.marker is not None:
            chains.setdefault(chain.marker, []).append(chain)
    by_marker: dict[str, list[Call]] = {}
    for call in view.calls:
        by_marker.setdefault(call.marker, []).append(call)
    for marker, calls in by_marker.items():
        yield from _unexplained_of(view, chains.get(marker, []), calls)


class Blame:
    """Which unexplained calls resends may have caused: each resend one. Ask in the order of the calls."""

    def __init__(self, view: View) -> None:
        self._resends: list[int] = []
        sent: set[str] = set()
        for passed in view.frames:
            if isinstance(passed.frame, ChatRequest):
                if passed.frame.id in sent:
                    self._resends.append(passed.index)
                sent.add(passed.frame.id)

    def of_a_resend(self, call: Call) -> bool:
        """Whether a resend before this call is left to blame; it is then spent."""
        if not self._resends or self._resends[0] > call.index:
            return False
        self._resends.pop(0)
        return True


def _unexplained_of(view: View, own: list[Chain], calls: list[Call]) -> Iterator[tuple[Call, Call, str]]:
    sends, others = _sends(view, own), view.started_by_others()
    spent = 1  # the first call is the first send's
    for before, call in pairwise(calls):
        wrong = _unexplained(view, own, before, call)
        if not wrong or any(index < call.index for index in others):
            continue
        if sum(index < call.index for index in sends) > spent:
            spent += 1
        else:
            yield before, call, wrong


def _unexplained(view: View, own: list[Chain], before: Call, call: Call) -> str:
    """What is wrong with `call`, empty when it is explained by what happened since `before`."""
    deaths = [death for death in view.deaths if before.index < death < call.index]
    if own and all(_over(chain, deaths) < call.index for chain in own):
        # a stop may overtake a call that is just being made
        if call.how == "aborted" and all("aborted" in chain.finals for chain in own):
            return ""
        return f"the model was called again for {call.marker} after its final outcome was told"
    explained = (
        bool(deaths)
        or before.how in ("aborted", "error")
        or len(call.tool_results) > len(before.tool_results)
        or any(f.leg == "model" and i > before.index for f in view.faults for i, _ in f.fired)
        or _scripted_to_fail(view, before)
    )
    return "" if explained else f"the model was called again for {call.marker} without a cause"


def _over(chain: Chain, deaths: list[int]) -> float:
    """The record that told its end, else infinity. After a crash `aborted` may be told of what was broken
    off alone, when the turn then ends otherwise: that two ends are told is for WIRE-206 to say."""
    if chain.ended is None or (aborted_first(chain) and any(death < chain.ended for death in deaths)):
        return inf
    return chain.ended


def aborted_first(chain: Chain) -> bool:
    """Whether two ends were told of a turn, and the first was `aborted`."""
    return len(chain.finals) > 1 and next(iter(chain.finals)) == "aborted"


def _sends(view: View, own: list[Chain]) -> list[int]:
    """The chat requests that may each start a run of a turn: one per id. Another target than the
    reference may take an id anew that was sent again after a crash (WIRE-58)."""
    ids = {chain.root for chain in own}
    last: dict[str, int] = {}
    found = []
    for passed in view.frames:
        if not (passed.sent and isinstance(passed.frame, ChatRequest) and passed.frame.id in ids):
            continue
        before = last.get(passed.frame.id)
        forgotten = before is not None and any(before < death < passed.index for death in view.deaths)
        if before is None or (forgotten and not view.case.facts):
            found.append(passed.index)
        last[passed.frame.id] = passed.index
    return found


def _scripted_to_fail(view: View, call: Call) -> bool:
    return any(isinstance(step, dict) and FAILING_STEPS & step.keys() for step in script_of(view, call))


def script_of(view: View, call: Call) -> list[object]:
    """The steps the scripted model was given for a call; the last script repeats."""
    scripts = view.case.plan.get("model")
    found = scripts.get(call.marker.rpartition("/")[2]) if isinstance(scripts, dict) else None
    if not isinstance(found, list) or not found:
        return []
    script = found[min(call.number, len(found)) - 1]
    return script if isinstance(script, list) else []


def resumes(view: View) -> list[int]:
    """The records in which a client asked for a stream or acknowledged an offer."""
    return [p.index for p in view.frames if p.sent and isinstance(p.frame, (ResumeRequest, ResumeAck))]


def stopped_by_nobody(view: View, chain: Chain) -> bool:
    """Whether no client, no clear, no RPC and no death could have ended this turn."""
    return not (
        chain.cancels
        or chain.ambiguous
        or chain.cleared is not None
        or view.deaths_in(chain)
        or view.started_by_others()
    )


def accepted(view: View) -> list[Chain]:
    """The turns that are known to be accepted: a valid request of a client, or one of the target's
    own of which something was streamed."""
    return [
        chain
        for chain in view.chains
        if chain.accepted is not None
        and (chain.request.valid if chain.request else bool(view.chunks_of(chain)))
    ]


def judged(view: View) -> list[Chain]:
    """The accepted turns of which all request ids are known."""
    return [chain for chain in accepted(view) if not chain.ambiguous]


def without_outcome(view: View, chain: Chain) -> bool:
    """Whether it is certain, when the epilogue is over, that no outcome of a turn can be learned."""
    return view.reachable and untold(view, chain)


def untold(view: View, chain: Chain) -> bool:
    """Whether nothing is known of its outcome when the epilogue is over, were anybody there to ask or not.
    Of a turn that was still streaming when the epilogue had no more time nothing can be said."""
    if view.end is None or view.evidence(chain).strength != "none" or _streams_on(view, chain):
        return False
    elsewhere = any(c.ambiguous and (c.finals or c.cancels) for c in view.chains)
    return not (chain.ambiguous and (elsewhere or chain.request is None))


def _streams_on(view: View, chain: Chain) -> bool:
    """Whether a live chunk of it came shortly before the epilogue gave up, from a target that lived on."""
    deadline = view.phases.get("deadline", -1)
    since = max(view.deaths, default=-1)
    live = [c.index for c in view.chunks_of(chain) if not c.replay and since < c.index < deadline]
    return bool(live) and view.history[deadline].at - view.history[live[-1]].at < PATIENCE_S


def replaced(view: View, chain: Chain) -> bool:
    """Whether the client itself asked that the answer leaves the transcript: clear, regenerate."""
    return chain.cleared is not None or any(
        c.request is not None and c.request.regenerate and c.first > chain.first for c in view.chains
    )


def aborted_by_itself(view: View, chain: Chain) -> int | None:
    """The record that told a turn to be aborted which nobody stopped. A turn that was told to have
    ended otherwise too is a contradiction, not a stop (WIRE-206)."""
    return chain.finals.get("aborted") if len(chain.finals) == 1 and stopped_by_nobody(view, chain) else None


def lost_in(view: View, chain: Chain) -> int | None:
    """The first record in which a connection closed, whoever closed it, while a turn ran."""
    closings = (c.closed for c in view.connections.values() if c.closed is not None)
    return min((index for index in closings if chain.open_at(index)), default=None)


def gave_up(view: View, chain: Chain, death: int) -> bool:
    """Whether the target said that it would not go on with a turn that a death broke off. `aborted` says so
    of a stop, and of a turn whose conversation has moved on (TURN-53)."""
    kinds = set(chain.finals) - {"completed"}
    if kinds != {"aborted"}:
        return bool(kinds)
    told = chain.finals["aborted"]
    return any(
        other is not chain and other.request is not None and death < other.request.index < told
        for other in view.chains
    )


def released(view: View, call: Call) -> int:
    """The first record after which its last gate may be open."""
    if not call.gates:
        return call.index
    gate, held = max(call.gates.items(), key=lambda item: item[1])
    opened = [
        op.index
        for op in view.operations
        if op.kind == "invoke" and op.payload.get("do") == "open-gate" and op.payload.get("gate") == gate
    ]
    ends = [*opened, view.phases.get("begin", len(view.history))]
    return max(min(ends), held)


def known_before(view: View, request: str, index: int) -> bool:
    """Whether a request id was sent or named by anybody before that record."""
    chain = view.chain_of.get(request)
    return chain is not None and chain.first < index


def waits_in_vain(view: View, since: int) -> list[int]:
    """The records in which the run gave up waiting for something, long enough after record `since` that
    what was due by then did not come."""
    planned = view.case.plan.get("operations")
    waits = [isinstance(op, dict) and op.get("do") == "wait" for op in planned or ()]
    return [
        op.index
        for op in view.operations
        if op.kind == "info" and (op.number is None or (op.number < len(waits) and waits[op.number]))
        if op.index > since and view.history[op.index].at - view.history[since].at >= PATIENCE_S
    ]


def open_in_vain(view: View, call: Call, told: int) -> int | None:
    """The record that shows that the target left a model call running although it had told the end of the
    turn in record `told`: the run waited in vain for the call to end."""
    if call.end is None:
        return view.end
    return next((index for index in waits_in_vain(view, told) if call.open_at(index)), None)


def answered_on(call: Call, told: int) -> bool:
    """Whether a model call was not seen to be hung up on, though the end of its turn was told in `told`."""
    return call.end is None or (call.end > told and call.how != "aborted")


def begun(view: View, chain: Chain, index: int) -> bool:
    """Whether a turn had asked the model or streamed before that record."""
    return any(call.index < index for call in view.calls_for(chain)) or any(
        chunk.index < index for chunk in view.chunks_of(chain)
    )


def own_words(view: View) -> dict[str, set[str]]:
    """What the scripted model says for one turn of the plan and for no other, by the turn's marker."""
    scripts = view.case.plan.get("model")
    said = {
        turn: {
            step["text"]
            for script in calls
            for step in (script if isinstance(script, list) else [])
            if isinstance(step, dict) and isinstance(step.get("text"), str) and step["text"].strip()
        }
        for turn, calls in (scripts.items() if isinstance(scripts, dict) else ())
        if isinstance(calls, list)
    }
    found: dict[str, set[str]] = {}
    for marker in {chain.marker for chain in view.chains if chain.marker is not None}:
        turn = marker.rpartition("/")[2]
        others = "\0".join(text for other, texts in said.items() if other != turn for text in texts)
        found[marker] = {text for text in said.get(turn, ()) if text not in others}
    return found


def owes_until_the_end(view: View, connection: Connection, index: int) -> bool:
    """Whether what a connection was owed at that record must have come: it stayed open and unharmed to
    the end, and so did the target."""
    return (
        view.end is not None
        and connection.lives_at(view.end)
        and connection.disturbed is None
        and not any(death > index for death in view.deaths)
    )
