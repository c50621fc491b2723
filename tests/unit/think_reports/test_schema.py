"""The published schema is that of the report of today."""

from __future__ import annotations

from importlib.resources import files

from think_reports.schema import schema


def test_the_published_schema_is_fresh() -> None:
    published = files("think_reports.schema").joinpath("results.json").read_text()
    assert published == schema(), "run `python -m think_reports.schema`"
