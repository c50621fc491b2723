"""The pytest plugin: `pytest --think-target TARGET` adds one test per case of the kit.

Light: unless `--think-target` is given, this file is all that is imported.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("think", "conformance of a durable chat agent (think-conformance)")
    group.addoption(
        "--think-target",
        metavar="TARGET",
        help="test this agent too, a case a test: a target file, a URL, or the name of a packaged target",
    )
    group.addoption(
        "--think-profile",
        metavar="PROFILE",
        action="append",
        default=[],
        help="only cases of this profile; may be repeated",
    )
    group.addoption(
        "--think-baseline",
        metavar="FILE",
        type=Path,
        help="known failures of the target: what it lists is an expected failure",
    )
    group.addoption(
        "--think-carrier",
        metavar="NAME",
        default="embedded",
        choices=["embedded", "mitmproxy"],
        help="what carries the faults; a plan it does not do exactly is skipped",
    )
    group.addoption(
        "--think-out",
        metavar="DIR",
        type=Path,
        help="folder of the run [default: think-runs/<time>]",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "think: a case of the conformance kit, added by --think-target")
    if config.getoption("think_target") is not None:
        from think_conformance.plugin.cases import Cases

        config.pluginmanager.register(Cases(config), "think-conformance-cases")
    elif any(config.getoption(name) for name in ("think_profile", "think_baseline", "think_out")):
        raise pytest.UsageError("--think-profile, --think-baseline and --think-out need --think-target")
