"""What the documents show works as it stands."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import yaml

from think_conformance import baseline
from think_conformance.shell.model_server import ModelServer
from think_conformance.shell.recorder import Recorder
from think_conformance.targets.contract import Target, load_target
from think_proxy.plan import FaultPlan
from think_proxy.plan_file import load

ROOT = Path(__file__).parents[2]
KEYS_SHOWN_ABOVE_THE_TABLE = {"name", "agent", "start", "claims", "legs"}
KEYS_OF_THE_REFERENCE = {"facts"}


def example(document: str, language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_target_file_of_the_guide_loads(tmp_path: Path) -> None:
    path = tmp_path / "my-think.toml"
    path.write_text(example("docs/target.md", "toml"))
    assert load_target(str(path)).legs == ("client", "model")


def test_the_guide_names_every_key_of_a_target_file() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", (ROOT / "docs/target.md").read_text(), re.MULTILINE)
    named = {key for row in rows for key in re.findall(r"`([a-z_]+)`", row)}
    keys = set(Target.__struct_fields__) - KEYS_SHOWN_ABOVE_THE_TABLE - KEYS_OF_THE_REFERENCE
    assert keys <= named


def test_the_target_file_of_the_url_page_loads(tmp_path: Path) -> None:
    path = tmp_path / "there.toml"
    path.write_text(example("docs/url-targets.md", "toml"))
    assert load_target(str(path)).legs == ("client", "model")


def test_the_script_of_the_url_page_is_served() -> None:
    scripts = yaml.safe_load(example("docs/url-targets.md", "yaml"))
    ModelServer().serve_anybody(scripts, Recorder(None))


def test_the_baseline_of_its_page_loads() -> None:
    found = baseline.load(example("docs/baseline.md", "toml"), "docs/baseline.md", date(2027, 6, 30))
    assert [str(entry) for entry in found.entries] == ["WIRE-104 in resume.page-refresh"]


def test_the_plan_of_the_faults_page_loads() -> None:
    plan = load(example("docs/faults.md", "yaml"), "docs/faults.md", FaultPlan)
    assert [fault.id for fault in plan.faults] == ["cut-at-the-third-hello"]


def test_every_link_between_documents_leads_somewhere() -> None:
    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.relative_to(ROOT)} links to {link}"
