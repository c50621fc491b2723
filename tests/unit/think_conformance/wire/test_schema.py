"""The published schemas are those of the frames of today."""

from __future__ import annotations

from importlib.resources import files

import pytest

from think_conformance.wire.schema import TITLES, schema


@pytest.mark.parametrize("side", TITLES)
def test_the_published_schema_is_fresh(side: str) -> None:
    published = files("think_conformance.wire.schema").joinpath(f"{side}.json").read_text()
    assert published == schema(side), "run `python -m think_conformance.wire.schema`"
