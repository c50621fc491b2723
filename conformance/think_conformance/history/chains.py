"""Turns as chains of request ids, and what was told of their outcome (WIRE-207, WIRE-86, WIRE-87).

A chain's root is the request id a client sent. An id nobody sent continues the latest unfinished
chain with equal `messageIds`; where a build sends none, the one unfinished chain, if that was
interrupted or told `recovering`. An id that may belong to several is joined to none of them, and all
are marked `ambiguous`: what was told of them is certain, that nothing else was told is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from think_conformance.history.streams import message_text
from think_conformance.history.traffic import Connection, Passed
from think_conformance.wire.codec import loads
from think_conformance.wire.frames import (
    CancelRequest,
    ChatRequest,
    ChatResponse,
    Message,
    Outcome,
    StreamPending,
    StreamResuming,
)

MAX_IDS = 1000
"""More request ids than this in one case are noise of a hostile target; the rest claim nothing."""

_MARKER = re.compile(r"\[\[([^\[\]]{1,400})\]\]")


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked for under one id: its trailing run of user messages (WIRE-60) and the
    marker in them. `valid` False: nothing may be run for it (WIRE-50)."""

    id: str
    index: int
    messages: list[Message]
    valid: bool
    regenerate: bool
    marker: str | None

    @property
    def message_ids(self) -> list[str]:
        return [str(m.get("id")) for m in self.messages]


@dataclass(frozen=True, slots=True)
class Terminal:
    """One frame that ends a request. `kind` None: it claims nothing. `done` False: the error text
    of shape A, which its terminal still follows (WIRE-89)."""

    index: int
    connection: str
    epoch: int
    request: str
    kind: Outcome | None
    replay: bool
    done: bool

    @property
    def final(self) -> bool:
        return self.kind not in (None, "recovering")


@dataclass(slots=True)
class Chain:
    """One turn. `ids` in order of appearance; `first` the record that first named it; `sightings`
    the records in which the target named it; `cleared` the first clear of the chat after it began."""

    root: str
    first: int
    request: Request | None = None
    ids: list[str] = field(default_factory=list)
    message_ids: list[list[str]] = field(default_factory=list)
    terminals: list[Terminal] = field(default_factory=list)
    sightings: list[int] = field(default_factory=list)
    cancels: list[Passed] = field(default_factory=list)
    cleared: int | None = None
    accepted: int | None = None
    ambiguous: bool = False

    @property
    def marker(self) -> str | None:
        return self.request.marker if self.request else None

    @property
    def finals(self) -> dict[Outcome, int]:
        """Each final outcome that was told, with the first record that told it."""
        found: dict[Outcome, int] = {}
        for terminal in self.terminals:
            if terminal.kind is not None and terminal.final:
                found.setdefault(terminal.kind, terminal.index)
        return found

    @property
    def ended(self) -> int | None:
        """The first record that told a final outcome."""
        return min(self.finals.values(), default=None)

    def open_at(self, index: int) -> bool:
        """Whether it had begun and no final outcome had been told before that record."""
        return self.first < index and (self.ended is None or self.ended >= index)


def chains_of(connections: Iterable[Connection], deaths: list[int]) -> list[Chain]:
    """Every chain, in order of appearance."""
    by_name = {connection.name: connection for connection in connections}
    passed = sorted((p for c in by_name.values() for p in c.frames), key=lambda p: p.index)
    requests = _requests(passed)
    named = _Named(passed, by_name)
    firsts = {ident: request.index for ident, request in requests.items()}
    for ident, indexes in named.sightings.items():
        firsts[ident] = min(firsts.get(ident, indexes[0]), indexes[0])
    chains: list[Chain] = []
    of: dict[str, Chain] = {}
    for ident, first in sorted(firsts.items(), key=lambda item: item[1])[:MAX_IDS]:
        chain, ambiguous = None, False
        if ident not in requests:
            chain, ambiguous = _continued(chains, named, ident, first, deaths)
        if chain is None:
            chain = Chain(ident, first, requests.get(ident), ambiguous=ambiguous)
            if chain.request and chain.request.messages:
                chain.message_ids.append(chain.request.message_ids)
            chains.append(chain)
        of[ident] = chain
        chain.ids.append(ident)
        chain.sightings += named.sightings.get(ident, [])
        chain.terminals = sorted(chain.terminals + named.terminals.get(ident, []), key=lambda t: t.index)
        if named.message_ids.get(ident):
            chain.message_ids.append(named.message_ids[ident])
    for one in passed:
        if one.sent and isinstance(one.frame, CancelRequest) and one.frame.id in of:
            of[one.frame.id].cancels.append(one)
    return chains


