"""Why a model call was made and what a client did to a turn: shared by the checks, none itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from think_conformance.history.chains import Chain
from think_conformance.history.views import View
from think_conformance.history.work import Call
from think_conformance.wire.frames import ChatRequest, ResumeAck, ResumeRequest

FAILING_STEPS = frozenset({"status", "error", "silence", "cut"})
"""Steps of a model script after which asking the model again is the target's right."""

NO_END = "the epilogue did not read the transcript"


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
    if own and all(chain.ended is not None and chain.ended < call.index for chain in own):
        # a stop may overtake a call that is just being made
        if call.how == "aborted" and all("aborted" in chain.finals for chain in own):
            return ""
        return f"the model was called again for {call.marker} after its final outcome was told"
    explained = (
        any(before.index < death < call.index for death in view.deaths)
        or before.how in ("aborted", "error")
        or call.tool_results > before.tool_results
        or any(f.leg == "model" and i > before.index for f in view.faults for i, _ in f.fired)
        or _scripted_to_fail(view, before)
    )
    return "" if explained else f"the model was called again for {call.marker} without a cause"


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
    if view.end is None or not view.reachable or view.evidence(chain).strength != "none":
        return False
    elsewhere = any(c.ambiguous and (c.finals or c.cancels) for c in view.chains)
    return not (chain.ambiguous and (elsewhere or chain.request is None))


def replaced(view: View, chain: Chain) -> bool:
    """Whether the client itself asked that the answer leaves the transcript: clear, regenerate."""
    return chain.cleared is not None or any(
        c.request is not None and c.request.regenerate and c.first > chain.first for c in view.chains
    )
