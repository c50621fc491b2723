"""Text of a target as text that only shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from think_conformance.history.plain import LIMIT, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("wörld 🌍 a b", "wörld 🌍 a b"),
        ("\x1b[31m", r"\x1b[31m"),
        ("a\nb\tc\x00", r"a\nb\tc\x00"),
        ("\u202ex", r"\u202ex"),
        ("\ud83d", r"\ud83d"),
        ("\u00a0\u2028", r"\xa0\u2028"),
    ],
)
def test_what_does_not_print_is_escaped(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_long_text_is_cut() -> None:
    assert plain("x" * (LIMIT + 1)) == "x" * (LIMIT - 1) + "…"
    assert plain("x" * LIMIT) == "x" * LIMIT
    assert plain("abcd", 3) == "ab…"
    assert len(plain("\x00" * LIMIT)) == LIMIT


@given(st.text(st.characters()))
def test_plain_text_prints_stays_and_encodes(text: str) -> None:
    once = plain(text)
    assert once.isprintable()
    assert plain(once) == once
    assert len(once) <= LIMIT
    once.encode()
