"""Binding names in URLs (WIRE-11)."""

from __future__ import annotations

import re


def kebab(binding: str) -> str:
    """`MyAgent` and `MY_AGENT` are both `my-agent`."""
    if binding == binding.upper():
        spaced = binding.lower()
    else:
        spaced = re.sub(r"[A-Z]", lambda capital: "-" + capital[0].lower(), binding)
    return spaced.replace("_", "-").strip("-")
