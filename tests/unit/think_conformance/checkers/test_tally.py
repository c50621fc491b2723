"""What the histories of a run come to together."""

from __future__ import annotations

import msgspec

from histories import Story, plain_turn
from think_conformance.catalogue.model import requirements
from think_conformance.checkers.base import judge
from think_conformance.checkers.tally import Tally
from think_conformance.history.op import History, Record


def history(case: str = "x") -> History:
    story = Story()
    plain_turn(story, [story.open("a")])
    head = msgspec.structs.replace(story.history[0], payload={**story.history[0].payload, "case": case})
    return [head, *story.history[1:]]


def test_a_case_is_judged_as_by_itself() -> None:
    tally = Tally()
    assert tally.judge("x", history()) == judge(history(), requirements())
    assert tally.verdicts == judge(history(), requirements())


def test_only_the_wanted_profiles_count() -> None:
    tally = Tally(["core"])
    assert {requirements()[v.requirement].profile for v in tally.judge("x", history())} == {"core"}
    assert tally.skip("y", ["WIRE-104"], "needs: leg model") == []


def test_repeats_that_differ_are_flaky_and_change_the_exit_code() -> None:
    tally = Tally()
    tally.judge("x", history("x"))
    tally.judge("x@2", history("x@2"))
    before = tally.exit_code
    story = history("x@3")
    strike = Record(len(story), story[-1].at, "proxy", "fault-fired", {"fault": "cut"}, {"ordinal": 3})
    tally.judge("x@3", [*story, strike])
    assert (before == 1, tally.exit_code) == (False, 1)
    assert "flaky" in {v.state for v in tally.verdicts}


def test_what_was_not_played_alone_is_nothing_checked() -> None:
    tally = Tally()
    (verdict,) = tally.skip("x", ["WIRE-104"], "needs: leg model")
    assert (verdict.state, verdict.reason, tally.exit_code) == ("not-applicable", "needs: leg model", 2)
