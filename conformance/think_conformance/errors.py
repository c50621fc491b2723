"""What a user got wrong, told in one line. Sees nothing of the kit, so that every room can raise it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

KNOWN_SHOWN = 12
"""Names listed where none is near."""


class UsageError(Exception):
    """The user's input is wrong. The message is one line: what is wrong, and what to do next."""


class Unknown(UsageError):
    """A name that stands for nothing; the text says which, and what was probably meant."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown {what} `{name}`{suggest(name, known)}")


def suggest(word: str, known: Iterable[str]) -> str:
    """The tail of an error message: what was probably meant, whatever its case, else what there is."""
    choices = list(known)
    folded = {choice.casefold(): choice for choice in choices}
    near = get_close_matches(word.casefold(), folded, n=1, cutoff=0.5)
    if near:
        return f"; did you mean `{folded[near[0]]}`?"
    more = ", …" if len(choices) > KNOWN_SHOWN else ""
    return f"; known: {', '.join(choices[:KNOWN_SHOWN])}{more}" if choices else ""