def _continued(
    chains: list[Chain], named: _Named, ident: str, first: int, deaths: list[int]
) -> tuple[Chain | None, bool]:
    """The chain that an id nobody sent certainly belongs to, else None; and whether it may belong to
    one all the same. Those it may belong to are marked."""
    unfinished = [c for c in chains if c.open_at(first)]
    told = named.message_ids.get(ident)
    if told:
        same = [c for c in chains if told in c.message_ids]
        candidates = fitting = [c for c in same if c in unfinished] or same[-1:]
        certain = len(candidates) < 2
    elif named.message_ids and any(t.kind for t in named.terminals.get(ident, [])):
        return None, False  # where turns name their messages, the target's own have none (WIRE-88)
    else:
        candidates = unfinished
        fitting = [c for c in candidates if _interrupted(c, first, deaths)]
        certain = len(candidates) == len(fitting) == 1 and bool(fitting[0].sightings)
    for chain in candidates:
        chain.ambiguous |= not certain
    return (fitting[-1] if certain and fitting else None), not certain


def _interrupted(chain: Chain, index: int, deaths: list[int]) -> bool:
    return any(chain.first < death < index for death in deaths) or any(
        t.kind == "recovering" for t in chain.terminals
    )


class _Named:
    """What the target said of each request id: where it was named, its terminals, its messageIds."""

    def __init__(self, passed: list[Passed], connections: dict[str, Connection]) -> None:
        self.sightings: dict[str, list[int]] = {}
        self.terminals: dict[str, list[Terminal]] = {}
        self.message_ids: dict[str, list[str]] = {}
        failed: dict[str, dict[str, int]] = {}  # request -> connection -> its first error frame
        for one in passed:
            if isinstance(one.frame, ChatResponse) and one.frame.error:
                failed.setdefault(one.frame.id, {}).setdefault(one.connection, one.index)
        for one in passed:
            frame = one.frame
            if isinstance(frame, ChatResponse):
                self._response(one, frame, failed.get(frame.id, {}), connections[one.connection].epoch)
            elif isinstance(frame, (StreamResuming, StreamPending)) and frame.id:
                self.sightings.setdefault(frame.id, []).append(one.index)

    def _response(self, one: Passed, frame: ChatResponse, failed: dict[str, int], epoch: int) -> None:
        kind: Outcome | None = None
        if frame.done or frame.error:
            kind = _kind(frame, one, failed)
            self.terminals.setdefault(frame.id, []).append(
                Terminal(one.index, one.connection, epoch, frame.id, kind, frame.replay, frame.done)
            )
        if kind is not None or not frame.done:
            self.sightings.setdefault(frame.id, []).append(one.index)
        if frame.message_ids:
            self.message_ids.setdefault(frame.id, frame.message_ids)


def _kind(frame: ChatResponse, one: Passed, failed: dict[str, int]) -> Outcome | None:
    """WIRE-87. An error counts when it came earlier on the same connection or at all on another:
    between connections there is no order."""
    if frame.outcome is not None:
        return frame.outcome
    if frame.error:
        return "error"
    if frame.replay and not frame.message_ids:
        return None
    if any(name != one.connection or index < one.index for name, index in failed.items()):
        return "error"
    return "completed"


def _requests(passed: list[Passed]) -> dict[str, Request]:
    found: dict[str, Request] = {}
    for one in passed:
        if isinstance(one.frame, ChatRequest) and one.frame.id not in found:
            found[one.frame.id] = _request(one.frame, one.index)
    return found


def _request(frame: ChatRequest, index: int) -> Request:
    body: Any = None
    if frame.init.method == "POST" and frame.init.body is not None:
        try:
            body = loads(frame.init.body)
        except ValueError:
            body = None
    listed = body.get("messages") if isinstance(body, dict) else None
    messages: list[Message] = []
    for message in reversed(listed if isinstance(listed, list) else []):
        if not isinstance(message, dict) or message.get("role") != "user":
            break
        messages.insert(0, message)
    markers = [m for message in messages for m in _MARKER.findall(message_text(message))]
    return Request(
        id=frame.id,
        index=index,
        messages=messages,
        valid=isinstance(listed, list),
        regenerate=isinstance(body, dict) and body.get("trigger") == "regenerate-message",
        marker=markers[-1] if markers else None,
    )
