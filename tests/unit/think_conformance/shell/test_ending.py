"""Which of several errors decides."""

from __future__ import annotations

from itertools import permutations

from think_conformance.errors import UsageError
from think_conformance.shell.ending import code_of, gravest
from think_conformance.shell.process import TargetNotReady


def test_the_gravest_of_several_errors_decides_in_whatever_order_they_come() -> None:
    broken, wrong, dead = ValueError("a bug"), UsageError("port taken"), TargetNotReady("exited")
    for order in permutations([broken, wrong, dead]):
        assert gravest(order) is broken
    for two in permutations([wrong, dead]):
        assert gravest(two) is wrong
    assert (
        code_of(gravest([dead, ExceptionGroup("inside", [wrong, ExceptionGroup("deeper", [broken])])])) == 3
    )
