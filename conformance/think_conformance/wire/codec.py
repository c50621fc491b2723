"""Text of a WebSocket frame <-> frame object. The only encoder and decoder, used by both sides.

Decoding never raises on what a peer sent: bad input comes back as `Unreadable`, which says what
could still be made out (WIRE-36, WIRE-51).
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from think_conformance.wire.frames import ClientFrame, Frame, ServerFrame

Why = Literal["not-json", "not-an-object", "no-type", "unknown-type", "bad-field"]


class Unreadable(msgspec.Struct, frozen=True):
    """A text that is no frame: why, and the `type` and `id` it still shows."""

    why: Why
    detail: str
    type: str | None = None
    id: str | None = None


_encoder = msgspec.json.Encoder()
_raw = msgspec.json.Decoder()
_client: msgspec.json.Decoder[ClientFrame] = msgspec.json.Decoder(ClientFrame)
_server: msgspec.json.Decoder[ServerFrame] = msgspec.json.Decoder(ServerFrame)


def _tags(union: Any) -> frozenset[str]:
    return frozenset(str(cls.__struct_config__.tag) for cls in get_args(union))


CLIENT_TYPES = _tags(ClientFrame)
SERVER_TYPES = _tags(ServerFrame)


def encode(frame: Frame) -> str:
    """The JSON text of a frame, fields in declaration order."""
    return _encoder.encode(frame).decode()


def decode_client(text: str | bytes) -> ClientFrame | Unreadable:
    """A frame that a client sent, or why it is none."""
    try:
        return _client.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return _diagnose(text, CLIENT_TYPES, error)


def decode_server(text: str | bytes) -> ServerFrame | Unreadable:
    """A frame that a server sent, or why it is none."""
    try:
        return _server.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return _diagnose(text, SERVER_TYPES, error)


def dumps(value: Any) -> str:
    """Compact JSON text of any JSON value (request bodies, stream chunks)."""
    return _encoder.encode(value).decode()


def loads(text: str | bytes) -> Any:
    """Any JSON value; raises ValueError with the reason when `text` is not JSON."""
    try:
        return _raw.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None


def _diagnose(text: str | bytes, known: frozenset[str], error: Exception) -> Unreadable:
    try:
        value = loads(text)
    except ValueError as bad:
        return Unreadable("not-json", str(bad))
    if not isinstance(value, dict):
        return Unreadable("not-an-object", f"a JSON {type(value).__name__} is no frame")
    kind, ident = value.get("type"), value.get("id")
    shown = ident if isinstance(ident, str) else None
    if not isinstance(kind, str):
        return Unreadable("no-type", "no string field `type`", id=shown)
    if kind not in known:
        return Unreadable("unknown-type", f"unknown type `{kind}`", kind, shown)
    return Unreadable("bad-field", str(error), kind, shown)
