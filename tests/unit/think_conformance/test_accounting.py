"""The account of a run adds up at every moment."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from think_conformance.accounting import CUT_SHORT, Account, Accounting, added, scored
from think_conformance.checkers.base import Verdict

CASES = [f"c{n}" for n in range(6)]
STEPS = st.lists(st.tuples(st.sampled_from(CASES), st.sampled_from([None, "needs: model", "time"])))


@given(STEPS)
def test_what_was_selected_ran_or_stands_under_a_reason(steps: list[tuple[str, str | None]]) -> None:
    account = Account(10, CASES)
    for case, reason in steps:
        if reason is None:
            account.ran(case)
        else:
            account.left(case, reason)
    found = account.so_far
    left = [case for cases in found.not_run.values() for case in cases]
    assert (found.total, found.selected) == (10, len(CASES))
    assert found.ran + len(left) == found.selected
    assert len(set(left)) == len(left)
    last = dict(steps)
    assert found.not_run.get(CUT_SHORT, []) == [case for case in CASES if case not in last]
    assert set(left) == {case for case in CASES if last.get(case, CUT_SHORT) is not None}


def test_shares_add_up_to_the_whole() -> None:
    one = Accounting(total=9, selected=3, ran=1, not_run={"needs: model": ["a"], "time": ["b"]})
    two = Accounting(total=9, selected=2, ran=1, not_run={"time": ["c"]})
    assert added([one, two]) == Accounting(
        total=9, selected=5, ran=2, not_run={"needs: model": ["a"], "time": ["b", "c"]}
    )


def test_what_is_out_of_reach_is_not_cut_off() -> None:
    account = Accounting(total=9, selected=3, ran=0, not_run={"needs: model": ["a"], CUT_SHORT: ["b", "c"]})
    assert account.reasons == {"a": "needs: model", "b": CUT_SHORT, "c": CUT_SHORT}
    assert account.cut_off == ["b", "c"]


def test_only_what_a_revision_holds_is_scored() -> None:
    old, new = Verdict("WIRE-85", "c", "passed"), Verdict("X-1", "c", "failed")
    assert scored([old, new], None) == [old, new]
    assert scored([old, new], 1) == [old]
