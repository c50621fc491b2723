"""The JSON schema of `results.json`, for readers in any language.

Made from `think_reports.model` by `python -m think_reports.schema`, published beside this file. A change
that breaks readers takes a new number in the field `schema`.
"""

from __future__ import annotations

import msgspec

from think_reports.model import RunReport


def schema() -> str:
    """The text of `results.json` in this folder."""
    made = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The results of a run of think-conformance",
        **msgspec.json.schema(RunReport),
    }
    return msgspec.json.format(msgspec.json.encode(made), indent=2).decode() + "\n"
