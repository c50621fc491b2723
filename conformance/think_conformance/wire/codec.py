"""Text of a WebSocket frame <-> frame object. The only encoder and decoder, used by both sides.

Decoding never raises on what a peer sent: bad input comes back as `Unreadable`, which says what
could still be made out (WIRE-36, WIRE-51).

JavaScript writes half a surrogate pair where a delta splits an emoji. The fast library refuses that, so
what it refuses is tried once more with the standard one, in both directions.
"""

from __future__ import annotations

import json
from math import isfinite
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


_REFUSED = (msgspec.MsgspecError, UnicodeError, RecursionError)

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
    return dumps(frame)


def decode_client(text: str | bytes) -> ClientFrame | Unreadable:
    """A frame that a client sent, or why it is none."""
    try:
        return _client.decode(text)
    except _REFUSED as error:
        again: ClientFrame | Unreadable = _again(text, ClientFrame, CLIENT_TYPES, error)
        return again


def decode_server(text: str | bytes) -> ServerFrame | Unreadable:
    """A frame that a server sent, or why it is none."""
    try:
        return _server.decode(text)
    except _REFUSED as error:
        again: ServerFrame | Unreadable = _again(text, ServerFrame, SERVER_TYPES, error)
        return again


def dumps(value: Any) -> str:
    """Compact JSON text of any JSON value (request bodies, stream chunks) or frame."""
    try:
        return _encoder.encode(value).decode()
    except UnicodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":"), allow_nan=False)


def loads(text: str | bytes) -> Any:
    """Any JSON value; raises ValueError with the reason when `text` is not JSON."""
    try:
        return _raw.decode(text)
    except _REFUSED as error:
        refused = error
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        raise ValueError(f"not JSON: {refused}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError(f"{digits} is beyond all numbers")
    return number


def _again(text: str | bytes, union: Any, known: frozenset[str], error: Exception) -> Any:
    try:
        return msgspec.convert(loads(text), union)
    except ValueError:
        return _diagnose(text, known, error)


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
