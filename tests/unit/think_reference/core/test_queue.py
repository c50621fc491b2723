"""Order of admission, and chains."""

from __future__ import annotations

from msgspec.structs import replace

from think_reference.core.queue import MAX_WAITING, Turns
from think_reference.core.turn import Turn


def turn(name: str, order: int, **more: object) -> Turn:
    return Turn(**{"id": name, "root": name, "order": order, **more})  # type: ignore[arg-type]


def test_first_come_first_served_and_a_successor_keeps_its_roots_place() -> None:
    first, second = turn("r1", 0), turn("r2", 1)
    turns = Turns([second, first])
    assert turns.next == first
    assert turns.next_order == 2
    turns.put(first.started("m"))
    assert turns.next == second
    turns.put(first.started("m").ended("recovering"))
    successor = turn("s1", 0, root="r1", run=1)
    turns.put(successor)
    assert turns.waiting == [successor, second]
    assert turns.newest_run(first) == successor


def test_a_chain_loaded_in_any_order_knows_its_last_run() -> None:
    runs = [turn("r", 0), turn("s1", 0, root="r", run=1), turn("s2", 0, root="r", run=2)]
    for order in (runs, runs[::-1]):
        assert Turns(order).newest_run(runs[0]).id == "s2"


def test_ended_turns_stay_known() -> None:
    first = turn("r1", 0)
    turns = Turns([first])
    assert turns.unended() == [first]
    turns.put(first.ended("aborted"))
    assert turns.unended() == []
    assert turns.next is None
    assert "r1" in turns
    assert turns.next_order == 1


def test_the_queue_is_bounded() -> None:
    turns = Turns(turn(f"r{n}", n) for n in range(MAX_WAITING - 1))
    assert not turns.full
    turns.put(turn("last", MAX_WAITING))
    assert turns.full
    turns.put(replace(turns["last"], state="running"))
    assert not turns.full
