"""What pytest sees of the kit: a collector, an item per case, the words of its failure."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from think_conformance.baseline import listed
from think_conformance.catalogue.model import requirements
from think_conformance.checkers.base import WORST_FIRST, State, Verdict, exit_code
from think_conformance.errors import UsageError
from think_conformance.history.content import OwnWords
from think_conformance.history.lines import line
from think_conformance.history.op import History
from think_conformance.history.plain import plain
from think_conformance.plugin.engine import Engine
from think_conformance.scenarios.base import Scenario
from think_conformance.shell.ending import KIT_BROKE, code_of
from think_conformance.shell.order import Order, options
from think_conformance.shell.run import Ended
from think_conformance.wire.codec import dumps

FRAMES_SHOWN = 12

TOLD: tuple[State, ...] = tuple(s for s in WORST_FIRST if s not in ("passed", "not-applicable"))
"""States of a verdict that are told in full, in this order."""


class CaseFailed(AssertionError):
    """A case that did not pass; the text is all a reader needs."""


class Cases:
    """The plugin proper, registered when a target is given."""

    def __init__(self, config: pytest.Config) -> None:
        if getattr(config.option, "dist", "no") != "no" or hasattr(config, "workerinput"):
            raise pytest.UsageError(
                "--think-target plays cases in parallel by itself: add `-n 0` (pytest-xdist)"
            )
        profiles = tuple(config.getoption("think_profile"))
        order = Order(
            target=config.getoption("think_target"),
            profiles=profiles,
            baseline=config.getoption("think_baseline"),
            carrier=config.getoption("think_carrier"),
        )
        try:
            self._options = options(order)
        except UsageError as error:
            raise pytest.UsageError(f"--think-target: {error}") from None
        self._out: Path | None = config.getoption("think_out")
        self.attaches = bool(config.getoption("allure_report_dir", None))
        self._engine = Engine(order, self._options)

    @property
    def scenarios(self) -> list[Scenario]:
        """Those that the options select."""
        return self._options.scenarios

    def pytest_report_header(self) -> str:
        return f"think-conformance: target {self._options.target.name}, seed {self._options.seed}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Before others sort and deselect."""
        collector = CaseCollector.from_parent(session, name="think", nodeid="think", cases=self)
        items += session.genitems(collector)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        try:
            self._engine.stop()
        except Exception as error:
            self._engine.told.append(_ending(error))
            if code_of(error) == KIT_BROKE:
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        self._engine.told += self._engine.at_odds
        if self._engine.at_odds and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._engine.store is not None:
            terminalreporter.section("think-conformance")
            for text in self._engine.told:
                terminalreporter.line(text)
            terminalreporter.line(f"run directory: {self._engine.store.folder}")

    def play(self, item: CaseItem) -> Ended:
        """The outcome of an item; the first one asked for starts all that are selected."""
        chosen = [other.scenario for other in item.session.items if isinstance(other, CaseItem)]
        try:
            self._engine.start(chosen, self._out)
        except UsageError as error:
            pytest.exit(str(error).replace("--out", "--think-out"), returncode=pytest.ExitCode.USAGE_ERROR)
        return self._engine.outcome(item.scenario.id)

    def plan(self, case: str) -> Path:
        """The saved plan of a case that was started."""
        assert self._engine.store is not None, "it is made with the first case"
        return self._engine.store.plan(case)

    def history(self, case: str) -> Path:
        """The history of a case that was started."""
        assert self._engine.store is not None, "it is made with the first case"
        return self._engine.store.history(case)


class CaseCollector(pytest.Collector):
    """All cases."""

    def __init__(self, *, cases: Cases, **node: Any) -> None:
        super().__init__(**node)
        self._cases = cases

    def collect(self) -> Iterator[pytest.Item]:
        for scenario in self._cases.scenarios:
            yield CaseItem.from_parent(self, name=scenario.id, scenario=scenario, cases=self._cases)


class CaseItem(pytest.Item):
    """One case. `-k` knows it by its id and by the requirements it exercises, `-m` as `think`."""

    def __init__(self, *, scenario: Scenario, cases: Cases, **node: Any) -> None:
        super().__init__(**node)
        self.scenario = scenario
        self._cases = cases
        self.add_marker("think")
        self.extra_keyword_matches.update(scenario.exercises)

    def runtest(self) -> None:
        outcome = self._cases.play(self)
        if self._cases.attaches:
            self._attach(outcome)
        text = self._told(outcome)
        if outcome.state == "not-applicable":
            pytest.skip(outcome.missing or "; ".join(sorted({v.reason for v in outcome.verdicts})))
        if exit_code(outcome.verdicts):
            raise CaseFailed(text)
        if text:
            self.add_report_section("call", "think-conformance", text)
        if known := [v for v in outcome.verdicts if v.state == "expected-fail"]:
            pytest.xfail("; ".join(f"{v.requirement} {listed(v)}" for v in known))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, CaseFailed) else _ending(excinfo.value)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"think {self.scenario.id}"

    def _told(self, outcome: Ended) -> str:
        """Every verdict that is no simple pass; empty when there is none."""
        told = [v for state in TOLD for v in outcome.verdicts if v.state == state]
        lines = [text for verdict in told for text in _verdict(verdict, outcome.history)]
        if not outcome.verdicts:
            lines = ["INCONCLUSIVE: the case came to no verdict"]
        again = f"again: think-conformance replay {self._cases.plan(self.name)}"
        return "\n".join([*lines, again]) if lines else ""

    def _attach(self, outcome: Ended) -> None:
        allure: Any = import_module("allure")  # only in part typed

        allure.dynamic.description(self.scenario.title)
        allure.dynamic.tag(*self.scenario.exercises)
        allure.dynamic.parent_suite("think-conformance")
        allure.dynamic.suite(self.scenario.id.partition(".")[0])
        allure.attach(dumps(outcome.verdicts), "verdicts.json", allure.attachment_type.JSON)
        if outcome.history:
            allure.attach.file(self._cases.plan(self.name), "plan.json", allure.attachment_type.JSON)
            allure.attach.file(
                self._cases.history(self.name), "history.jsonl", allure.attachment_type.TEXT, "jsonl"
            )


def _ending(error: BaseException) -> str:
    """What ended a run: one line for what a user can cause, else all there is to report."""
    if code_of(error) != KIT_BROKE:
        return str(error)
    told = "".join(traceback.format_exception(error))
    return f"{told}the kit itself broke: please report the lines above"


def _verdict(verdict: Verdict, history: History) -> Iterator[str]:
    row, own = requirements()[verdict.requirement], OwnWords(history)
    yield f"{verdict.state.upper()} {row.id} ({row.level}, {row.profile}): {row.sentence}"
    yield f"    {plain(own.only_quoted(verdict.reason))}"
    if known := listed(verdict):
        yield f"    {plain(known)}"
    for index in verdict.evidence[:FRAMES_SHOWN]:
        if 0 <= index < len(history):
            yield f"    {line(history[index], history[0].at, own)}"
