"""Target files, packaged names and URLs; each mistake is one line with a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from think_conformance.errors import UsageError
from think_conformance.targets.contract import address, load_target, packaged_targets

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
    assert (target.service, target.secure) == (("example.org", 8443), True)
    assert (target.claims, target.legs) == (("core", "resume"), ("client",))
    assert load_target("ws://h").service == ("h", 80)
    assert load_target("https://h").service == ("h", 443)


URL = '[target]\nname = "x"\nagent = "y"\nurl = "ws://h"\n'


def test_a_url_in_a_file_claims_what_a_bare_one_does_unless_it_says_more(tmp_path: Path) -> None:
    bare = load_target(written(tmp_path, URL))
    assert (bare.claims, bare.legs) == (("core", "resume"), ("client",))
    pointed = load_target(written(tmp_path, URL + 'model_listen = "127.0.0.1:18080"\nclaims = ["core"]\n'))
    assert (pointed.claims, pointed.legs) == (("core",), ("client", "model"))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("8080", ("127.0.0.1", 8080)),
        (":8080", ("127.0.0.1", 8080)),
        ("[::1]:0", ("::1", 0)),
        ("0.0.0.0:65535", ("0.0.0.0", 65535)),
    ],
)
def test_an_address_is_host_and_port(text: str, meant: tuple[str, int]) -> None:
    assert address(text) == meant


@pytest.mark.parametrize("text", ["", "h", "h:", "h:x", "h:-1", "h:65536", "h:²"])
def test_what_is_no_address_says_how_one_looks(text: str) -> None:
    with pytest.raises(ValueError, match=r"give HOST:PORT, such as 127\.0\.0\.1:18080"):
        address(text)


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
        (GOOD + "port = 70000\n", "$.port"),
        (GOOD + "port = 0\n", "$.port"),
        (GOOD + "ready_timeout_s = inf\n", "ready_timeout_s"),
        (GOOD + 'ready = "/a b"\n', "`ready`"),
        (GOOD + 'path = "/{name:>99999999}"\n', "`path`"),
        (GOOD + 'path = "/{name!r}"\n', "`path`"),
        (GOOD.replace("-m", r"\u0000"), "`start` holds a NUL character"),
        (GOOD + r'env = {A = "\u0000"}', "`env.A` holds a NUL character"),
        (GOOD + 'env = {"A=B" = "x"}\n', "`A=B`"),
        (GOOD + r'headers = {A = "x\r\nB: y"}', "no line breaks"),
        (GOOD + 'headers = {"A B" = "x"}\n', "no blanks"),
        (GOOD.replace('"chat"', '""'), "$.agent"),
        ('[target]\nname = "x"\nagent = "y"\nurl = "ftp://h"\n', "no target URL"),
        ('[target]\nagent = "y"\nurl = "ws://h"\n', "name"),
        ('[target]\nname = "x"\nagent = "y"\nurl = "ws://u:p@h"\n', "give them as `headers`"),
        (GOOD + 'model_listen = "127.0.0.1:1"\n', "`model_listen` is for a `url`"),
        ('[target]\nname = "x"\nagent = "y"\nurl = "ws://h"\nmodel_listen = "h"\n', "no address"),
        ('[target]\nname = "x"\nagent = "y"\nurl = "ws://h"\neffects_listen = "0"\n', "was told"),
        ('[target]\nname = "x"\nagent = "y"\nurl = "ws://h"\nlegs = ["model"]\n', "needs `model_listen`"),
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


@pytest.mark.parametrize("url", ["ftp://h", "ws://", "ws://h:99999", "ws://[h", "ws://u@h"])
def test_a_wrong_url_is_refused(url: str) -> None:
    assert refusal(url).startswith(url)
