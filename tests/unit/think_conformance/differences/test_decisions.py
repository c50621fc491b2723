"""The file of decisions, and how rows are held against it."""

from __future__ import annotations

import pytest

from think_conformance.differences.decisions import Decision, decide, load
from think_conformance.differences.rows import Comparison, Example, Row
from think_conformance.errors import UsageError

HEAD = 'version = 1\na = "x"\nb = "y"\n[[decision]]\n'
GOOD = 'row = "frames: p / q"\nspec = ["WIRE-1"]\nwhy = "so it is"\n'


def row(a: str, b: str, *cases: str) -> Row:
    return Row("frames", a, b, cases, Example(cases[0]))


def comparison(*rows: Row) -> Comparison:
    return Comparison(rows, 1, 1)


def decision(**given: object) -> Decision:
    return Decision(spec=["WIRE-1"], why="so it is", **given)  # type: ignore[arg-type]


def test_a_row_is_decided_by_the_first_decision_that_is_of_it() -> None:
    first, second = decision(row="frames: p / q"), decision(match="frames: *")
    p, r = row("p", "q", "one"), row("r", "q", "one")
    decided = decide(comparison(p, r), [first, second])
    assert decided.rows == ((p, first), (r, second))
    assert (decided.open, decided.stale) == (0, ())


def test_a_row_that_nothing_decides_is_open() -> None:
    decided = decide(comparison(row("p", "q", "one")), [decision(row="frames: p / r")])
    assert decided.open == 1


def test_a_star_stands_for_anything_and_all_else_for_itself() -> None:
    assert decision(match="*: p / *").fits(row("p", "q", "one"))
    assert not decision(match="frames: . / q").fits(row("p", "q", "one"))
    assert not decision(row="frames: * / q").fits(row("p", "q", "one"))


def test_a_decision_for_some_cases_is_none_for_a_row_that_shows_elsewhere_too() -> None:
    known = decision(match="*", case="core.*")
    assert known.fits(row("p", "q", "core.one", "core.two"))
    assert not known.fits(row("p", "q", "core.one", "resume.two"))


def test_a_decision_that_no_row_needs_is_stale_unless_it_is_racy() -> None:
    needed, shadowed = decision(match="*"), decision(row="frames: p / q")
    gone, racy = decision(row="frames: gone / q"), decision(row="frames: some / times", racy=True)
    decided = decide(comparison(row("p", "q", "one")), [needed, shadowed, gone, racy])
    assert decided.stale == (shadowed, gone)


def test_a_file_is_read() -> None:
    found = load(HEAD + GOOD + 'case = "core.*"\nracy = true\n', "d.toml")
    assert (found.a, found.b) == ("x", "y")
    assert found.decision == [decision(row="frames: p / q", case="core.*", racy=True)]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("version = ", "Invalid value"),
        ("version = 2\n" + HEAD.removeprefix("version = 1\n") + GOOD, "`version` is not 1"),
        (HEAD + GOOD + 'reason = "x"\n', "reason"),
        (HEAD + 'spec = ["WIRE-1"]\nwhy = "x"\n', "either `row` or `match`"),
        (HEAD + GOOD + 'match = "*"\n', "either `row` or `match`"),
        (HEAD + GOOD.replace("so it is", " "), "`why` is empty"),
        (HEAD + GOOD.replace("WIRE-1", "wire 1"), "`wire 1` in `spec` is no id"),
        (HEAD + GOOD.replace('"WIRE-1"', ""), "`spec` names no statement"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line_with_its_name(text: str, wrong: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(text, "d.toml")
    assert str(caught.value).startswith("d.toml: ")
    assert wrong in str(caught.value)
    assert "\n" not in str(caught.value)
