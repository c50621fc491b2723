"""What one version of Cloudflare's Think is made of, as data, and where it is kept. Starts nothing.

A recipe is a folder with `package.json` and `package-lock.json`. The packages are kept in a cache
folder named by the hash of that lock, so that two versions, or two locks of one, never meet; the
bundle lies beside them, named by the hash of what it is built from.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from think_conformance.errors import Unknown

_HERE = Path(__file__).parent
RECIPES = _HERE / "recipes"
WORKER = _HERE / "worker"

CACHE_VARIABLE = "THINK_CONFORMANCE_CACHE"

# What the published packages need to run in workerd: it brings `cloudflare:*` and `node:*` itself,
# some dependencies name the latter without prefix or by `require`.
BUNDLE_FLAGS = (
    "--bundle",
    "--format=esm",
    "--platform=neutral",
    "--target=es2022",
    "--main-fields=module,main",
    "--conditions=workerd,worker,browser,import",
    "--external:cloudflare:*",
    "--external:node:*",
    "--alias:cloudflare:email=./email.js",
    "--alias:crypto=node:crypto",
    "--alias:path=node:path",
    "--alias:async_hooks=node:async_hooks",
    "--banner:js=import { createRequire } from 'node:module'; const require = createRequire('/');",
    "--log-level=error",
)


def versions() -> list[str]:
    """Every version there is a recipe for."""
    return sorted(folder.name for folder in RECIPES.iterdir())


@dataclass(frozen=True, slots=True)
class Recipe:
    """One version. `home` is its folder in the cache, which need not exist."""

    version: str
    home: Path

    @classmethod
    def of(cls, version: str, environment: Mapping[str, str] = os.environ) -> Recipe:
        """Raises Unknown for a version without a recipe."""
        if version not in versions():
            raise Unknown("version of cloudflare-think", version, versions())
        lock = (RECIPES / version / "package-lock.json").read_bytes()
        name = f"cloudflare-think-{version}-{hashlib.sha256(lock).hexdigest()[:12]}"
        return cls(version, _cache(environment) / name)

    @property
    def sources(self) -> Path:
        """The folder of `package.json` and its lock."""
        return RECIPES / self.version

    @property
    def modules(self) -> Path:
        """Where npm puts the packages."""
        return self.home / "node_modules"

    @property
    def bundle(self) -> Path:
        """The folder of the bundled worker and its workerd configuration."""
        built_from = hashlib.sha256("\0".join(BUNDLE_FLAGS).encode())
        for source in sorted(WORKER.iterdir()):
            built_from.update(source.name.encode() + b"\0" + source.read_bytes())
        return self.home / f"bundle-{built_from.hexdigest()[:12]}"

    def tool(self, package: str, program: str) -> Path | None:
        """The native program that npm installed for this machine; None when there is none."""
        return next(iter(sorted(self.modules.glob(f"{package}/bin/{program}"))), None)

    @property
    def workerd(self) -> Path | None:
        return self.tool("@cloudflare/workerd-*", "workerd")

    @property
    def complete(self) -> bool:
        """Whether it can be served. Both folders appear whole or not at all."""
        return self.workerd is not None and (self.bundle / "worker.js").is_file()

    def serve_command(self, port: str, data_dir: str) -> list[str]:
        """What listens on that port of loopback and keeps its state in that folder."""
        return [
            str(self.workerd),
            "serve",
            str(self.bundle / "workerd.capnp"),
            f"--socket-addr=http=127.0.0.1:{port}",
            f"--directory-path=disk={data_dir}",
        ]


def _cache(environment: Mapping[str, str]) -> Path:
    if chosen := environment.get(CACHE_VARIABLE):
        return Path(chosen).expanduser().absolute()
    base = environment.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "think-conformance"
