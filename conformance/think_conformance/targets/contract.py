"""The target file: how an implementation is started or reached, and what it claims.

Owns the keys of `[target]` and every error a user can make in them. Reads files, starts nothing.
"""

from __future__ import annotations

import re
import signal
import string
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec
from msgspec import Meta, Struct

from think_conformance.catalogue.model import Profile
from think_conformance.errors import UsageError, suggest
from think_conformance.given import text_of

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Text = Annotated[str, Meta(min_length=1)]
Leg = Literal["client", "routing", "model", "effects"]

_PROFILES: tuple[str, ...] = get_args(Profile)
_SCHEMES = {"ws": "http", "wss": "https", "http": "http", "https": "https"}
_PORTS = {"http": 80, "https": 443}
_BARE_CLAIMS = ("core", "resume")
"""What is asked of a service behind a URL that claims nothing."""


class Tls(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """`verify`: check the certificate; `ca`: a PEM file to check it against, relative to the target file."""

    verify: bool = True
    ca: str | None = None


class Target(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True, kw_only=True):
    """One implementation under test. Exactly one of `start` (a command) and `url` is given. Behind a
    `url` runs what the kit can neither start nor end; unless it was pointed at `model_listen` (and
    `effects_listen`), HOST:PORT each, it asks a model of its own.

    `{python}` in `prepare`, `start` and `defects_command` is the interpreter that runs the kit. `prepare`
    is run to its end before a run starts the target for the first time. `cwd` is relative
    to the target file and absolute once loaded; where it is not given, the kit's own folder is used.
    `restart_grace_s` is how long a process may take to end after `stop_signal`, and its port to
    become free. `port`: for a target that cannot take its port from the environment; cases then run one
    by one. `facts` says that requirements meant for the reference alone apply.
    """

    name: Text
    agent: Text
    prepare: list[str] = []
    start: list[str] | None = None
    url: str | None = None
    cwd: str | None = None
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    tls: Tls = Tls()
    path: str = "/agents/{agent}/{name}"
    stop_signal: str = "SIGTERM"
    port: Annotated[int, Meta(ge=1, le=65_535)] | None = None
    ready: str = "/"
    ready_timeout_s: Seconds = 15.0
    restart_grace_s: Seconds = 5.0
    heartbeat_s: Seconds = 30.0
    legs: tuple[Leg, ...] = ("client",)
    claims: tuple[str, ...] = ("core",)
    defects_command: list[str] = []
    defect_args: list[str] = []
    facts: bool = False
    model_listen: str | None = None
    effects_listen: str | None = None

    def __post_init__(self) -> None:
        if self.start is None and self.url is None:
            raise ValueError(
                "neither `start` nor `url` is given: say how to start the target or where it runs"
            )
        if self.start is not None and self.url is not None:
            raise ValueError("both `start` and `url` are given: keep one of them")
        if self.start == []:
            raise ValueError("`start` is empty: give the command and its arguments")
        for claim in self.claims:
            if claim not in _PROFILES:
                raise ValueError(f"`claims` names the unknown profile `{claim}`{suggest(claim, _PROFILES)}")
        if self.stop_signal not in signal.Signals.__members__:
            raise ValueError(
                f"`stop_signal` is `{self.stop_signal}`: give the name of a signal, such as SIGTERM"
            )
        if not re.fullmatch(r"/[!-~]*", self.ready):
            raise ValueError(f"`ready` is `{self.ready}`: give a path that starts with /, as a URL has it")
        _check_path(self.path)
        _check_names(self.env, self.headers)
        if self.url is not None:
            _check_url(self.url)
        for key in ("model_listen", "effects_listen"):
            _check_listen(key, getattr(self, key), self.url)
        if self.url is not None and "model" in self.legs and self.model_listen is None:
            raise ValueError("`legs` names model: behind a `url` that needs `model_listen`")

    @property
    def kind(self) -> Literal["command", "url"]:
        """Whether the kit starts the target, or only dials it."""
        return "url" if self.start is None else "command"

    @property
    def service(self) -> tuple[str, int]:
        """Host and port behind the URL."""
        parts = urlsplit(self.url or "")
        assert parts.hostname is not None, "only where there is a URL"
        return parts.hostname, parts.port or _PORTS[parts.scheme]

    @property
    def secure(self) -> bool:
        """Whether the URL speaks TLS."""
        return (self.url or "").startswith("https:")

    def path_of(self, instance: str) -> str:
        """The path of one agent instance; the name is one segment, whatever it holds (WIRE-18)."""
        return self.path.format(agent=self.agent, name=quote(instance, safe=""))


def packaged_targets() -> list[str]:
    """The names of the targets that come with the kit."""
    entries = files("think_conformance.targets").iterdir()
    return sorted(entry.name.removesuffix(".toml") for entry in entries if entry.name.endswith(".toml"))


def load_target(spec: str) -> Target:
    """The target a user named: a path to a .toml file, the name of a packaged target, or a ws, wss,
    http or https URL. UsageError when there is none or it is not well formed."""
    if "://" in spec:
        return _of_url(spec)
    if spec.endswith(".toml") or "/" in spec:
        return _of_file(Path(spec))
    if spec in packaged_targets():
        packaged = files("think_conformance.targets").joinpath(f"{spec}.toml")
        return _parse(packaged.read_text(encoding="utf-8"), f"target `{spec}`", Path())
    raise UsageError(f"no target is called `{spec}`{suggest(spec, packaged_targets())}; or give a .toml file")


def _of_url(url: str) -> Target:
    try:
        name = urlsplit(url).netloc
        return _settled(Target(name=name, agent="conformance-agent", url=url, claims=_BARE_CLAIMS), Path())
    except ValueError as error:
        raise UsageError(f"{url}: {error}") from None


def _of_file(path: Path) -> Target:
    if not path.exists():
        near = [str(found) for found in sorted(path.parent.glob("*.toml"))]
        raise UsageError(f"target file {path} does not exist{suggest(str(path), near)}")
    return _parse(text_of(path, "target file"), str(path), path.parent)


def _parse(text: str, where: str, folder: Path) -> Target:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: not TOML: {error}") from None
    table = tables.pop("target", None)
    if not isinstance(table, dict):
        raise UsageError(f"{where}: no [target] table; start the file with [target]")
    known = list(Target.__struct_fields__)
    for key in [*tables, *table]:
        if key in tables or key not in known:
            raise UsageError(f"{where}: unknown key `{key}`{suggest(key, known)}")
    if "url" in table:
        table.setdefault("claims", _BARE_CLAIMS)
        table.setdefault("legs", ("client", "model") if "model_listen" in table else ("client",))
    try:
        _check_texts(table)
        return _settled(msgspec.convert(table, Target), folder)
    except ValueError as error:
        raise UsageError(f"{where}: {' '.join(str(error).split())}") from None


def _settled(target: Target, folder: Path) -> Target:
    """With paths made absolute, and of the URL only the origin left: its path is put before the template,
    its query to the others, so that both stay when a proxy stands in between."""
    changes: dict[str, Any] = {}
    if target.cwd is not None:
        changes["cwd"] = str((folder / target.cwd).resolve())
        if not Path(changes["cwd"]).is_dir():
            raise ValueError(
                f"`cwd` is {changes['cwd']}, which is no folder; it is relative to the target file"
            )
    if target.tls.ca is not None:
        changes["tls"] = Tls(target.tls.verify, str((folder / target.tls.ca).resolve()))
    if target.url is not None:
        parts = urlsplit(target.url)
        prefix = parts.path.rstrip("/").replace("{", "{{").replace("}", "}}")
        changes["url"] = f"{_SCHEMES[parts.scheme]}://{parts.netloc}"
        changes["path"] = prefix + target.path
        changes["query"] = {**dict(parse_qsl(parts.query)), **target.query}
    return msgspec.structs.replace(target, **changes)


def _check_texts(value: Any, where: str = "") -> None:
    """ValueError for what no command line, environment, path or header can hold."""
    if isinstance(value, dict):
        for key, part in value.items():
            _check_texts(key, where)
            _check_texts(part, f"{where}.{key}" if where else key)
    elif isinstance(value, list):
        for part in value:
            _check_texts(part, where)
    elif isinstance(value, str) and "\0" in value:
        raise ValueError(f"`{where}` holds a NUL character")


def _check_names(env: dict[str, str], headers: dict[str, str]) -> None:
    for name in env:
        if not name or "=" in name:
            raise ValueError(f"`env` names the variable `{name}`: a name is not empty and has no =")
    for name, value in headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not value.isprintable():
            raise ValueError(
                f"`headers` has {name!r}, which is no header: no blanks in a name, no line breaks"
            )


def _check_path(path: str) -> None:
    try:
        parts = list(string.Formatter().parse(path))
    except ValueError as error:
        raise ValueError(f"`path` is `{path}`: {error}") from None
    fields = {field for _, field, _, _ in parts if field is not None}
    plain = not any(shape or conversion for _, _, shape, conversion in parts)
    if not plain or not path.startswith("/") or "name" not in fields or fields - {"agent", "name"}:
        raise ValueError(f"`path` is `{path}`: give a path with {{name}} and, if needed, {{agent}}")


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ValueError(f"`{url}` is no target URL: give ws://HOST:PORT, wss://, http:// or https://")
    if parts.username is not None:
        raise ValueError("the URL holds a name or password: give them as `headers` in a target file")
    try:
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"`{url}` is no target URL: {error}") from None


def address(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT, [HOST]:PORT or a port alone, which is loopback. ValueError."""
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"`{text}` is no address: give HOST:PORT, such as 127.0.0.1:18080")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def _check_listen(key: str, given: str | None, url: str | None) -> None:
    if given is None:
        return
    if url is None:
        raise ValueError(f"`{key}` is for a `url`: what is started is told where by its environment")
    try:
        _, port = address(given)
    except ValueError as error:
        raise ValueError(f"`{key}`: {error}") from None
    if port == 0:
        raise ValueError(f"`{key}` is {given}: give the port that the service was told")
