"""The page."""

from __future__ import annotations

from html.parser import HTMLParser

import msgspec
import pytest

from sample_run import CATALOGUE, ENVIRONMENT, HISTORIES, HOSTILE, KNOWN, infested, known, partly, sample
from think_conformance.accounting import CUT_SHORT, Accounting
from think_conformance.baseline import Compared
from think_conformance.checkers.base import State, Verdict
from think_reports.html import at_most, bound, needs_a_look, render
from think_reports.model import RunReport, build

VOID = {"meta", "br", "line", "rect", "circle", "polygon"}


class Page(HTMLParser):
    """A page, read: its elements, its text, whether all that opens is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words += data.split()

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def of(self, tag: str, css: str) -> list[dict[str, str | None]]:
        return [
            found
            for name, found in self.elements
            if name == tag and css in (found.get("class") or "").split()
        ]


def page(report: RunReport, **pictures: str) -> Page:
    return Page(render(report, pictures, "think-runs/1"))


def report(*states: State, exit_code: int | None = 0) -> RunReport:
    env = msgspec.structs.replace(ENVIRONMENT, exit_code=exit_code)
    return build(env, [Verdict("A-1", f"case{n}", state) for n, state in enumerate(states)], [], CATALOGUE)


def test_the_head_says_verdict_target_seed_and_counts() -> None:
    text = page(sample()).text
    assert text.startswith("failed: mine · think-conformance think-conformance 0.1.0 failed mine 1 failed")
    for fact in (
        "1 failed 1 inconclusive 1 passed 1 not-applicable",
        "cases 3",
        "seed 7",
        "exit code 1",
        "took 2.5 s",
    ):
        assert fact in text


def test_a_defect_and_a_version_are_named() -> None:
    target = msgspec.structs.replace(ENVIRONMENT.target, version="2.1", defect="two-terminals")
    env = msgspec.structs.replace(ENVIRONMENT, target=target, exit_code=None, duration_s=None)
    text = page(build(env, [], [], CATALOGUE)).text
    assert "unfinished mine 2.1 with the deliberate defect two-terminals" in text
    assert "exit code unfinished" in text
    assert "took" not in text


def test_requirements_stand_in_their_families_with_level_sentence_and_state() -> None:
    text = page(sample()).text
    assert "core state id level what must hold cases failed A-1 MUST What A-1 says holds." in text
    assert "passed A-2 SHOULD What A-2 says holds. 0 of 1 ≤ 100 %" in text
    assert text.index("A-2") < text.index("resume state id") < text.index("inconclusive B-1 MUST")


def test_every_link_leads_to_its_case() -> None:
    seen = page(sample())
    links = [found["href"] for tag, found in seen.elements if tag == "a"]
    ids = {f"#{found['id']}" for _, found in seen.elements if "id" in found}
    assert links == ["#case-stop", "#case-kill"]
    assert set(links) <= ids


def test_a_failed_case_tells_everything() -> None:
    text = page(sample()).text
    story = text[text.index("Cases that need a look") : text.index("inconclusive kill")]
    for piece in (
        "failed stop The stop think-conformance replay think-runs/1/plan/stop.json",
        "fault cut fired #3 +0.300 s proxy cut fault-fired",
        "failed A-1 MUST What A-1 says holds. told completed, then aborted #2 +0.200 s client a.1 frame-in {",
        '"outcome":"aborted"}',
    ):
        assert piece in story
    assert "A-2" not in story
    assert "fault cut never fired" in text[text.index("inconclusive kill") :]
    assert text.endswith("history.jsonl .")


def test_the_worst_case_comes_first_and_is_open() -> None:
    cases = page(sample()).of("details", "case")
    assert [(case["id"], "open" in case) for case in cases] == [("case-stop", True), ("case-kill", False)]


def test_other_cases_are_listed_with_their_faults_and_reasons() -> None:
    text = page(sample()).text
    assert "not-applicable far needs: leg routing" in text[text.index("Other cases") :]


def test_verdicts_that_say_the_same_are_told_once() -> None:
    verdicts = [
        Verdict(i, "kill", "inconclusive", "the fault cut never fired") for i in ("A-1", "A-2", "C-1")
    ]
    seen = page(build(ENVIRONMENT, verdicts, HISTORIES[1:], CATALOGUE))
    assert len(seen.of("article", "cause")) == 1
    assert seen.text.count("the fault cut never fired") == 1
    assert "A-1" in seen.text
    assert "C-1" in seen.text


def test_a_known_failure_is_told_with_its_reason_frames_and_a_link() -> None:
    seen = page(known())
    told = "Known until 2099-01-02: decided so https://example.org/1"
    assert f"told completed, then aborted {told} #2" in seen.text
    links = [found for tag, found in seen.elements if tag == "a" and not str(found["href"]).startswith("#")]
    assert links == [{"href": "https://example.org/1", "rel": "noreferrer"}]
    assert "expected-fail stop" in seen.text


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", " https://example.org", "data:text/html,x", "docs/known.md", "//x.org"]
)
def test_only_what_leads_into_the_web_is_a_link(link: str) -> None:
    entry = msgspec.structs.replace(KNOWN, link=link)
    listed = Compared("A-1", "stop", "expected-fail", "no", [], baseline=entry)
    seen = page(build(ENVIRONMENT, [listed], [], CATALOGUE))
    assert f"({link.strip()})" in seen.text.replace("( ", "(")
    assert [found["href"] for tag, found in seen.elements if tag == "a"] == ["#case-stop"]


def test_a_known_failure_is_a_failure_where_zero_failures_are_claimed() -> None:
    assert bound(report("passed", "expected-fail").cases) == ""
    assert "1 of 2" in page(report("passed", "expected-fail")).text


def test_a_case_without_a_verdict_needs_a_look() -> None:
    assert "The case came to no verdict." in page(build(ENVIRONMENT, [], HISTORIES[:1], CATALOGUE)).text


def test_a_picture_stands_in_its_case() -> None:
    seen = page(sample(), stop="<svg class='timeline'><text>here</text></svg>")
    assert len(seen.of("svg", "timeline")) == 1
    assert "here inconclusive kill" in seen.text


def test_the_records_that_decide_are_asked_for() -> None:
    assert dict(needs_a_look(sample())) == {"stop": {2, 4}, "kill": set()}


def test_zero_failures_are_no_certainty() -> None:
    assert [at_most(n) for n in (0, 1, 3, 7, 30, 300)] == ["100 %", "100 %", "100 %", "42.9 %", "10 %", "1 %"]
    assert bound(report("passed", "warned", "passed", "not-applicable").cases) == (
        "0 failures in 3 cases: at most 100 % of such cases fail (3/n, at 95 %)"
    )
    assert bound(report("passed", "failed").cases) == ""
    assert bound(report("not-applicable").cases) == ""
    assert "0 failures in 40 cases: at most 7.5 %" in page(report(*["passed"] * 40)).text
    assert "0 of 40 ≤ 7.5 %" in page(report(*["passed"] * 40)).text


def test_nothing_judged_is_said() -> None:
    assert "Nothing was judged." in page(report()).text


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_content_is_only_text(kind: str) -> None:
    plain = {tag for tag, _ in page(sample()).elements}
    seen = page(infested(HOSTILE[kind]))
    assert {tag for tag, _ in seen.elements} <= plain | {"strong"}
    names = {name for _, found in seen.elements for name in found}
    assert names <= {
        "lang", "charset", "name", "content", "http-equiv", "class", "style", "role", "title", "id", "open",
        "href", "aria-label",
    }  # fmt: skip
    assert all((found.get("href") or "#").startswith("#") for _, found in seen.elements)


def test_the_page_needs_nothing_from_elsewhere() -> None:
    text = render(sample(), {}, "x")
    for word in ("<script", "http://", "https://", "@import", "url(", "<link", "<img", "src="):
        assert word not in text
    assert "default-src 'none'" in text


def test_a_folder_with_blanks_is_quoted() -> None:
    assert "replay 'my runs/plan/stop.json'" in Page(render(sample(), {}, "my runs")).text


def test_verdicts_beyond_three_links_are_counted() -> None:
    verdicts = [Verdict("A-1", f"case{n}", "failed", "no") for n in range(5)]
    assert "and 2 more 5 of 5" in page(build(ENVIRONMENT, verdicts, [], CATALOGUE)).text


def test_what_did_not_run_is_told_by_its_reason_and_needs_no_look() -> None:
    report = partly()
    assert list(needs_a_look(report)) == []
    words = " ".join(" ".join(Page(render(report, {}, "run")).words).split())
    assert "2 of 4 ran" in words
    assert "late the time was up" in words
    assert "far needs: leg routing" in words
    assert "scored by revision 1" in words
    assert "seed several" in words
    assert "think-conformance replay" not in words
    assert words.count("· unscored") == 1


def test_a_case_that_was_begun_when_the_run_was_cut_short_gets_a_look() -> None:
    account = Accounting(total=2, selected=2, ran=0, not_run={CUT_SHORT: ["stop", "kill"]})
    report = build(ENVIRONMENT, [], HISTORIES, CATALOGUE, account)
    assert [case for case, _ in needs_a_look(report)] == ["kill", "stop"]
