"""The byte vectors against codec and schema, each in every direction it speaks of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_type_hints

import jsonschema
import msgspec
import pytest

from think_conformance.wire import frames
from think_conformance.wire.codec import (
    CLIENT_TYPES,
    SERVER_TYPES,
    Unreadable,
    decode_client,
    decode_server,
    encode,
)
from think_conformance.wire.schema import schema

HERE = Path(__file__).parent
DECODE = {"client": decode_client, "server": decode_server}
TYPES = {"client": CLIENT_TYPES, "server": SERVER_TYPES}
SCHEMA = {side: jsonschema.Draft202012Validator(json.loads(schema(side))) for side in DECODE}

Vector = dict[str, Any]


def vectors(name: str, **more: str) -> list[Vector]:
    found: list[Vector] = json.loads((HERE / f"{name}.json").read_text())
    return [{**more, **vector} for vector in found]


EXACT = vectors("client", side="client") + vectors("server", side="server")
READING = vectors("reading")
UNREADABLE = vectors("unreadable")


def meaning(vector: Vector) -> frames.Frame:
    cls = getattr(frames, vector["frame"])
    hints = get_type_hints(cls)
    frame: frames.Frame = cls(**{k: msgspec.convert(v, hints[k]) for k, v in vector["fields"].items()})
    return frame


def title(vector: Vector) -> str:
    return f"{vector['side']}-{vector['name']}"


@pytest.mark.parametrize("vector", EXACT + READING, ids=title)
def test_the_text_means_the_frame(vector: Vector) -> None:
    assert DECODE[vector["side"]](vector["text"]) == meaning(vector)
    assert DECODE[vector["side"]](vector["text"].encode()) == meaning(vector)


@pytest.mark.parametrize("vector", EXACT, ids=title)
def test_the_frame_is_written_as_the_text(vector: Vector) -> None:
    assert encode(meaning(vector)) == vector["text"]


@pytest.mark.parametrize("vector", EXACT + READING, ids=title)
def test_the_text_satisfies_the_schema(vector: Vector) -> None:
    SCHEMA[vector["side"]].validate(json.loads(vector["text"]))


@pytest.mark.parametrize("vector", UNREADABLE, ids=title)
def test_what_is_no_frame_is_told_apart(vector: Vector) -> None:
    text = bytes.fromhex(vector["hex"]) if "hex" in vector else vector["text"]
    got = DECODE[vector["side"]](text)
    assert isinstance(got, Unreadable)
    assert (got.why, got.type, got.id) == (vector["why"], vector.get("type"), vector.get("id"))
    assert got.detail


@pytest.mark.parametrize("vector", [v for v in UNREADABLE if v["why"] != "not-json"], ids=title)
def test_the_schema_refuses_it_too(vector: Vector) -> None:
    assert not SCHEMA[vector["side"]].is_valid(json.loads(vector["text"]))


@pytest.mark.parametrize("side", DECODE)
def test_every_type_has_a_vector(side: str) -> None:
    assert {json.loads(v["text"])["type"] for v in EXACT if v["side"] == side} == TYPES[side]


@pytest.mark.parametrize("side", DECODE)
def test_every_frame_field_is_shown_by_a_vector(side: str) -> None:
    shown = {(v["frame"], field) for v in EXACT if v["side"] == side for field in v["fields"]}
    union = {"client": frames.ClientFrame, "server": frames.ServerFrame}[side]
    wanted = {(cls.__name__, field) for cls in union.__args__ for field in cls.__struct_fields__}
    # a client's transcript is never the copy for a newcomer
    assert wanted - shown - {("ChatMessages", "connect")} == set()
