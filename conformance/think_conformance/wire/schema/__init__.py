"""JSON schemas of what a client and what a server may send, for readers in any language.

Made from `wire.frames` by `python -m think_conformance.wire.schema`, published beside this file. They say
what one frame looks like; which frame may follow which is the business of `wire.session`.
"""

from __future__ import annotations

import msgspec

from think_conformance.wire.frames import ClientFrame, ServerFrame

TITLES = {"client": "A frame that a client may send", "server": "A frame that a server may send"}


def schema(side: str) -> str:
    """The text of `<side>.json`, side being `client` or `server`."""
    frame = {"client": ClientFrame, "server": ServerFrame}[side]
    made = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": TITLES[side],
        **msgspec.json.schema(frame),
    }
    return msgspec.json.format(msgspec.json.encode(made), indent=2).decode() + "\n"
