"""What each action does to a connection, told by a link that only writes down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from think_proxy.carriers.abilities import EXCHANGE_ACTIONS, SOCKET_ACTIONS
from think_proxy.faults import ACTS
from think_proxy.link import Link
from think_proxy.plan import Action, Direction, ProcessAction, Status


class Written(Link):
    def __init__(self) -> None:
        self.did: list[str] = []

    def discard(self) -> None:
        self.did.append("discard")

    @contextmanager
    def hold(self, direction: Direction | None) -> Iterator[None]:
        self.did.append(f"hold {direction}")
        yield
        self.did.append("release")

    async def wait(self, seconds: float) -> None:
        self.did.append(f"wait {seconds}")

    def reset(self) -> None:
        self.did.append("reset")

    def finish(self) -> None:
        self.did.append("finish")

    async def close(self, code: int, reason: str) -> None:
        self.did.append(f"close {code} {reason}")

    async def answer(self, status: Status) -> None:
        self.did.append(f"answer {status.code}")

    def shorten(self, keep: int | None, *, clean: bool) -> None:
        self.did.append(f"shorten {keep} {clean}")

    def swallow(self) -> None:
        self.did.append("swallow")

    async def process(self, action: ProcessAction) -> None:
        self.did.append(f"process {action}")


@pytest.mark.parametrize(
    ("row", "did"),
    [
        ({"cut": "reset"}, ["discard", "reset"]),
        ({"cut": "fin"}, ["discard", "finish"]),
        ({"cut": "blackhole"}, ["discard", "swallow"]),
        ({"cut": {"close": 1012, "reason": "restart"}}, ["discard", "close 1012 restart"]),
        ({"drop": True}, ["discard"]),
        ({"drop": False}, []),
        ({"stall": {"for": 2}}, ["hold None", "wait 2.0", "release"]),
        ({"stall": {"for": 1, "direction": "up"}}, ["hold up", "wait 1.0", "release"]),
        ({"process": "kill"}, ["process kill"]),
        ({"delay": {"for": 1}}, ["wait 1.0"]),
        ({"status": {"code": 429}}, ["discard", "answer 429"]),
        ({"refuse": True}, ["discard", "reset"]),
        ({"refuse": False}, []),
        ({"truncate": {}}, ["shorten None False", "finish"]),
        ({"truncate": {"keep": 3, "end": "reset"}}, ["shorten 3 False", "reset"]),
        ({"truncate": {"end": "clean"}}, ["shorten None True", "finish"]),
    ],
)
async def test_what_an_action_does(row: dict[str, Any], did: list[str]) -> None:
    action = msgspec.convert(row, Action)
    link = Written()
    await ACTS[action.name](link, getattr(action, action.name))
    assert link.did == did


def test_every_action_a_carrier_does_is_there() -> None:
    promised = {form.partition(".")[0] for form in {**SOCKET_ACTIONS, **EXCHANGE_ACTIONS}}
    assert set(ACTS) == promised <= set(Action.__struct_fields__)
