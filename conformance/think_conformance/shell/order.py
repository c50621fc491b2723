"""What a user asks for, and the run that it means, with every name checked.

One home for `run`, `replay` and the pytest plugin, so that the same words mean the same run.
"""

from __future__ import annotations

import os
import platform
import random
import secrets
from collections.abc import Callable
from datetime import UTC, date, datetime
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from think_conformance import baseline
from think_conformance.baseline import Baseline
from think_conformance.catalogue.model import requirements
from think_conformance.catalogue.revisions import revision
from think_conformance.errors import Unknown, UsageError
from think_conformance.given import text_of
from think_conformance.plan import Plan
from think_conformance.scenarios.base import Scenario, load
from think_conformance.scenarios.selection import by_expression, by_ids, by_profile, share
from think_conformance.shell.case import check_faults
from think_conformance.shell.recorder import PAYLOAD_LIMIT
from think_conformance.shell.run import Options
from think_conformance.shell.store import asked_of, unsettled
from think_conformance.targets.contract import Target, load_target
from think_conformance.targets.defects import defects_of
from think_conformance.wire.codec import dumps
from think_proxy import plan_file
from think_proxy.carriers.abilities import EMBEDDED
from think_proxy.carriers.choice import check_carrier
from think_proxy.carriers.supervised import Unavailable

PLAN_LIMIT = PAYLOAD_LIMIT // 2
"""Bytes of a plan that the first record of a history has room for, beside what else it tells."""


class Order(Struct, frozen=True, kw_only=True):
    """What is asked for. `target` is a file, the name of a packaged target or a URL; `scenarios` None means
    those that all of `profiles`, `ids` (of requirements), `expression`, `rerun_failed` (the folder of a run)
    and `shard` (`I/N`) select; `seed` None is drawn, `jobs` None is one a processor; `timeout_s` is seconds
    for one case, `time_limit_s` for all; `revision` is the set of requirements that scores; `carrier` carries
    the faults."""

    target: str = "reference"
    scenarios: list[Scenario] | None = None
    profiles: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    expression: str | None = None
    rerun_failed: Path | None = None
    shard: str | None = None
    defect: str | None = None
    baseline: Path | None = None
    seed: int | None = None
    jobs: int | None = None
    repeat: int = 1
    timeout_s: float = 60.0
    time_limit_s: float | None = None
    revision: int | None = None
    carrier: str = EMBEDDED


def options(order: Order) -> Options:
    """The run. UsageError, one line, for whatever a user can get wrong."""
    for name, seconds in (("--timeout", order.timeout_s), ("--time-limit", order.time_limit_s)):
        if seconds is not None and not 0 < seconds < inf:
            raise UsageError(f"{name} is {seconds:g}: give a number of seconds above 0")
    if order.seed is not None and not 0 <= order.seed < 2**63:
        raise UsageError(f"--seed is {order.seed}: give a whole number from 0 to 2**63 - 1")
    target = load_target(order.target)
    if order.defect is not None:
        _check_defect(target, order.defect)
    if order.revision is not None:
        revision(order.revision)
    scenarios = _selected(order) if order.scenarios is None else order.scenarios
    for scenario in scenarios:
        check_faults(scenario.plan.faults)
    try:
        check_carrier(order.carrier, tls=target.secure)
    except Unavailable as unavailable:
        raise UsageError(str(unavailable)) from None
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
        time_limit_s=order.time_limit_s,
        revision=order.revision,
        total=len(load()) if order.scenarios is None else len(scenarios),
        carrier=order.carrier,
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
        "revision": options.revision,
        "shard": order.shard,
        "carrier": options.carrier,
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
    return text_of(path, "baseline")


def baseline_of(path: Path, target: str | None) -> Baseline:
    """The baseline in a file, as of today. UsageError, one line, when it is not well formed, or of
    another target than this one; None is a target that nobody knows."""
    found = baseline.load(baseline_text(path), str(path), today())
    if None not in (found.target, target) and found.target != target:
        raise UsageError(f"{path}: the baseline is of target `{found.target}`, the run of `{target}`")
    return found


def planned(path: Path) -> Scenario:
    """The scenario that a plan file holds. UsageError names line and column of what is wrong."""
    text = text_of(path, "plan")
    try:
        plan = plan_file.load(text, str(path), Plan)
    except plan_file.PlanError as error:
        raise UsageError(str(error)) from None
    if len(dumps(plan)) > PLAN_LIMIT:
        raise UsageError(f"plan {path} is too large: more than {PLAN_LIMIT} bytes as JSON")
    for ident in plan.about.exercises:
        if ident not in requirements():
            raise Unknown("requirement", ident, requirements())
    about = plan.about
    return Scenario(id=about.scenario, title=about.title, exercises=about.exercises, plan=plan)


def again(order: Order, run_dir: Path) -> Order:
    """The order on the target of an earlier run, with its defect, baseline and revision where no others are
    asked for. UsageError when the run directory does not name a target."""
    asked = asked_of(run_dir)
    if asked.target.spec is None:
        raise UsageError(f"{run_dir} does not say which target was run: name it with --target")
    baseline = None if asked.baseline is None else Path(asked.baseline)
    return replace(
        order,
        target=asked.target.spec,
        defect=asked.target.defect if order.defect is None else order.defect,
        baseline=order.baseline or baseline,
        revision=asked.revision if order.revision is None else order.revision,
    )


def _selected(order: Order) -> list[Scenario]:
    """What all that was asked for leaves. UsageError names the first that leaves nothing."""
    steps: tuple[tuple[str, bool, Callable[[list[Scenario]], list[Scenario]]], ...] = (
        ("--profile", bool(order.profiles), lambda s: by_profile(s, requirements(), order.profiles)),
        ("--id", bool(order.ids), lambda s: by_ids(s, requirements(), order.ids)),
        ("-k", order.expression is not None, lambda s: by_expression(s, order.expression or "")),
        ("--rerun-failed", order.rerun_failed is not None, lambda s: _unsettled(s, order.rerun_failed)),
        ("--shard", order.shard is not None, lambda s: share(s, order.shard or "")),
    )
    chosen, asked = list(load().values()), []
    for name, wanted, choose in steps:
        if not wanted:
            continue
        asked.append(name)
        found = choose(chosen)
        if not found:
            raise UsageError(
                f"no scenario is selected: {name} leaves none of {len(chosen)}; loosen {' or '.join(asked)}"
            )
        chosen = found
    return chosen


def _unsettled(scenarios: list[Scenario], run_dir: Path | None) -> list[Scenario]:
    assert run_dir is not None, "asked for"
    _, names = unsettled(run_dir)
    for name in names:
        if name not in load():
            raise Unknown("scenario", name, load())
    return [scenario for scenario in scenarios if scenario.id in names]


def _check_defect(target: Target, defect: str) -> None:
    known = [d.name for d in defects_of(target)]
    if defect not in known:
        raise Unknown("defect", defect, known)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
