"""What a user asks for, and the run that it means, with every name checked.

One home for `run`, `replay` and the pytest plugin, so that the same words mean the same run.
"""

from __future__ import annotations

import os
import platform
import random
import secrets
from datetime import UTC, date, datetime
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import Any

from msgspec import Struct

from think_conformance import baseline
from think_conformance.baseline import Baseline
from think_conformance.catalogue.model import requirements
from think_conformance.errors import Unknown, UsageError
from think_conformance.plan import Plan
from think_conformance.scenarios import selection
from think_conformance.scenarios.base import Scenario, load
from think_conformance.shell.case import check_faults
from think_conformance.shell.run import Options
from think_conformance.targets.contract import Target, load_target
from think_conformance.targets.defects import defects_of
from think_proxy import plan_file


class Order(Struct, frozen=True, kw_only=True):
    """What is asked for. `target` is a file or the name of a packaged target; `scenarios` None means
    those that `profiles` and `expression` select; `seed` None is drawn, `jobs` None is one a processor;
    `timeout_s` is seconds for one case."""

    target: str = "reference"
    scenarios: list[Scenario] | None = None
    profiles: tuple[str, ...] = ()
    expression: str | None = None
    defect: str | None = None
    baseline: Path | None = None
    seed: int | None = None
    jobs: int | None = None
    repeat: int = 1
    timeout_s: float = 60.0


def options(order: Order) -> Options:
    """The run. UsageError, one line, for whatever a user can get wrong."""
    if not 0 < order.timeout_s < inf:
        raise UsageError(f"--timeout is {order.timeout_s:g}: give a number of seconds above 0")
    if order.seed is not None and not 0 <= order.seed < 2**63:
        raise UsageError(f"--seed is {order.seed}: give a whole number from 0 to 2**63 - 1")
    target = load_target(order.target)
    if target.start is None:
        raise UsageError("testing a URL comes later: give a target file with `start`")
    if order.defect is not None:
        _check_defect(target, order.defect)
    scenarios = _selected(order) if order.scenarios is None else order.scenarios
    for scenario in scenarios:
        check_faults(scenario.plan.faults)
    return Options(
        target=target,
        scenarios=scenarios,
        profiles=frozenset(order.profiles),
        seed=random.SystemRandom().randrange(2**31) if order.seed is None else order.seed,
        nonce=secrets.token_hex(3),
        jobs=order.jobs or _processors(),
        repeat=order.repeat,
        timeout_s=order.timeout_s,
        defect=order.defect,
        baseline=Baseline() if order.baseline is None else baseline_of(order.baseline, target.name),
    )


def environment(order: Order, options: Options) -> dict[str, Any]:
    """What env.json says of a run that begins now. `spec` is how the target was named, a file in full."""
    file = Path(order.target)
    return {
        "kit": version("think-conformance"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "target": {
            "name": options.target.name,
            "spec": str(file.resolve()) if file.is_file() else order.target,
            "defect": options.defect,
        },
        "seed": options.seed,
        "jobs": options.jobs,
        "repeat": options.repeat,
        "profiles": sorted(options.profiles),
        "scenarios": [scenario.id for scenario in options.scenarios],
        "baseline": str(order.baseline.resolve()) if order.baseline else None,
        "cases": len(options.scenarios) * options.repeat,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def today() -> date:
    """The day by which entries of a baseline expire."""
    return datetime.now(UTC).date()


def baseline_text(path: Path) -> str:
    """The content of a baseline file. UsageError, one line, when there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"baseline {path} cannot be read: {why}") from None


def baseline_of(path: Path, target: str | None) -> Baseline:
    """The baseline in a file, as of today. UsageError, one line, when it is not well formed, or of
    another target than this one; None is a target that nobody knows."""
    found = baseline.load(baseline_text(path), str(path), today())
    if None not in (found.target, target) and found.target != target:
        raise UsageError(f"{path}: the baseline is of target `{found.target}`, the run of `{target}`")
    return found


def planned(path: Path) -> Scenario:
    """The scenario that a plan file holds. UsageError names line and column of what is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"plan {path} cannot be read: {error}") from None
    try:
        plan = plan_file.load(text, str(path), Plan)
    except plan_file.PlanError as error:
        raise UsageError(str(error)) from None
    for ident in plan.about.exercises:
        if ident not in requirements():
            raise Unknown("requirement", ident, requirements())
    about = plan.about
    return Scenario(id=about.scenario, title=about.title, exercises=about.exercises, plan=plan)


def _selected(order: Order) -> list[Scenario]:
    chosen = selection.by_profile(load().values(), requirements(), order.profiles)
    if order.expression:
        chosen = selection.by_expression(chosen, order.expression)
    if not chosen:
        raise UsageError("no scenario is selected: loosen --profile or -k")
    return chosen


def _check_defect(target: Target, defect: str) -> None:
    known = [d.name for d in defects_of(target)]
    if defect not in known:
        raise Unknown("defect", defect, known)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
