"""Names that stand for nothing, answered."""

from __future__ import annotations

from think_conformance.errors import Unknown, UsageError, suggest


def test_the_nearest_name_is_suggested_whatever_its_case() -> None:
    assert suggest("wire-85", ["WIRE-104", "WIRE-85"]) == "; did you mean `WIRE-85`?"


def test_without_a_near_name_all_are_told_up_to_a_bound() -> None:
    assert suggest("zzz", ["a", "b"]) == "; known: a, b"
    assert suggest("zzz", [f"n{i}" for i in range(13)]).endswith("n10, n11, …")
    assert suggest("zzz", []) == ""


def test_an_unknown_name_is_a_usage_error() -> None:
    assert isinstance(Unknown("defect", "x", []), UsageError)
    assert str(Unknown("defect", "slw", ["slow"])) == "unknown defect `slw`; did you mean `slow`?"
