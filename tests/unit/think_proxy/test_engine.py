from __future__ import annotations

from typing import Any

import pytest

from proxy_rig import faults
from think_proxy.engine import Carrier, Engine, Unsupported, Watch
from think_proxy.match import Connection, Exchange, Message
from think_proxy.plan import Direction

CARRIER = Carrier(
    "test carrier",
    "client",
    frozenset({"client", "connection", "direction", "json", "nth", "probability"}),
    {
        "cut.reset": frozenset({"up", "down"}),
        "refuse": frozenset({"opening"}),
        "stall": frozenset({"opening", "up", "down"}),
        "status": frozenset({"up"}),
    },
)
SCOPE = "/agents/x/one"
CUT = [{"cut": "reset"}]


def engine(*rows: dict[str, Any], seed: int = 0) -> Engine:
    made = Engine(CARRIER, seed)
    made.arm(faults(*({"do": CUT, **row} for row in rows)), SCOPE)
    return made


def on(made: Engine, target: str = SCOPE) -> Watch:
    """The watch of a new connection."""
    return made.watch(Connection(target))


def opening(watch: Watch) -> str | None:
    """The token that the opening of the connection sets off."""
    firing = watch.decide("up", Message(b"GET", None, 0, 0))
    return firing and firing.token


def feed(watch: Watch, texts: list[str], direction: Direction = "down") -> list[str | None]:
    """The token each message sets off."""
    firings = [
        watch.decide(direction, Message(b"", text.encode(), ordinal, 0))
        for ordinal, text in enumerate(texts, 1)
    ]
    return [firing and firing.token for firing in firings]


DELTA, OTHER = '{"type":"delta"}', '{"type":"other"}'
JSON = {"json": {"type": "delta"}}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"when": {}}, ["f#1", None, None, None]),
        ({"when": {"nth": 2}}, [None, "f#1", None, None]),
        ({"when": {**JSON, "nth": 2}}, [None, None, "f#1", None]),
        ({"when": JSON, "times": 2}, ["f#1", None, "f#2", None]),
        ({"when": JSON, "times": 9}, ["f#1", None, "f#2", "f#3"]),
        ({"when": {"direction": "down"}}, ["f#1", None, None, None]),
        ({"when": {"direction": "up"}}, [None, None, None, None]),
        ({"when": {"client": "a"}}, ["f#1", None, None, None]),
        ({"when": {"client": "b"}}, [None, None, None, None]),
        ({"when": {"nth": 9}}, [None, None, None, None]),
    ],
)
def test_which_message_sets_it_off(row: dict[str, Any], expected: list[str | None]) -> None:
    watch = on(engine(row), f"{SCOPE}?_pk=a.1")
    assert feed(watch, [DELTA, OTHER, DELTA, DELTA]) == expected


def test_nth_counts_per_connection() -> None:
    made = engine({"when": {"nth": 2}})
    first, second = on(made, f"{SCOPE}?_pk=a.1"), on(made, f"{SCOPE}?_pk=a.2")
    assert feed(first, [DELTA]) == [None]
    assert feed(second, [DELTA]) == [None]
    assert feed(second, [DELTA]) == ["f#1"]
    assert feed(first, [DELTA]) == [None], "it fires once, wherever"


def test_times_go_over_connections() -> None:
    made = engine({"when": {"nth": 2}, "times": 2})
    assert feed(on(made), [DELTA] * 4) == [None, "f#1", None, None]
    assert feed(on(made), [DELTA] * 4) == [None, "f#2", None, None]
    assert feed(on(made), [DELTA] * 4) == [None] * 4


def test_of_several_the_first_fires_and_all_count() -> None:
    made = engine({"id": "one", "when": {"nth": 2}}, {"id": "two", "when": {}, "times": 2})
    assert feed(on(made), [DELTA] * 3) == ["two#1", "one#1", "two#2"]


def test_scopes_do_not_touch_each_other() -> None:
    made = engine({"when": {}})
    made.arm(faults({"when": {}, "do": CUT}), "/agents/x/two")
    assert feed(on(made, "/agents/x/two?_pk=a.1"), [DELTA]) == ["f#1"]
    assert feed(on(made, "/agents/x/three"), [DELTA]) == [None]
    made.disarm("/agents/x/two")
    assert feed(on(made, "/agents/x/two?_pk=a.1"), [DELTA]) == [None]
    assert feed(on(made, f"{SCOPE}?_pk=a.1"), [DELTA]) == ["f#1"]


def test_disarming_everything() -> None:
    made = engine({"when": {}})
    made.disarm(None)
    assert feed(on(made), [DELTA]) == [None]


def test_a_watch_is_active_only_while_something_can_go_off() -> None:
    made = engine({"when": {"direction": "up", "client": "a"}})
    watch = on(made, f"{SCOPE}?_pk=a.1")
    assert watch.active("up")
    assert not watch.active("down")
    assert not on(made, f"{SCOPE}?_pk=b.1").active("up")
    assert feed(watch, [DELTA], "up") == ["f#1"]
    assert not watch.active("up"), "it is spent"
    made.arm(faults({"id": "g", "when": {}, "do": CUT}), SCOPE)
    assert watch.active("down"), "armed on an open connection"


