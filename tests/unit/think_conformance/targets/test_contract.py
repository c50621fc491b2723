"""Target files, packaged names and URLs; each mistake is one line with a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from think_conformance.errors import UsageError
from think_conformance.targets.contract import load_target, packaged_targets

GOOD = """
[target]
name = "mine"
agent = "chat"
start = ["{python}", "-m", "mine"]
"""


def written(folder: Path, text: str, name: str = "t.toml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def refusal(spec: str) -> str:
    with pytest.raises(UsageError) as caught:
        load_target(spec)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_reference_is_packaged_and_loads() -> None:
    target = load_target("reference")
    assert "reference" in packaged_targets()
    assert target.kind == "command"
    assert target.facts
    assert target.claims == ("core", "resume", "control", "recovery")
    assert target.defect_args == ["--defect"]


def test_a_file_gets_defaults_and_a_working_folder_relative_to_itself(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    target = load_target(written(tmp_path, GOOD + 'cwd = "app"\ntls = {ca = "ca.pem"}\n'))
    assert target.path_of("a b/c") == "/agents/chat/a%20b%2Fc"
    assert target.cwd == str(tmp_path / "app")
    assert target.tls.ca == str(tmp_path / "ca.pem")
    assert (target.ready, target.stop_signal, target.facts) == ("/", "SIGTERM", False)


def test_a_bare_url_is_a_target_whose_path_and_token_survive_a_proxy() -> None:
    target = load_target("wss://example.org:8443/base/?token=x")
    assert (target.kind, target.url) == ("url", "https://example.org:8443")
    assert target.query == {"token": "x"}
    assert target.path_of("n") == "/base/agents/conformance-agent/n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[target\n", "line 1"),
        ("x = 1\n", "no [target] table"),
        (GOOD + "[other]\n", "unknown key `other`"),
        (GOOD + 'claim = ["core"]\n', "did you mean `claims`?"),
        (GOOD + 'claims = ["resum"]\n', "did you mean `resume`?"),
        (GOOD + 'url = "ws://h"\n', "both `start` and `url`"),
        (
            GOOD.replace("start", "env.start").replace('["{python}", "-m", "mine"]', '"x"'),
            "neither `start` nor",
        ),
        (GOOD.replace('["{python}", "-m", "mine"]', "[]"), "`start` is empty"),
        (GOOD + "ready_timeout_s = -1\n", "ready_timeout_s"),
        (GOOD + 'heartbeat_s = "soon"\n', "heartbeat_s"),
        (GOOD + 'legs = ["wire"]\n', "legs"),
        (GOOD + 'stop_signal = "SIGNOPE"\n', "SIGNOPE"),
        (GOOD + 'path = "/x/{agent}"\n', "{name}"),
        (GOOD + 'path = "/x/{name}/{other}"\n', "{name}"),
        (GOOD + 'path = "/x/{name"\n', "`path`"),
        (GOOD + 'ready = "health"\n', "`ready`"),
        (GOOD + 'cwd = "nowhere"\n', "no folder"),
        ('[target]\nname = "x"\nagent = "y"\nurl = "ftp://h"\n', "no target URL"),
        ('[target]\nagent = "y"\nurl = "ws://h"\n', "name"),
    ],
)
def test_a_wrong_file_is_refused_by_name_and_cause(tmp_path: Path, text: str, told: str) -> None:
    message = refusal(written(tmp_path, text))
    assert message.startswith(f"{tmp_path}/t.toml: ")
    assert told in message


def test_what_cannot_be_found_or_read_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    assert "did you mean `reference`?" in refusal("refrence")
    assert "or give a .toml file" in refusal("zzz")
    written(tmp_path, GOOD, "mine.toml")
    assert f"did you mean `{tmp_path}/mine.toml`?" in refusal(str(tmp_path / "mien.toml"))
    (tmp_path / "folder.toml").mkdir()
    assert "cannot be read" in refusal(str(tmp_path / "folder.toml"))
    (tmp_path / "latin.toml").write_bytes(b"# \xe9\n")
    assert "cannot be read" in refusal(str(tmp_path / "latin.toml"))


@pytest.mark.parametrize("url", ["ftp://h", "ws://", "ws://h:99999", "ws://[h"])
def test_a_wrong_url_is_refused(url: str) -> None:
    assert refusal(url).startswith(url)
