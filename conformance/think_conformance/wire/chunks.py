"""Stream chunks: their kinds as a table, and the message that a run of them builds.

Owns section 7 of the wire protocol (WIRE-120 ... WIRE-134, WIRE-210 ... WIRE-244). Chunks and
messages are plain JSON objects: what is not understood passes through. A chunk that is malformed
changes nothing and raises nothing; `chunk_problem` says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from think_conformance.wire.codec import loads
from think_conformance.wire.frames import Json, Message

FieldType = Literal["text", "flag", "any"]
Part = dict[str, Any]

_TEXTS = ("text", "reasoning")


class ChunkKind(Struct, frozen=True):
    """One chunk type: the statement that defines it and its fields."""

    spec: str
    required: dict[str, FieldType] = {}
    optional: dict[str, FieldType] = {}


_META: dict[str, FieldType] = {"messageMetadata": "any"}
_CALL: dict[str, FieldType] = {"toolCallId": "text"}
_NAMED_CALL: dict[str, FieldType] = {"toolCallId": "text", "toolName": "text"}
_BLOCK: dict[str, FieldType] = {"id": "text"}
_DELTA: dict[str, FieldType] = {"id": "text", "delta": "text"}

KINDS: dict[str, ChunkKind] = {
    "start": ChunkKind("WIRE-210", {}, {"messageId": "text", **_META}),
    "start-step": ChunkKind("WIRE-211"),
    "text-start": ChunkKind("WIRE-212", _BLOCK),
    "text-delta": ChunkKind("WIRE-212", _DELTA),
    "text-end": ChunkKind("WIRE-212", _BLOCK),
    "reasoning-start": ChunkKind("WIRE-213", _BLOCK),
    "reasoning-delta": ChunkKind("WIRE-213", _DELTA),
    "reasoning-end": ChunkKind("WIRE-213", _BLOCK),
    "tool-input-start": ChunkKind("WIRE-214", _NAMED_CALL),
    "tool-input-delta": ChunkKind("WIRE-215", {**_CALL, "inputTextDelta": "text"}),
    # input and output may be absent: JSON has no word for JavaScript's `undefined`
    "tool-input-available": ChunkKind("WIRE-216", _NAMED_CALL, {"input": "any"}),
    "tool-input-error": ChunkKind("WIRE-217", {**_NAMED_CALL, "errorText": "text"}, {"input": "any"}),
    "tool-approval-request": ChunkKind(
        "WIRE-218", {**_CALL, "approvalId": "text"}, {"approvalDescriptor": "any"}
    ),
    "tool-output-available": ChunkKind("WIRE-219", _CALL, {"output": "any", "preliminary": "flag"}),
    "tool-output-error": ChunkKind("WIRE-220", {**_CALL, "errorText": "text"}),
    "tool-output-denied": ChunkKind("WIRE-221", _CALL),
    "source-url": ChunkKind("WIRE-222", {"sourceId": "text", "url": "text"}, {"title": "text"}),
    "source-document": ChunkKind(
        "WIRE-222", {"sourceId": "text", "mediaType": "text", "title": "text"}, {"filename": "text"}
    ),
    "file": ChunkKind("WIRE-222", {"mediaType": "text", "url": "text"}),
    "message-metadata": ChunkKind("WIRE-224", _META),
    "finish-step": ChunkKind("WIRE-225"),
    "finish": ChunkKind("WIRE-226", {}, {"finishReason": "text", **_META}),
    "abort": ChunkKind("WIRE-227"),
    "error": ChunkKind("WIRE-228", {"errorText": "text"}),
}
"""Every type the protocol names, `data-*` apart (`DATA`)."""

DATA = ChunkKind("WIRE-223", {"data": "any"}, {"id": "text", "transient": "flag"})

PENDING = frozenset({"input-streaming", "input-available", "approval-requested", "approval-responded"})
TERMINAL = frozenset({"output-available", "output-error", "output-denied"})
"""Tool states that never change again (WIRE-244, WIRE-131)."""

MAY_CHANGE: dict[str, frozenset[str]] = {
    "tool-input-available": frozenset({"input-streaming"}),
    "tool-input-error": PENDING,
    "tool-approval-request": PENDING - {"approval-responded"},
    "tool-output-available": PENDING,
    "tool-output-error": PENDING,
    "tool-output-denied": PENDING - {"approval-responded"},
}
"""Chunk type -> the tool states it may move on. In any other state it changes nothing, so that a
provider which repeats an old call never takes a part back (WIRE-216 ... WIRE-221)."""


def kind_of(chunk_type: str) -> ChunkKind | None:
    """The row of a chunk type; None for a type the protocol does not name (WIRE-120)."""
    return DATA if chunk_type.startswith("data-") else KINDS.get(chunk_type)


def chunk_problem(chunk: object) -> str | None:
    """What is wrong with a chunk, in one line; None for a good one and for an unknown type."""
    if not isinstance(chunk, dict):
        return f"a chunk is a JSON object, not a {type(chunk).__name__}"
    name = chunk.get("type")
    if not isinstance(name, str):
        return "a chunk needs a string field `type`"
    kind = kind_of(name)
    if kind is None:
        return None
    for field, wanted in kind.required.items():
        if field not in chunk:
            return f"`{name}` needs `{field}` ({kind.spec})"
        if not _fits(chunk[field], wanted):
            return f"`{field}` of `{name}` must be a {wanted} ({kind.spec})"
    for field, wanted in kind.optional.items():
        if chunk.get(field) is not None and not _fits(chunk[field], wanted):
            return f"`{field}` of `{name}` must be a {wanted} ({kind.spec})"
    return None


def settled(message: Message) -> Message:
    """The message with no text or reasoning part that claims to be streaming (WIRE-132, WIRE-134).
    The given one is not changed."""
    parts = [{**part, "state": "done"} if _is_streaming(part) else part for part in _parts_of(message)]
    return {**message, "parts": parts}


class MessageBuilder:
    """Builds one assistant message from one pass over a stream, live or replayed (WIRE-115).

    `base` is the stored message that a continuation extends: its parts are kept, its streaming
    texts are settled by the first chunk (WIRE-132), and `start` does not rename it (WIRE-210).
    JSON values inside parts are shared with the chunks and never changed.
    """

    def __init__(self, message_id: str, base: Message | None = None) -> None:
        self._id = message_id
        self._base = base
        self._parts: list[Any] = [_copied(part) for part in _parts_of(base or {})]
        self._own = len(self._parts)
        metadata = (base or {}).get("metadata")
        self._metadata: Json = dict(metadata) if isinstance(metadata, dict) else metadata
        self._begun = False
        self._blocks: dict[tuple[str, str], Part] = {}
        self._deltas: dict[int, list[str]] = {}  # by id() of the part, which _parts keeps alive
        self._raw_input: dict[str, list[str]] = {}
        self._calls: dict[str, Part] = {p["toolCallId"]: p for p in self._parts if _has_text(p, "toolCallId")}
        self._data = {(p["type"], p["id"]): p for p in self._parts if _has_text(p, "type", "id")}

    def apply(self, chunk: dict[str, Any]) -> None:
        """Take the next chunk of the stream."""
        if chunk_problem(chunk) is not None:
            return
        if not self._begun:
            self._begun = True
            for part in self._parts:
                if _is_streaming(part):
                    part["state"] = "done"
        name = chunk["type"]
        if name.startswith("data-"):
            self._on_data(chunk)
        elif name in _HANDLERS:
            _HANDLERS[name](self, chunk)

    @property
    def message(self) -> Message:
        """The message so far, as a copy that later chunks do not change."""
        built: Message = {"id": self._id, "role": "assistant", "parts": [_copied(p) for p in self._joined()]}
        if self._metadata is not None:
            built["metadata"] = dict(self._metadata) if isinstance(self._metadata, dict) else self._metadata
        return built

    @property
    def has_content(self) -> bool:
        """Whether these chunks added any part besides `step-start`."""
        return any(part["type"] != "step-start" for part in self._parts[self._own :])

    def _joined(self) -> list[Any]:
        for part in self._parts:
            if pieces := self._deltas.pop(id(part), None):
                part["text"] += "".join(pieces)
        return self._parts

    # ---- text and reasoning ------------------------------------------------------------------

    def _on_delta(self, chunk: dict[str, Any]) -> None:
        part = self._blocks.get(_block_key(chunk)) or self._open_block(chunk)
        _merge_into(part, "providerMetadata", chunk.get("providerMetadata"))
        self._deltas.setdefault(id(part), []).append(chunk["delta"])

    def _on_block_end(self, chunk: dict[str, Any]) -> None:
        part = self._blocks.pop(_block_key(chunk), None)
        if part is not None:
            _merge_into(part, "providerMetadata", chunk.get("providerMetadata"))
            part["state"] = "done"

    def _open_block(self, chunk: dict[str, Any]) -> Part:
        key = _block_key(chunk)
        part: Part = {"type": key[0], "text": "", "state": "streaming"}
        _merge_into(part, "providerMetadata", chunk.get("providerMetadata"))
        self._blocks[key] = part
        self._parts.append(part)
        return part

    # ---- tools -------------------------------------------------------------------------------

    def _on_tool_input_start(self, chunk: dict[str, Any]) -> None:
        if chunk["toolCallId"] not in self._calls:
            self._open_call(chunk, "input-streaming")

    def _on_tool_input_delta(self, chunk: dict[str, Any]) -> None:
        part = self._calls.get(chunk["toolCallId"])
        if part is not None and _state(part) == "input-streaming":
            self._raw_input.setdefault(chunk["toolCallId"], []).append(chunk["inputTextDelta"])

    def _on_tool_input_available(self, chunk: dict[str, Any]) -> None:
        call = chunk["toolCallId"]
        part = self._calls.get(call)
        if part is None:
            part = self._open_call(chunk, "input-available")
        elif self._move(chunk, "input-available") is None:
            known = "input" in part and call not in self._raw_input
            if known or _state(part) not in PENDING:
                return  # an input that someone may already have approved is never swapped
        self._raw_input.pop(call, None)
        part["input"] = as_object(chunk.get("input"))
        _pass_through(part, chunk)

    def _on_tool_input_error(self, chunk: dict[str, Any]) -> None:
        if chunk["toolCallId"] not in self._calls:
            self._open_call(chunk, "input-streaming")
        part = self._move(chunk, "output-error")
        if part is not None:
            part["input"] = as_object(chunk.get("input"))
            part["errorText"] = chunk["errorText"]
            _pass_through(part, chunk)

    def _on_tool_approval_request(self, chunk: dict[str, Any]) -> None:
        part = self._move(chunk, "approval-requested")
        if part is None:
            return
        raw = self._raw_input.get(chunk["toolCallId"])
        if raw and "input" not in part:
            part["input"] = as_object("".join(raw))  # what is approved must be in the part
        part["approval"] = {"id": chunk["approvalId"]}
        if "approvalDescriptor" in chunk:
            part["approval"]["descriptor"] = chunk["approvalDescriptor"]

    def _on_tool_output(self, chunk: dict[str, Any]) -> None:
        part = self._move(chunk, chunk["type"].removeprefix("tool-"))
        if part is not None:
            part.update({f: chunk[f] for f in ("output", "preliminary", "errorText") if f in chunk})

    def _move(self, chunk: dict[str, Any], state: str) -> Part | None:
        """The part of this call in its new state; None if the chunk may not move it."""
        part = self._calls.get(chunk["toolCallId"])
        if part is None or not _may_change(part, chunk):
            return None
        part["state"] = state
        part.pop("preliminary", None)
        return part

    def _open_call(self, chunk: dict[str, Any], state: str) -> Part:
        part: Part = {
            "type": f"tool-{chunk['toolName']}",
            "toolCallId": chunk["toolCallId"],
            "toolName": chunk["toolName"],
            "state": state,
        }
        _pass_through(part, chunk)
        self._calls[chunk["toolCallId"]] = part
        self._parts.append(part)
        return part

    # ---- everything else ---------------------------------------------------------------------

    def _on_start(self, chunk: dict[str, Any]) -> None:
        named = chunk.get("messageId")
        if self._base is None and named is not None:
            self._id = named
        self._on_metadata(chunk)

    def _on_metadata(self, chunk: dict[str, Any]) -> None:
        metadata = chunk.get("messageMetadata")
        if isinstance(metadata, dict):
            self._metadata = {**(self._metadata if isinstance(self._metadata, dict) else {}), **metadata}

    def _on_step(self, chunk: dict[str, Any]) -> None:
        self._parts.append({"type": "step-start"})

    def _on_source(self, chunk: dict[str, Any]) -> None:
        kind = KINDS[chunk["type"]]
        fields = ("type", *kind.required, *kind.optional, "providerMetadata")
        self._parts.append({f: chunk[f] for f in fields if chunk.get(f) is not None})

    def _on_data(self, chunk: dict[str, Any]) -> None:
        if chunk.get("transient"):
            return
        ident = chunk.get("id")
        part = self._data.get((chunk["type"], ident))
        if part is not None:
            part["data"] = chunk["data"]
            return
        part = {"type": chunk["type"], "data": chunk["data"]}
        if ident is not None:
            part["id"] = ident
            self._data[(chunk["type"], ident)] = part
        self._parts.append(part)


_HANDLERS: dict[str, Callable[[MessageBuilder, dict[str, Any]], object]] = {
    "start": MessageBuilder._on_start,
    "start-step": MessageBuilder._on_step,
    "text-start": MessageBuilder._open_block,
    "text-delta": MessageBuilder._on_delta,
    "text-end": MessageBuilder._on_block_end,
    "reasoning-start": MessageBuilder._open_block,
    "reasoning-delta": MessageBuilder._on_delta,
    "reasoning-end": MessageBuilder._on_block_end,
    "tool-input-start": MessageBuilder._on_tool_input_start,
    "tool-input-delta": MessageBuilder._on_tool_input_delta,
    "tool-input-available": MessageBuilder._on_tool_input_available,
    "tool-input-error": MessageBuilder._on_tool_input_error,
    "tool-approval-request": MessageBuilder._on_tool_approval_request,
    "tool-output-available": MessageBuilder._on_tool_output,
    "tool-output-error": MessageBuilder._on_tool_output,
    "tool-output-denied": MessageBuilder._on_tool_output,
    "source-url": MessageBuilder._on_source,
    "source-document": MessageBuilder._on_source,
    "file": MessageBuilder._on_source,
    "message-metadata": MessageBuilder._on_metadata,
    "finish": MessageBuilder._on_metadata,
}
"""What changes the message; `finish-step`, `abort` and `error` do not (WIRE-225, 227, 228)."""


def _fits(value: object, wanted: FieldType) -> bool:
    if wanted == "text":
        return isinstance(value, str)
    return wanted == "any" or isinstance(value, bool)


def _block_key(chunk: dict[str, Any]) -> tuple[str, str]:
    """("text" or "reasoning", block id): blocks of a stream may interleave."""
    return chunk["type"].partition("-")[0], chunk["id"]


def _may_change(part: Part, chunk: dict[str, Any]) -> bool:
    """A preliminary output is no result yet, so outputs may still follow it (WIRE-219)."""
    if part.get("preliminary") is True and chunk["type"].startswith("tool-output-"):
        return True
    return _state(part) in MAY_CHANGE[chunk["type"]]


def _state(part: Part) -> str:
    state = part.get("state")
    return state if isinstance(state, str) else ""


def as_object(value: Json) -> dict[str, Any]:
    """A tool input as the object that providers demand: itself, or parsed from text, or {}."""
    if isinstance(value, str):
        try:
            value = loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _pass_through(part: Part, chunk: dict[str, Any]) -> None:
    for field, name in (
        ("providerExecuted", "providerExecuted"),
        ("providerMetadata", "callProviderMetadata"),
        ("title", "title"),
    ):
        if chunk.get(field) is not None:
            part[name] = chunk[field]


def _merge_into(part: Part, field: str, value: Json) -> None:
    if isinstance(value, dict):
        part[field] = {**part.get(field, {}), **value}


def _parts_of(message: Message) -> list[Any]:
    parts = message.get("parts")
    return parts if isinstance(parts, list) else []


def _copied(part: Any) -> Any:
    return dict(part) if isinstance(part, dict) else part


def _has_text(part: Any, *fields: str) -> bool:
    return isinstance(part, dict) and all(isinstance(part.get(f), str) for f in fields)


def _is_streaming(part: Any) -> bool:
    return isinstance(part, dict) and part.get("state") == "streaming" and part.get("type") in _TEXTS
