"""The page about faults says what each carrier does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from think_proxy.carriers.abilities import (
    EXCHANGE_ACTIONS,
    EXCHANGE_TRIGGERS,
    MITM_EXCHANGE_ACTIONS,
    MITM_SOCKET_ACTIONS,
    SOCKET_ACTIONS,
    SOCKET_TRIGGERS,
)
from think_proxy.engine import Moment

PAGE = Path(__file__).parents[4] / "docs" / "faults.md"


def table(title: str) -> dict[str, tuple[str, ...]]:
    """The rows of the table under this heading, by their first cell."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {name.strip("`"): tuple(cells) for name, *cells in rows[1:]}


def where(actions: Mapping[str, frozenset[Moment]], form: str) -> str:
    moments: list[Moment] = ["opening", "up", "down"]
    return ", ".join(m for m in moments if m in actions.get(form, ())) or "nowhere"


def test_the_triggers() -> None:
    names = SOCKET_TRIGGERS | EXCHANGE_TRIGGERS
    answer = {True: "yes", False: "no"}
    assert table("Triggers") == {
        name: (answer[name in SOCKET_TRIGGERS], answer[name in EXCHANGE_TRIGGERS]) for name in names
    }


def test_the_actions() -> None:
    carriers = (SOCKET_ACTIONS, EXCHANGE_ACTIONS, MITM_SOCKET_ACTIONS, MITM_EXCHANGE_ACTIONS)
    assert table("Actions") == {
        form: tuple(where(actions, form) for actions in carriers)
        for form in {form for actions in carriers for form in actions}
    }