def test_chance_comes_from_the_seed_alone() -> None:
    def draws(seed: int, connection: str) -> list[bool]:
        made = engine({"when": {"probability": 0.5}, "times": 1000}, seed=seed)
        return [token is not None for token in feed(on(made, f"{SCOPE}?_pk={connection}"), [DELTA] * 64)]

    assert draws(1, "a.1") == draws(1, "a.1")
    assert draws(1, "a.1") != draws(2, "a.1")
    assert draws(1, "a.1") != draws(1, "a.2")
    assert 10 < sum(draws(1, "a.1")) < 54


@pytest.mark.parametrize(("probability", "fires"), [(0, False), (1, True)])
def test_certainties(probability: float, fires: bool) -> None:
    made = engine({"when": {"probability": probability}, "times": 1000})
    assert all((token is not None) is fires for token in feed(on(made), [DELTA] * 50))


@pytest.mark.parametrize(
    ("row", "feature"),
    [
        ({"when": {"offset": 3}, "do": CUT}, "when.offset"),
        ({"when": {"seen": {"kind": "close"}}, "do": CUT}, "when.seen"),
        ({"do": [{"cut": "reset"}, {"delay": {"for": 1}}]}, "do.delay"),
        ({"do": [{"process": "kill"}]}, "do.process"),
        ({"leg": "target", "do": CUT}, "leg target"),
    ],
)
def test_what_the_carrier_lacks_is_refused_in_one_line(row: dict[str, Any], feature: str) -> None:
    made = Engine(CARRIER)
    with pytest.raises(Unsupported) as refused:
        made.arm(faults({"id": "good", "do": CUT}, {"id": "bad", **row}), SCOPE)
    assert str(refused.value) == f"fault `bad` needs `{feature}`: not supported by the test carrier"
    assert not on(made).active("down"), "all or none"


def test_an_id_is_armed_once_per_scope() -> None:
    made = engine({"when": {}})
    with pytest.raises(ValueError, match="`f` is already armed in scope `/agents/x/one`"):
        made.arm(faults({"when": {}, "do": CUT}), SCOPE)


def test_connections_are_counted_per_fault_and_client() -> None:
    made = engine(
        {"id": "of-a", "when": {"client": "a", "connection": 2}}, {"id": "of-all", "when": {"connection": 3}}
    )
    fired = [feed(on(made, f"{SCOPE}?_pk={name}"), [DELTA]) for name in ("a.1", "b.1", "a.2", "b.2")]
    assert fired == [[None], [None], ["of-a#1"], [None]]
    assert feed(on(made, "/agents/x/elsewhere"), [DELTA]) == [None]


def test_a_connection_that_is_older_than_the_fault_has_no_number() -> None:
    made = engine({"id": "other", "when": {"client": "nobody"}})
    old = on(made)
    made.arm(faults({"when": {"connection": 1}, "do": CUT}), SCOPE)
    assert feed(old, [DELTA]) == [None]
    assert feed(on(made), [DELTA]) == ["f#1"]


def test_exchanges_are_told_by_what_they_contain() -> None:
    made = Engine(CARRIER)
    made.arm(faults({"when": {"connection": 2}, "do": CUT}), "[[case/")
    places = [
        Exchange("/v1", b"nothing"),
        Exchange("/v1", b'{"text":"hi [[case/t1]]"}'),
        Exchange("/v1", b"[[other-case/t1]]"),
        Exchange("/v1?q=[[case/t2]]"),
    ]
    assert [feed(made.watch(place), [DELTA]) for place in places] == [[None], [None], [None], ["f#1"]]


def test_a_slash_may_be_written_escaped() -> None:
    assert Exchange("/v1", b'{"text":"hi [[case\\/t1]]"}').within("[[case/")


def test_what_can_only_be_done_at_the_opening_is_done_there() -> None:
    made = engine({"when": {}, "do": [{"stall": {"for": 1}}, {"refuse": True}]})
    watch = on(made)
    assert not watch.active("up")
    assert feed(watch, [DELTA], "up") == [None]
    assert opening(watch) == "f#1"


def test_what_can_be_done_at_a_message_waits_for_one() -> None:
    watch = on(engine({"when": {}, "do": [{"stall": {"for": 1}}]}))
    assert opening(watch) is None
    assert feed(watch, [DELTA]) == ["f#1"]


@pytest.mark.parametrize(
    ("row", "form"),
    [
        ({"when": {"direction": "up"}, "do": [{"refuse": True}]}, "refuse"),
        ({"when": {"json": {}}, "do": [{"refuse": True}]}, "refuse"),
        ({"when": {"nth": 1}, "do": [{"refuse": True}]}, "refuse"),
        ({"when": {"direction": "down"}, "do": [{"status": {"code": 500}}]}, "status"),
        ({"when": {}, "do": [{"refuse": True}, {"status": {"code": 500}}]}, "status"),
    ],
)
def test_an_action_at_a_moment_it_cannot_be_done_is_refused(row: dict[str, Any], form: str) -> None:
    with pytest.raises(
        Unsupported, match=rf"^fault `f` needs `do\.{form}` where it cannot be done: the test"
    ):
        Engine(CARRIER).arm(faults(row), SCOPE)


def test_nothing_is_left_to_watch_for_once_all_is_spent() -> None:
    made = engine({"when": {}})
    assert made.alert
    feed(on(made), [DELTA])
    assert not made.alert
