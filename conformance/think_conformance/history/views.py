"""A history, indexed once for every check: the only thing checks see.

Says what is *known from outside*: which turns were accepted, what was told of their outcomes, which
texts were shown and stored, what struck when. It judges nothing and bounds its work by the history.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import msgspec

from think_conformance.errors import UsageError
from think_conformance.history.chains import Chain, chains_of
from think_conformance.history.op import History, Record
from think_conformance.history.streams import Chunk, Transcript, streams_of
from think_conformance.history.traffic import Passed, connections_of, exchanges_of
from think_conformance.history.work import (
    Call,
    Crash,
    calls_of,
    crashes_of,
    deaths_of,
    effects_of,
    faults_of,
    lost_of,
    missing_of,
    overflow_of,
    strays_of,
)
from think_conformance.wire.frames import (
    ChatClear,
    ChatMessages,
    Outcome,
    ToolApproval,
    ToolResult,
)

HARMLESS = frozenset(
    {"configure", "evict", "events", "inspectSubmission", "listSubmissions", "waitUntilStable"}
)
"""RPC methods that start and end no turn."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """The first record of a history: what was played, on what. `name` is the agent's; `heartbeat_s` how
    soon, in seconds, an agent that nobody calls must wake by itself."""

    case: str
    name: str = ""
    heartbeat_s: float = 30.0
    scenario: str = ""
    exercises: list[str] = []
    target: str = ""
    claims: list[str] = []
    facts: bool = False
    plan: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Operation:
    """What the run recorded of one operation, or of a step of its own (`number` None)."""

    index: int
    kind: Literal["invoke", "ok", "fail", "info"]
    number: int | None
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a turn's outcome. `told`: `kinds` were told by terminals. `stored`: the agent
    is idle and an answer is stored, so it is settled, the kind unknown. `stopped`: idle after a
    cancel or a clear, of which nobody was told more. `none`."""

    strength: Literal["told", "stored", "stopped", "none"]
    kinds: tuple[Outcome, ...] = ()
    indexes: tuple[int, ...] = ()


