"""The outside world: each effect is recorded in the history of its case, however often it comes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from io import BytesIO

import aiohttp
import pytest

from think_conformance.shell.ledger import Ledger
from think_conformance.shell.recorder import Recorder


@pytest.fixture
async def ledger() -> AsyncIterator[Ledger]:
    ledger = Ledger()
    await ledger.start()
    yield ledger
    await ledger.close()


async def post(ledger: Ledger, body: object) -> int:
    async with aiohttp.ClientSession() as session:
        data = BytesIO(body) if isinstance(body, bytes) else None
        async with session.post(ledger.url, json=None if data else body, data=data) as answer:
            return answer.status


async def test_an_effect_is_recorded_in_its_own_case_each_time(ledger: Ledger) -> None:
    one, two = Recorder(None), Recorder(None)
    ledger.load("one", one)
    ledger.load("two", two)
    assert await post(ledger, {"key": "one/paid", "tool": "record_effect"}) == 200
    assert await post(ledger, {"key": "one/paid", "tool": "record_effect"}) == 200
    assert await post(ledger, {"key": "two/paid"}) == 200
    assert [(r.source, r.kind, r.ids) for r in one.records] == [
        ("effects", "effect", {"key": "one/paid"})
    ] * 2
    assert one.records[0].payload == {"key": "one/paid", "tool": "record_effect"}
    assert len(two.records) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"key": "three/paid"}, 404),
        ({"key": "paid"}, 404),
        ({"key": 1}, 400),
        ([], 400),
        (b"{", 400),
        (b"x" * 1_100_000, 413),
    ],
)
async def test_what_belongs_to_no_case_is_refused_and_recorded_nowhere(
    ledger: Ledger, body: object, status: int
) -> None:
    recorder = Recorder(None)
    ledger.load("one", recorder)
    assert await post(ledger, body) == status
    assert recorder.records == []


async def test_a_case_that_is_over_gets_nothing_more(ledger: Ledger) -> None:
    recorder = Recorder(None)
    ledger.load("one", recorder)
    ledger.unload("one")
    assert await post(ledger, {"key": "one/paid"}) == 404
    assert recorder.records == []
