"""The page of a version: what its run showed, and each known deviation with its frames. Pure.

Made of the version's baseline and the `results.json` of runs, so that what the page says was seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from think_conformance.baseline import Entry
from think_conformance.errors import UsageError

FRAMES_WIDTH = 400
"""Characters of a frame that are shown."""

_HEAD = """# Cloudflare's Think {version}: what holds and what does not

Written by `python -m think_conformance.targets.cloudflare_think document {version} RUN_DIR...`, from runs of
every scenario against the published packages in workerd. How its frames differ from those of the reference:
[cloudflare-think-differences.md](cloudflare-think-differences.md).

```sh
think-conformance run --target cloudflare-think@{version} --baseline {baseline}
think-conformance replay {plans}/CASE.json --target cloudflare-think@{version}    # one case alone
```
"""


def page(version: str, folder: str, entries: Sequence[Entry], runs: Sequence[dict[str, Any]]) -> str:
    """The text of the page. `folder` is where the baselines lie, as a reader of the page names it;
    `entries` are those of the version's baseline, `runs` parsed results.json: the first tells the states,
    all of them show frames. UsageError names a deviation that none of them shows."""
    lines = _HEAD.format(
        version=version, baseline=f"{folder}/{version}.toml", plans=f"{folder}/{version}"
    ).splitlines()
    lines += ["", "## Requirements", "", "| id | level | profile | what must hold | cases | state |"]
    lines += ["|---|---|---|---|---|---|"]
    lines += [_requirement(row, entries) for row in runs[0]["requirements"]]
    lines += ["", "## Known deviations", "", "*Sometimes*: it hangs on a race inside the target.", ""]
    found: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        found[_anchor(entry)].append(entry)
    for anchor, listed in found.items():
        lines += _deviation(anchor, listed, runs)
    return "\n".join(lines).rstrip() + "\n"


def _requirement(row: dict[str, Any], entries: Sequence[Entry]) -> str:
    own = [entry for entry in entries if entry.id == row["id"]]
    state = row["state"]
    if own:
        links = ", ".join(f"[{_title(a)}](#{a})" for a in dict.fromkeys(_anchor(entry) for entry in own))
        state = f"deviates{' sometimes' * all(e.sometimes for e in own)}: {links}"
    cells = (row["id"], row["level"], row["profile"], row["sentence"], str(len(row["cases"])), state)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _deviation(anchor: str, entries: list[Entry], runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    reason = entries[0].reason
    yield from (f"### {_title(anchor)}", "", f"{reason[:1].upper()}{reason[1:]}.", "")
    yield from ("| case | requirements |", "|---|---|")
    by_case: dict[str, list[str]] = defaultdict(list)
    for entry in entries:
        by_case[str(entry.case)].append(f"{entry.id}{' (sometimes)' * entry.sometimes}")
    for case, ids in by_case.items():
        yield f"| {case} | {', '.join(ids)} |"
    for ident in dict.fromkeys(entry.id for entry in entries):
        yield from _frames(ident, [entry for entry in entries if entry.id == ident], runs)
    yield ""


def _frames(ident: str, entries: list[Entry], runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What decided on one requirement, in the first case of which a run shows it."""
    seen = next((shown for entry in entries for run in runs for shown in _seen(entry, run)), None)
    if seen is None:
        raise UsageError(f"no run shows {ident} in {entries[0].case}: give one more run folder that does")
    case, verdict = seen
    said = _told(verdict)[0]
    yield from ("", f"<details><summary>{ident}, {case}: {said}</summary>", "", "```")
    yield from (frame[:FRAMES_WIDTH] for frame in verdict["frames"])
    yield from ("```", "", "</details>")


def _seen(entry: Entry, run: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The verdicts of a run that show what an entry lists."""
    for case in run["cases"]:
        for verdict in case["verdicts"]:
            listed = case["scenario"] == entry.case and verdict["requirement"] == entry.id
            shows = any((entry.evidence or "") in breach for breach in _told(verdict))
            if listed and verdict["frames"] and shows:
                yield case["case"], verdict


def _told(verdict: dict[str, Any]) -> list[str]:
    """What the check said of each breach."""
    return verdict["breaches"] or [verdict["reason"]]


def _anchor(entry: Entry) -> str:
    return entry.link.rpartition("#")[2]


def _title(anchor: str) -> str:
    words = anchor.replace("-", " ")
    return words[:1].upper() + words[1:]