class View:
    """A history, ready to be asked. Raises UsageError when it does not start with a case record."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.case = _case(history)
        self.faults = faults_of(history, self.case.plan)
        self.deaths = deaths_of(history, self.faults)
        self.crashes = crashes_of(history, self.deaths)
        self.lost = lost_of(history)
        self.missing = missing_of(history, self.faults)
        self.calls = calls_of(history)
        self.strays = strays_of(history)
        self.overflow = overflow_of(history)
        self.effects = effects_of(history)
        self.connections = connections_of(history, self.faults)
        self.frames: list[Passed] = sorted(
            (p for c in self.connections.values() for p in c.frames), key=lambda p: p.index
        )
        self.exchanges = exchanges_of(self.connections)
        self.streams: dict[tuple[str, str], list[Chunk]] = {
            (c.name, request): chunks
            for c in self.connections.values()
            for request, chunks in streams_of(c).items()
        }
        self.operations = [op for record in history if (op := _operation(record)) is not None]
        self.phases: dict[str, int] = {}
        for record in history:
            if record.kind == "epilogue" and isinstance(record.payload, dict):
                phase = str(record.payload.get("phase"))
                self.phases[phase] = record.index
                if phase == "deadline":
                    self.phases.pop("idle", None)
        self.transcripts = self._transcripts()
        self.chains = chains_of(self.connections.values(), self.deaths)
        self.chain_of = {ident: chain for chain in self.chains for ident in chain.ids}
        clears = [p.index for p in self.frames if p.sent and isinstance(p.frame, ChatClear)]
        for chain in self.chains:
            chain.cleared = next((index for index in clears if index > chain.first), None)
            chain.accepted = self._accepted(chain)

    # ---- how the case ended ---------------------------------------------------------------------

    @property
    def end(self) -> int | None:
        """The record that closed the epilogue; None when there was no whole epilogue."""
        return self.phases.get("end")

    @property
    def quiet(self) -> bool:
        """Nothing runs any more: idle was seen, no model call is open, the epilogue is closed."""
        return "idle" in self.phases and self.end is not None and not any(c.end is None for c in self.calls)

    @property
    def reachable(self) -> bool:
        """Whether somebody was connected during the epilogue."""
        begin = self.phases.get("begin")
        return begin is not None and any(
            c.opened > begin or c.lives_at(begin) for c in self.connections.values()
        )

    @cached_property
    def final(self) -> Transcript | None:
        """The transcript read in the epilogue."""
        begin = self.phases.get("begin")
        read = [t for t in self.transcripts if t.connection is None and begin is not None and t.index > begin]
        return read[-1] if read else None

    # ---- turns ----------------------------------------------------------------------------------

    def evidence(self, chain: Chain) -> Evidence:
        """The strongest that is known of the outcome of a turn."""
        if chain.finals:
            return Evidence("told", tuple(chain.finals), tuple(chain.finals.values()))
        if self.final is not None and "idle" in self.phases:
            if self.answered(chain, self.final):
                return Evidence("stored", (), (self.final.index,))
            if chain.cleared is not None or chain.cancels:
                return Evidence("stopped")
        return Evidence("none")

    def deaths_in(self, chain: Chain) -> list[int]:
        """The deaths that interrupted a turn: after it was first named, before its outcome was told."""
        return [death for death in self.deaths if chain.open_at(death)]

    def crashes_in(self, chain: Chain) -> list[Crash]:
        """The same, each death once."""
        return [crash for crash in self.crashes if chain.open_at(crash.death)]

    def marker_of(self, request: str) -> str | None:
        """The marker of the turn a request id belongs to."""
        chain = self.chain_of.get(request)
        return chain.marker if chain else None

    def calls_for(self, chain: Chain) -> list[Call]:
        """The model calls that carry its marker; other turns with the same marker share them."""
        return [c for c in self.calls if chain.marker is not None and c.marker == chain.marker]

    def chunks_of(self, chain: Chain) -> list[Chunk]:
        """Every chunk of a turn that any connection received, in order of arrival."""
        found = [c for (_, request), chunks in self.streams.items() if request in chain.ids for c in chunks]
        return sorted(found, key=lambda c: c.index)

    def answered(self, chain: Chain, transcript: Transcript) -> bool:
        """Whether an assistant's message is stored for it: the one its stream named, or one behind
        its user message that no other request's stream named."""
        named = self._answer_ids(chain)
        stored = [str(m.get("id")) for m in transcript.messages if m.get("role") == "assistant"]
        if named.intersection(stored):
            return True
        rivals = [c for c in self.chains if c is not chain and c.request is not None]
        others = {i for c in rivals for i in self._answer_ids(c)}
        ids = [str(m.get("id")) for m in transcript.messages]
        asked = [ids.index(i) for i in (chain.request.message_ids if chain.request else []) if i in ids]
        return bool(asked) and any(ids.index(i) > max(asked) for i in stored if i not in others)

    def own_message_ids(self, chain: Chain) -> list[str]:
        """The ids of its user messages that no earlier request had sent."""
        if chain.request is None:
            return []
        earlier = {
            i
            for c in self.chains
            if c.request is not None and c.request.index < chain.request.index
            for i in c.request.message_ids
        }
        return [i for i in chain.request.message_ids if i not in earlier]

    def started_by_others(self) -> list[int]:
        """The records of what may start or end work besides chat frames: tool answers and RPC."""
        frames = [p.index for p in self.frames if p.sent and isinstance(p.frame, (ToolResult, ToolApproval))]
        calls = [
            o.index
            for o in self.operations
            if o.kind == "invoke" and o.payload.get("do") == "rpc" and o.payload.get("method") not in HARMLESS
        ]
        return sorted(frames + calls)

    # ---- building -------------------------------------------------------------------------------

    def _transcripts(self) -> list[Transcript]:
        found = [
            Transcript(p.index, p.connection, p.frame.messages)
            for p in self.frames
            if not p.sent and isinstance(p.frame, ChatMessages)
        ]
        for op in self.operations:
            listed = op.payload.get("messages")
            if op.kind == "ok" and isinstance(listed, list):
                messages = [m for m in listed if isinstance(m, dict)]
                found.append(Transcript(op.index, None, messages))
        return sorted(found, key=lambda t: t.index)

    def _accepted(self, chain: Chain) -> int | None:
        """The first evidence from outside that the target took it; None: it may have vanished whole."""
        found = chain.sightings[:1]
        own = set(self.own_message_ids(chain))
        found += [t.index for t in self.transcripts if own & {str(m.get("id")) for m in t.messages}][:1]
        if sum(c.marker == chain.marker for c in self.chains) == 1:
            found += [c.index for c in self.calls_for(chain)][:1]
        return min(found, default=None)

    def _answer_ids(self, chain: Chain) -> set[str]:
        """The message ids that the `start` chunks of a turn named (WIRE-210)."""
        return {
            c.body["messageId"]
            for c in self.chunks_of(chain)
            if c.body.get("type") == "start" and isinstance(c.body.get("messageId"), str)
        }


def _case(history: History) -> Case:
    if not history or history[0].kind != "case":
        raise UsageError("the history does not start with its case record")
    try:
        return msgspec.convert(history[0].payload, Case)
    except msgspec.ValidationError as error:
        raise UsageError(f"the case record of the history is broken: {error}") from None


def _operation(record: Record) -> Operation | None:
    if record.source != "run" or record.kind not in ("invoke", "ok", "fail", "info"):
        return None
    number = record.ids.get("operation")
    payload = record.payload if isinstance(record.payload, dict) else {}
    return Operation(record.index, record.kind, number if isinstance(number, int) else None, payload)
