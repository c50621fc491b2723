"""Whose words they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from think_conformance.history.content import COVER, OwnWords
from think_conformance.history.op import Record

PLAN = {
    "model": {"t1": [[{"text": "w1 "}, {"tool": "record_effect", "args": {"key": "{case}/paid"}}]]},
    "operations": [{"do": "send", "turn": "t1", "text": "Count to four."}],
    "configure": {"terminalMessage": "It's over", "maxAttempts": 6},
}


def own() -> OwnWords:
    return OwnWords([Record(0, 0.0, "run", "case", {}, {"name": "a-case-1f", "plan": PLAN})])


def test_the_words_of_the_plan_stay() -> None:
    for text in ("w1 w1 ", "Count to four.", "four. Count", "It's over", "6", "record_effect"):
        assert own().only(text) == text


def test_what_the_kit_adds_to_the_plan_stays() -> None:
    assert own().only("four. [[a-case-1f/t1]]") == "four. [[a-case-1f/t1]]"
    assert own().only("a-case-1f/paid") == "a-case-1f/paid"


def test_all_other_words_are_covered_and_their_number_shows() -> None:
    assert own().only("w1  the secret\n") == f"w1  {COVER * 3} {COVER * 6}\n"
    assert own().only("x" * 1000) == COVER * 8
    assert own().only("[[other-case/t1]] other/paid w1x") == f"{COVER * 8} {COVER * 8} {COVER * 3}"


def test_of_a_sentence_only_what_it_quotes_is_covered() -> None:
    said = """a transcript holds 'w1 "secret"' 2 times, then "isn't", then 'isn\\'t w1'"""
    shown = f"""a transcript holds 'w1 {COVER * 8}' 2 times, then "{COVER * 5}", then '{COVER * 6} w1'"""
    assert own().only_quoted(said) == shown


@given(st.text())
def test_without_a_plan_nothing_is_the_kits_own(text: str) -> None:
    for nobody in (OwnWords([]), OwnWords([Record(0, 0.0, "run", "case", {}, "odd")])):
        assert not set(nobody.only(text)) - {COVER} - {c for c in text if c.isspace()}
