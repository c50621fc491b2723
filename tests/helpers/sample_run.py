"""A small run: one case that failed, one that could not decide, one that was not played."""

from __future__ import annotations

from datetime import date
from typing import Any

from msgspec.structs import replace

from think_conformance.accounting import Accounting
from think_conformance.baseline import Compared, Entry
from think_conformance.catalogue.model import Requirement
from think_conformance.checkers.base import Verdict
from think_conformance.history.op import History, Record
from think_reports.model import Environment, RunReport, Target, build


def row(ident: str, **more: Any) -> Requirement:
    return Requirement(
        **{
            "id": ident,
            "level": "MUST",
            "profile": "core",
            "source": "seed",
            "sentence": f"What {ident} says holds.",
            **more,
        }
    )


CATALOGUE = {
    r.id: r for r in (row("A-1"), row("A-2", level="SHOULD"), row("B-1", profile="resume"), row("C-1"))
}
ENVIRONMENT = Environment(
    kit="0.1.0",
    target=Target(name="mine"),
    seed=7,
    started="2025-01-01T00:00:00+00:00",
    duration_s=2.5,
    exit_code=1,
)
VERDICTS = [
    Verdict("A-1", "stop", "failed", "told completed, then aborted", [2, 4]),
    Verdict("A-2", "stop", "passed"),
    Verdict("B-1", "stop", "passed"),
    Verdict("A-1", "kill", "passed"),
    Verdict("B-1", "kill", "inconclusive", "the fault cut never fired"),
    Verdict("C-1", "far", "not-applicable", "needs: leg routing"),
]


def history(case: str, *records: Record, **more: Any) -> History:
    head = Record(
        0, 100.0, "run", "case", {}, {"case": case, "scenario": case, "title": f"The {case}", **more}
    )
    return [head, *records]


def terminal(index: int, at: float, outcome: str) -> Record:
    frame = {"type": "cf_agent_use_chat_response", "id": "r1", "body": "", "done": True, "outcome": outcome}
    return Record(
        index, at, "client", "frame-in", {"client": "a", "connection": "a.1"}, {"frame": frame, "size": 99}
    )


HISTORIES = [
    (
        "stop",
        history(
            "stop",
            Record(1, 100.1, "proxy", "fault-planned", {"fault": "cut"}, {}),
            terminal(2, 100.2, "completed"),
            Record(3, 100.3, "proxy", "fault-fired", {"fault": "cut", "token": "t"}, {}),
            terminal(4, 101.5, "aborted"),
        ),
    ),
    ("kill", history("kill", Record(1, 100.1, "proxy", "fault-planned", {"fault": "cut"}, {}))),
]


def sample() -> RunReport:
    """The report of that run."""
    return build(ENVIRONMENT, VERDICTS, HISTORIES, CATALOGUE)


KNOWN = Entry(
    id="A-1", case="stop", reason="decided so", link="https://example.org/1", expires=date(2099, 1, 2)
)


def known(*verdicts: Verdict) -> RunReport:
    """A run in which one failure is known, and what else is given."""
    listed = Compared("A-1", "stop", "expected-fail", "told completed, then aborted", [2, 4], baseline=KNOWN)
    return build(ENVIRONMENT, [listed, *verdicts], HISTORIES[:1], CATALOGUE)


HOSTILE = {
    "script": "<script>alert(1)</script>",
    "cdata": "]]><x a='\"&",
    "ansi": "\x1b[2J\x1b[31mred",
    "bidi": "\u202egnp.exe\u2066",
    "nul": "a\x00b\x07",
    "lines": "one\r\ntwo\u2028three",
    "surrogate": "half \ud83d pair",
    "noncharacter": "\ufffe\uffff",
    "huge": "x" * 1_000_000,
}


def infested(text: str) -> RunReport:
    """A report with one text in every place where a target, a plan or a file can put it."""
    frame = Record(1, 100.1, "client", "frame-in", {"connection": text}, {"frame": {text: [text]}})
    fault = Record(2, 100.2, "proxy", "fault-fired", {"fault": text}, text)
    listed = Entry(id=text, case=text, reason=text, link=text, evidence=text, expires=date(2099, 1, 2))
    return build(
        Environment(
            kit=text, target=Target(name=text, version=text, defect=text), seed=1, started=text, exit_code=1
        ),
        [
            Compared("A-1", text, "failed", text, [1, 2], baseline=listed),
            Verdict("A-2", text, "warned", text, [1, 2]),
            Verdict("B-1", text, "inconclusive", text, [1]),
            Verdict("C-1", text, "not-applicable", text),
        ],
        [(text, history(text, frame, fault, title=text, scenario=text))],
        CATALOGUE,
        Accounting(total=1, selected=1, ran=0, not_run={text: [text]}),
    )


def partly() -> RunReport:
    """A run under revision 1, which holds one of its two requirements, of which two cases did not run."""
    account = Accounting(
        total=9, selected=4, ran=2, not_run={"needs: leg routing": ["far"], "the time was up": ["late"]}
    )
    verdicts = [
        Verdict("WIRE-85", "stop", "passed"),
        Verdict("A-2", "stop", "failed", "told too late", [2]),
        Verdict("A-2", "kill", "failed", "told too late"),
        Verdict("WIRE-85", "late", "inconclusive", "the time was up"),
        Verdict("WIRE-85", "far", "not-applicable", "needs: leg routing"),
    ]
    catalogue = {r.id: r for r in (row("WIRE-85"), row("A-2"))}
    env = replace(ENVIRONMENT, revision=1, seed=None, exit_code=2)
    return build(env, verdicts, HISTORIES, catalogue, account)
