"""What differs, as a table: for a terminal, as Markdown, as JSON; and the page of the decisions alone."""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec

from think_conformance.differences.decisions import Decided, Decision, Decisions
from think_conformance.differences.rows import Comparison, Row
from think_conformance.history.plain import plain


def text(decided: Decided) -> str:
    """Two lines a row: state, number of cases, the row; then its decision, or where it shows."""
    lines = []
    for row, decision in decided.rows:
        lines.append(f"{'decided' if decision else 'open':8}{len(row.cases):3}  {row.text}")
        lines.append(f"{'':13}{_told(decision) if decision else _shown(row)}")
    lines += [f"stale        {decision.pattern}" for decision in decided.stale]
    return "".join(f"{plain(line)}\n" for line in lines)


def markdown(decided: Decided, a: str, b: str) -> str:
    """A table with a line a row; `a` and `b` are the names of the targets."""
    cells = (
        (
            row.what,
            row.a,
            row.b,
            str(len(row.cases)),
            _told(decision) if decision else f"open: {_shown(row)}",
        )
        for row, decision in decided.rows
    )
    return _table(("what", a, b, "cases", "decision"), cells)


def as_json(decided: Decided, comparison: Comparison) -> str:
    """The same as data, each row with its cases, example and decision."""
    rows = [
        {**msgspec.to_builtins(row), "text": row.text, "decision": msgspec.to_builtins(decision)}
        for row, decision in decided.rows
    ]
    whole = {
        "schema": 1,
        "connections": comparison.connections,
        "compared": comparison.compared,
        "open": decided.open,
        "stale": [decision.pattern for decision in decided.stale],
        "rows": rows,
    }
    return json.dumps(whole, indent=1) + "\n"


def page(decisions: Decisions) -> str:
    """The document of all that differs and stays so."""
    cells = []
    for decision in decisions.decision:
        what, _, sides = decision.pattern.partition(": ")
        left, _, right = sides.partition(" / ")
        why = f"{decision.why} Not in every run." if decision.racy else decision.why
        cells.append((what, left or "*", right or "*", decision.case, ", ".join(decision.spec), why))
    head = HEAD.format(a=decisions.a, b=decisions.b)
    return f"{head}\n{_table(('what', decisions.a, decisions.b, 'in', 'statement', 'why it stays'), cells)}"


HEAD = """# What differs: {a} and {b}

The same plans, played against both, frame by frame: all that is different, and why it stays. This page is
written by `python -m think_conformance.differences` from the decisions; this shows whether they are all:

```sh
think-conformance diff RUN_A RUN_B --decisions DECISIONS.toml
```

`frames` are those of a connection in order, `probe` the answers to its probes, `late ack` the answers to an
ack after the end, `prompts` what the model was asked, `stored` the last transcript. `*` stands for anything.
"""


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *(tuple(map(_cell, row)) for row in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cell(value: str) -> str:
    """A text that cannot leave its cell or become markup."""
    return "".join(f"\\{c}" if c in "\\|<>[]*_&`" else c for c in plain(value))


def _told(decision: Decision) -> str:
    return f"{', '.join(decision.spec)}: {decision.why}"


def _shown(row: Row) -> str:
    at = row.example
    records = " / ".join("none" if side is None else str(side) for side in (at.a, at.b))
    return f"as in {at.case} {at.whose}, records {records}"
