"""The stored messages, in order, and what a client's list may change in them.

Owns WIRE-52, WIRE-57 and WIRE-61: the server wrote its answers, so a client's copy of one is an
echo and never a second answer. Stored messages are replaced, never changed in place. Each change
returns the journal writes that make it durable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from think_conformance.wire.chunks import settled
from think_conformance.wire.frames import Message
from think_reference.core.effects import DeleteMessage, InsertMessage, UpdateMessage, Write
from think_reference.core.repair import is_call, repaired

RESERVED = ("channel", "turnMetadata")
"""Metadata that only the server may set (WIRE-57)."""


NOTHING: Message = {"role": "assistant", "parts": []}
"""An answer that says nothing."""

SAID = ("step-start", "text", "reasoning")
"""Parts whose texts are compared as a whole."""


class Transcript:
    """The active path of the conversation."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._by_id: dict[str, Message] = {m["id"]: m for m in messages}
        self._order: list[str] = list(self._by_id)

    @property
    def messages(self) -> list[Message]:
        """All messages, first to last."""
        return [self._by_id[message_id] for message_id in self._order]

    def get(self, message_id: str | None) -> Message | None:
        """The message with this id."""
        return self._by_id.get(message_id) if message_id is not None else None

    def through(self, message_id: str | None) -> list[Message]:
        """The messages up to and including this one; all of them if it is not stored."""
        if message_id not in self._by_id:
            return self.messages
        end = self._order.index(message_id) + 1
        return [self._by_id[i] for i in self._order[:end]]

    def last_user(self) -> str | None:
        """The id of the newest user message."""
        return next((i for i in reversed(self._order) if self._by_id[i]["role"] == "user"), None)

    def conflict(self, incoming: Iterable[Message], reserved: Collection[str]) -> str | None:
        """Why these messages cannot be stored: an id that belongs to another role. `reserved`: ids
        of answers that are not stored yet."""
        roles: dict[str, str] = {}
        for message in incoming:
            message_id, role = message["id"], message["role"]
            stored = self._by_id.get(message_id)
            known = "assistant" if message_id in reserved else stored and stored["role"]
            if roles.setdefault(message_id, known or role) != role:
                return f"message id `{message_id}` belongs to another role"
        return None

    def reconcile(
        self,
        incoming: Iterable[Message],
        unanswered: Collection[str],
        reserved: Collection[str],
        streaming: Message | None = None,
    ) -> list[Write]:
        """Take a client's list: known ids are updated where they differ, unknown ones appended
        (WIRE-52). Not taken are echoes of answers: under their own id when they show less than is
        stored (or the answer still runs, `reserved`); under any id behind a user message that is
        being answered (`unanswered`), or if a stored answer, the `streaming` one or nothing at all
        covers the copy, wherever it stands: sends that overlapped may have moved it."""
        known = [*self.messages, streaming or NOTHING, NOTHING]
        answers = [m for m in known if m["role"] == "assistant"]
        writes: list[Write] = []
        user: str | None = None
        for message in map(_cleaned, incoming):
            stored = self._by_id.get(message["id"])
            if message["role"] == "user":
                user = message["id"]
            elif message["role"] == "assistant":
                if stored is not None:
                    echo = _covers(stored, message)
                else:
                    echo = user in unanswered or any(_covers(a, message) for a in answers)
                if echo or message["id"] in reserved:
                    continue
            if stored is None:
                writes.append(self._insert(len(self._order), message))
            elif stored != message:
                writes.append(self._update(message))
        return writes

    def repair(self) -> list[Write]:
        """Give every tool call that has no result an error for one (TURN-120)."""
        return [self._update(m) for m in map(repaired, self.messages) if m is not None]

    @property
    def call_ids(self) -> set[str]:
        """The ids of all tool calls."""
        return {call_id for message in self.messages for call_id in _calls(message)}

    def store_answer(self, message: Message, anchor: str | None) -> Write:
        """Store an answer behind its user message and the answers already there (WIRE-61), or
        replace the part of it that is stored."""
        if message["id"] in self._by_id:
            return self._update(message)
        return self._insert(self._behind(anchor), message)

    def drop_answers(self, anchor: str | None) -> list[Write]:
        """Take the answers of this user message off the path (WIRE-54)."""
        if anchor not in self._by_id:
            return []
        writes: list[Write] = []
        first = self._order.index(anchor) + 1
        while self._behind(anchor) > first:
            writes.append(self.drop(self._order[first]))
        return writes

    def drop(self, message_id: str) -> Write:
        """Take one message off the path."""
        place = self._order.index(message_id)
        del self._by_id[self._order.pop(place)]
        return DeleteMessage(place)

    def _behind(self, anchor: str | None) -> int:
        if anchor not in self._by_id:
            return len(self._order)
        place = self._order.index(anchor) + 1
        while place < len(self._order) and self._by_id[self._order[place]]["role"] == "assistant":
            place += 1
        return place

    def _insert(self, position: int, message: Message) -> Write:
        self._by_id[message["id"]] = message
        self._order.insert(position, message["id"])
        return InsertMessage(position, message)

    def _update(self, message: Message) -> Write:
        self._by_id[message["id"]] = message
        return UpdateMessage(message)


def text_of(message: Message) -> str:
    """All text of a message, reasoning left out."""
    return "".join(p["text"] for p in _parts(message, "text") if isinstance(p.get("text"), str))


def _covers(stored: Message, copy: Message) -> bool:
    """Whether `copy` shows nothing that `stored` lacks: an old or equal echo of it."""
    others = [
        p for p in copy["parts"] if not (isinstance(p, dict) and p.get("type") in SAID) and not is_call(p)
    ]
    return (
        text_of(stored).startswith(text_of(copy))
        and _calls(copy) <= _calls(stored)
        and all(part in stored["parts"] for part in others)
    )


def _cleaned(message: Message) -> Message:
    """A client's message as it is stored."""
    given = message.get("metadata")
    metadata = {k: v for k, v in given.items() if k not in RESERVED} if isinstance(given, dict) else {}
    if message["role"] == "user":
        metadata["channel"] = "web"
    kept = {k: v for k, v in message.items() if k != "metadata"}
    return settled({**kept, "metadata": metadata} if metadata else kept)


def _parts(message: Message, kind: str) -> list[dict[str, Any]]:
    return [p for p in message["parts"] if isinstance(p, dict) and p.get("type") == kind]


def _calls(message: Message) -> set[str]:
    ids = (p.get("toolCallId") for p in message["parts"] if isinstance(p, dict))
    return {i for i in ids if isinstance(i, str)}
