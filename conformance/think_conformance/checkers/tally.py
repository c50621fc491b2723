"""The verdicts of a whole run: what each history says, and what repeats make of it together.

One home for `run`, `check` and the pytest plugin, so that the same histories mean the same exit code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from think_conformance.catalogue.model import requirements
from think_conformance.checkers.agreement import flaky
from think_conformance.checkers.base import State, Verdict, exit_code, judge
from think_conformance.history.op import History


class Tally:
    """Grows case by case. `profiles` are the ones judged (empty: all)."""

    def __init__(self, profiles: Collection[str] = ()) -> None:
        self._profiles = frozenset(profiles)
        self._verdicts: list[Verdict] = []
        self._firings: dict[str, History] = {}

    @property
    def verdicts(self) -> list[Verdict]:
        """All so far; those that repeats disagree on are `flaky`."""
        return flaky(self._verdicts, self._firings)

    @property
    def exit_code(self) -> int:
        """0, 1 or 2, as in `base.exit_code`."""
        return exit_code(self.verdicts)

    def judge(self, case: str, history: History) -> list[Verdict]:
        """What the history of a case says by itself. UsageError when it does not start as one does."""
        self._firings[case] = [record for record in history if record.kind == "fault-fired"]
        return self._add(judge(history, requirements()))

    def skip(
        self, case: str, exercises: Iterable[str], reason: str, state: State = "not-applicable"
    ) -> list[Verdict]:
        """A case that was not played: it is out of reach of the target, or `inconclusive`."""
        return self._add([Verdict(ident, case, state, reason) for ident in exercises])

    def _add(self, verdicts: list[Verdict]) -> list[Verdict]:
        rows = requirements()
        wanted = [v for v in verdicts if not self._profiles or rows[v.requirement].profile in self._profiles]
        self._verdicts += wanted
        return wanted
