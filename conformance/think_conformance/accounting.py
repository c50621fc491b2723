"""The account of a run: how many cases there are, which were selected, which ran, why the others did not, and
which verdicts count.

Pure. It adds up at every moment: what was selected has run, or stands under the reason why not.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from think_conformance.catalogue.revisions import scores
from think_conformance.checkers.base import Verdict

OUT_OF_REACH = "needs: "
"""How the reason of what a target does not offer begins; every other reason is one of the run."""

CUT_SHORT = "the run was cut short"
"""The reason of what nobody came to."""


class Accounting(Struct, frozen=True, kw_only=True):
    """Counts of cases. `total` is all that there are, `selected` what the user chose of them; `not_run`
    holds by reason the names of those that were not played to their end."""

    total: int
    selected: int
    ran: int
    not_run: dict[str, list[str]] = {}

    @property
    def reasons(self) -> dict[str, str]:
        """Why not, by case."""
        return {case: reason for reason, cases in self.not_run.items() for case in cases}

    @property
    def cut_off(self) -> list[str]:
        """The cases that could have run, had the run gone on."""
        return [case for case, why in self.reasons.items() if not why.startswith(OUT_OF_REACH)]


class Account:
    """Kept while a run goes on."""

    def __init__(self, total: int, cases: Iterable[str]) -> None:
        self._total = total
        self._reasons: dict[str, str | None] = dict.fromkeys(cases, CUT_SHORT)

    def ran(self, case: str) -> None:
        """A case was played and judged."""
        self._reasons[case] = None

    def left(self, case: str, reason: str) -> None:
        """A case is not played, or not to its end."""
        self._reasons[case] = reason

    @property
    def so_far(self) -> Accounting:
        """The account at this moment."""
        not_run: dict[str, list[str]] = {}
        for case, reason in self._reasons.items():
            if reason is not None:
                not_run.setdefault(reason, []).append(case)
        left = sum(map(len, not_run.values()))
        return Accounting(
            total=self._total, selected=len(self._reasons), ran=len(self._reasons) - left, not_run=not_run
        )


def added(accounts: Iterable[Accounting]) -> Accounting:
    """The account of several runs that share no case, of the same cases in all."""
    total, selected, ran = 0, 0, 0
    not_run: dict[str, list[str]] = {}
    for account in accounts:
        total, selected, ran = max(total, account.total), selected + account.selected, ran + account.ran
        for reason, cases in account.not_run.items():
            not_run.setdefault(reason, []).extend(cases)
    return Accounting(total=max(total, selected), selected=selected, ran=ran, not_run=not_run)


def scored(verdicts: Iterable[Verdict], revision: int | None) -> list[Verdict]:
    """Those of requirements that the revision holds: newer ones are shown, and count for nothing."""
    return [verdict for verdict in verdicts if scores(verdict.requirement, revision)]
