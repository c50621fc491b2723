"""mitmproxy carries real scenarios, to the same verdicts as without; what it cannot do is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from commands import kit, last_line
from think_conformance.scenarios.base import load

BOTH_DO = (
    "core.model-answers-an-error-status or core.model-slow-first-byte or resume.stall-that-heals"
    " or core.two-turns or core.resent or core.overlapping or resume.page-refresh or resume.close"
    " or resume.two-tabs or control.stop-twice or control.stop-during-a-tool or control.client-abort"
)
CANNOT = "resume.server-goes-away or recovery.kill-during-output"


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def states(folder: Path) -> dict[tuple[str, str], str]:
    """Of what the scenarios are meant to exercise; what else a history shows, hangs on who was faster."""
    told = {(v["requirement"], v["case"]): v["state"] for v in read(folder, "verdicts.json")}
    return {(ident, case): state for (ident, case), state in told.items() if ident in load()[case].exercises}


def proofs(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """By case the faults that fired, with what tells their messages from others; contents hold the name of
    an agent, which no two runs share."""
    found: dict[str, list[dict[str, Any]]] = {}
    for history in sorted(folder.glob("cases/*/history.jsonl")):
        for record in map(json.loads, history.read_text().splitlines()):
            if record["kind"] == "fault-fired":
                proof = {k: v for k, v in record["payload"].items() if k not in ("offset", "sha256")}
                found.setdefault(history.parent.name, []).append(record["ids"] | proof)
    return found


def test_mitmproxy_comes_to_the_same_verdicts_and_counts_what_it_cannot(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "embedded", tmp_path / "mitmproxy"
    done = kit("run", "--seed", "7", "-k", BOTH_DO, "--out", ours)
    assert done.returncode == 0, done.stdout + done.stderr
    asked = ("--carrier", "mitmproxy", "-k", f"{BOTH_DO} or {CANNOT}")
    done = kit("run", "--seed", "7", *asked, "--out", theirs)
    assert done.returncode == 0, done.stdout + done.stderr
    assert read(theirs, "env.json")["carrier"] == "mitmproxy"

    account = read(theirs, "results.json")["accounting"]
    exact = "which the carrier mitmproxy does not do exactly"
    refused = {
        f"needs: do.cut.close, {exact}": ["resume.server-goes-away"],
        f"needs: connections that end without a close, {exact}": [
            "recovery.kill-during-output",
            "recovery.kill-during-output-nobody-there",
        ],
    }
    assert account["not_run"] == refused
    assert account["selected"] == account["ran"] + 3
    for reason, cases in refused.items():
        for case in cases:
            assert f"think-conformance: {case} is not played: {reason}\n" in done.stderr
        assert f"  {len(cases):4}  {reason}\n" in done.stdout

    told = {case for cases in refused.values() for case in cases}
    played = {key: state for key, state in states(theirs).items() if key[1] not in told}
    assert played == states(ours)
    assert "passed" in played.values()
    assert proofs(theirs) == proofs(ours)
    assert sorted(proofs(ours)) == [
        "core.model-answers-an-error-status",
        "core.model-slow-first-byte",
        "resume.stall-that-heals",
    ]


def test_a_plan_it_cannot_do_starts_nothing(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "version: 1\nabout: {scenario: mine.cut, exercises: [WIRE-102]}\n"
        "faults: [{id: f, leg: client, when: {direction: down}, do: [{cut: reset}]}]\n"
        "operations: [{client: a, do: connect}]\n"
    )
    out = tmp_path / "out"
    done = kit("replay", plan, "--carrier", "mitmproxy", "--out", out)
    assert done.returncode == 2, done.stdout + done.stderr
    why = "needs: do.cut.reset, which the carrier mitmproxy does not do exactly"
    assert f"think-conformance: mine.cut is not played: {why}\n" in done.stderr
    assert read(out, "results.json")["accounting"]["not_run"] == {why: ["mine.cut"]}
    assert not (out / "target.log").exists()


def test_a_target_behind_tls_is_refused_in_one_line(tmp_path: Path) -> None:
    done = kit("run", "--target", "wss://127.0.0.1:9", "--carrier", "mitmproxy", "--out", tmp_path / "out")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "speaks no TLS" in last_line(done.stderr)
    assert not (tmp_path / "out").exists()
