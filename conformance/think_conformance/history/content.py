"""Which text in a history is the kit's own. The kit scripts all content of a case: what users say, what the
model answers, what tools are given. Words from anywhere else are somebody's content; where a history
is shown they are covered. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from think_conformance.history.op import History

COVER = "▒"

_WORD = re.compile(r"\S+")
_QUOTED = re.compile(r"""(['"])((?:\\.|(?!\1)[^\\])*)\1""")


class OwnWords:
    """The words that the kit wrote into one case: those of its plan, the agent's name, the markers."""

    def __init__(self, history: History) -> None:
        head = history[0].payload if history and history[0].kind == "case" else None
        told: dict[str, Any] = head if isinstance(head, dict) else {}
        self._words = {word for text in _texts(told.get("plan")) for word in text.split()}
        self._case = str(told.get("name", ""))

    def only(self, text: str) -> str:
        """`text` with every word that is not the kit's covered; blanks and the number of words stay."""
        return _WORD.sub(lambda found: self._shown(found[0]), text)

    def only_quoted(self, sentence: str) -> str:
        """A sentence of the kit, with what it quotes treated likewise."""
        return _QUOTED.sub(lambda found: f"{found[1]}{self.only(found[2])}{found[1]}", sentence)

    def _shown(self, word: str) -> str:
        marker = self._case and word.startswith(f"[[{self._case}/") and word.endswith("]]")
        key = self._case and word.startswith(f"{self._case}/") and f"{{case}}/{word[len(self._case) + 1 :]}"
        if word in self._words or word == self._case or key in self._words or marker:
            return word
        return COVER * min(len(word), 8)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bool | int | float):
        yield str(value)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield str(name)
            yield from _texts(item)
