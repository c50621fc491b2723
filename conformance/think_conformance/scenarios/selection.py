"""Which scenarios a run plays: profiles, requirements, a `-k` expression, a share of them. A word that
selects nothing is an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from think_conformance.catalogue.model import Requirement
from think_conformance.errors import Unknown, UsageError
from think_conformance.scenarios.base import Scenario

Test = Callable[[Scenario], bool]


NESTING = 50
"""How deep `not` and parentheses of an expression may stand in each other."""


def by_profile(
    scenarios: Iterable[Scenario], catalogue: Mapping[str, Requirement], profiles: Iterable[str]
) -> list[Scenario]:
    """The scenarios that exercise a requirement of these profiles (all, when none is named)."""
    wanted = set(profiles)
    known = {row.profile for row in catalogue.values()}
    for name in wanted:
        if name not in known:
            raise Unknown("profile", name, sorted(known))
    return [s for s in scenarios if not wanted or any(catalogue[i].profile in wanted for i in s.exercises)]


def by_ids(
    scenarios: Iterable[Scenario], catalogue: Mapping[str, Requirement], ids: Iterable[str]
) -> list[Scenario]:
    """The scenarios that exercise one of these requirements (all, when none is named)."""
    wanted = set(ids)
    for ident in sorted(wanted - catalogue.keys()):
        raise Unknown("requirement", ident, catalogue)
    return [s for s in scenarios if not wanted or wanted.intersection(s.exercises)]


def share(scenarios: Iterable[Scenario], text: str) -> list[Scenario]:
    """The i-th of n shares, for a text `i/n`: dealt out in turn by order of id, so that the shares of one
    selection are disjoint, together all of it, the same each time, and of nearly one size."""
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    number, shares = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= shares:
        raise UsageError(f"--shard is {text}: give I/N, such as 1/3, the first of three")
    return sorted(scenarios, key=lambda scenario: scenario.id)[number - 1 :: shares]


def by_expression(scenarios: Iterable[Scenario], expression: str) -> list[Scenario]:
    """The scenarios for which `expression` is true: words with `and`, `or`, `not` and parentheses.
    A word is a part of a scenario's id, or the id of a requirement it exercises."""
    choices = list(scenarios)
    test = _Parser(expression, choices).parse()
    return [s for s in choices if test(s)]


def _matches(word: str, scenario: Scenario) -> bool:
    return word.casefold() in scenario.id.casefold() or word.casefold() in {
        i.casefold() for i in scenario.exercises
    }


class _Parser:
    """expr = term (or term)*; term = factor (and factor)*; factor = not factor | ( expr ) | word"""

    def __init__(self, expression: str, scenarios: list[Scenario]) -> None:
        self._expression = expression
        self._tokens = re.findall(r"[()]|[^\s()]+", expression)
        self._scenarios = scenarios
        self._depth = 0

    def parse(self) -> Test:
        test = self._any()
        if self._tokens:
            raise self._broken()
        return test

    def _any(self) -> Test:
        terms = [self._all()]
        while self._tokens[:1] == ["or"]:
            self._tokens.pop(0)
            terms.append(self._all())
        return lambda s: any(term(s) for term in terms)

    def _all(self) -> Test:
        factors = [self._one()]
        while self._tokens[:1] == ["and"]:
            self._tokens.pop(0)
            factors.append(self._one())
        return lambda s: all(factor(s) for factor in factors)

    def _one(self) -> Test:
        self._depth += 1
        if self._depth > NESTING:
            raise UsageError(f"the expression of `-k` is nested more than {NESTING} deep: say it with less")
        test = self._factor()
        self._depth -= 1
        return test

    def _factor(self) -> Test:
        token = self._tokens.pop(0) if self._tokens else ""
        if token == "not":
            negated = self._one()
            return lambda s: not negated(s)
        if token == "(":
            inner = self._any()
            if not self._tokens or self._tokens.pop(0) != ")":
                raise self._broken()
            return inner
        if token in ("", ")", "and", "or"):
            raise self._broken()
        if not any(_matches(token, s) for s in self._scenarios):
            known = [s.id for s in self._scenarios]
            known += sorted({i for s in self._scenarios for i in s.exercises})
            raise Unknown("scenario or requirement", token, known)
        return lambda s: _matches(token, s)

    def _broken(self) -> UsageError:
        return UsageError(f"`-k {self._expression}` cannot be read: use words, and, or, not, ( )")
