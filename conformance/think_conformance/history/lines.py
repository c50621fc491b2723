"""One record of a history as one short line that a person can read. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from think_conformance.history.content import OwnWords
from think_conformance.history.op import Record
from think_conformance.history.plain import plain

LINE = 400
"""Characters of one line."""

_TEXT, _REASON, _CONTENT, _ITEMS, _DEPTH = 60, 200, 1000, 6, 8
_NAMES = ("connection", "operation", "marker", "call", "gate", "fault")

_STEERING = frozenset(
    [
        "type",
        "id",
        "done",
        "outcome",
        "seq",
        "replay",
        "replayComplete",
        "continuation",
        "messageId",
        "messageIds",
        "probeId",
        "connect",
        "recovering",
        "role",
        "state",
        "trigger",
        "method",
        "success",
        "toolCallId",
        "toolName",
        "approvalId",
        "approved",
        "autoContinue",
        "finishReason",
        "reason",
        "agent",
        "name",
        "do",
        "did",
        "request",
        "turn",
        "gate",
        "code",
        "by",
        "how",
        "phase",
        "action",
        "pid",
        "size",
        "sha256",
        "leg",
        "direction",
        "ordinal",
        "offset",
        "exchange",
        "record",
        "status",
        "connection",
        "client",
        "epoch",
        "call",
        "binary",
        "truncated",
    ]
)
"""Fields with names and numbers of the protocol or of the kit: one word is shown as it is."""

_STRUCTURE = frozenset(
    [
        "messages",
        "message",
        "parts",
        "content",
        "init",
        "body",
        "approval",
        "frame",
        "when",
        "after",
        "seen",
        "json",
        "nested",
        "do",
    ]
)
"""Fields with more fields inside. All else is content, and so is text or structure where it is not due."""


def line(record: Record, began: float, own: OwnWords) -> str:
    """`#41 +0.532 s  client b.1 frame-in {…}`: index, seconds since `began`, who, what. Content that is
    not the kit's own is covered."""
    names = [str(record.ids[name]) for name in _NAMES if name in record.ids]
    payload = record.payload
    if isinstance(payload, dict) and isinstance(payload.get("frame"), dict):
        payload = payload["frame"]
    shown = (
        ""
        if payload in (None, {})
        else _json(_Brief(own, by_run=record.source == "run").fields(payload, _DEPTH))
    )
    words = [record.source, *names, record.kind, shown]
    return plain(f"#{record.index} +{record.at - began:.3f} s  {' '.join(w for w in words if w)}", LINE)


class _Brief:
    """Values with long texts, long lists and deep nesting cut, so that both ends of them show. What is
    content only shows the kit's own words; what the run says of itself is not content."""

    def __init__(self, own: OwnWords, *, by_run: bool) -> None:
        self._own = own
        self._by_run = by_run

    def fields(self, value: Any, depth: int) -> Any:
        """A value whose fields are known by name."""
        if not isinstance(value, dict):
            return self._content(value, depth)
        kept = list(value)[: 2 * _ITEMS]
        return {plain(name, _TEXT): self._field(name, value[name], depth - 1) for name in kept}

    def _field(self, name: str, value: Any, depth: int) -> Any:
        if depth == 0:
            return "…"
        if isinstance(value, list):
            return [self._field(name, item, depth - 1) for item in value[:_ITEMS]] + _left_out(value)
        if name == "body":
            value = _opened(value)
        if isinstance(value, dict):
            return self.fields(value, depth) if name in _STRUCTURE else self._content(value, depth)
        if isinstance(value, str):
            return self._text(name, value)
        return value if name in _STEERING else self._content(value, depth)

    def _text(self, name: str, text: str) -> str:
        if name == "reason" and self._by_run:
            return plain(self._own.only_quoted(text[:_CONTENT]), _REASON)
        one_word = not any(c.isspace() for c in text)
        return plain(text, _TEXT) if name in _STEERING and one_word else self._covered(text)

    def _content(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if depth == 0:
            return "…"
        if isinstance(value, list):
            return [self._content(item, depth - 1) for item in value[:_ITEMS]] + _left_out(value)
        if isinstance(value, dict):
            kept = list(value)[: 2 * _ITEMS]
            return {self._covered(name): self._content(value[name], depth - 1) for name in kept}
        shown = self._covered(str(value))
        return value if shown == str(value) else shown

    def _covered(self, text: str) -> str:
        return plain(self._own.only(text[:_CONTENT]), _TEXT)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _left_out(items: list[Any]) -> list[str]:
    return [f"… {len(items) - _ITEMS} more"] if len(items) > _ITEMS else []


def _opened(body: Any) -> Any:
    """The JSON in a body that holds some; a body may also be plain text."""
    if not isinstance(body, str) or not body.startswith("{"):
        return body
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return body
