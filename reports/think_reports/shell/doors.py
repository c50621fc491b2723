"""The entry points of the group `think_conformance.reports`: a run directory in, a report out.

Each raises UsageError, one line, when the directory cannot be read or written.
"""

from __future__ import annotations

from pathlib import Path

from think_reports import drawing, html, json_out, junit, text
from think_reports.shell import files
from think_reports.timeline import timeline


def write_json(run_dir: Path) -> Path:
    """Write `results.json`; its path."""
    return files.write(run_dir, "results.json", json_out.render(files.report(run_dir)))


def write_junit(run_dir: Path) -> Path:
    """Write `junit.xml`; its path."""
    return files.write(run_dir, "junit.xml", junit.render(files.report(run_dir)))


def write_html(run_dir: Path) -> Path:
    """Write `report.html`, with a picture of each case that needs a look; its path."""
    report = files.report(run_dir)
    wanted = dict(html.needs_a_look(report))
    pictures = {
        case: drawing.svg(timeline(history, wanted[case]), f"What happened in {case}")
        for case, history in files.histories(run_dir)
        if case in wanted
    }
    return files.write(run_dir, "report.html", html.render(report, pictures, str(run_dir)))


def render_text(run_dir: Path) -> str:
    """The summary for a terminal, as text."""
    return text.render(files.report(run_dir))
