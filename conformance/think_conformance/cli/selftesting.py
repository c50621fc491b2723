"""The command `selftest`: every deliberate defect turns its own requirements red, and no other.

Plays one run per defect, one after the other, each into a folder of its own that `replay` and `explain`
read like any run's.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Iterable
from pathlib import Path

import click
from msgspec import to_builtins
from msgspec.structs import replace

from think_conformance.catalogue.model import requirements, unproven
from think_conformance.checkers.base import State, Verdict
from think_conformance.cli.endings import interruptible, tell
from think_conformance.errors import Unknown, UsageError
from think_conformance.scenarios.base import Scenario, load
from think_conformance.scenarios.proof import OTHER, PER_REQUIREMENT, Proof, exercising, proving, table
from think_conformance.shell.ending import INTERRUPTED
from think_conformance.shell.files import write_whole
from think_conformance.shell.logbook import logbook
from think_conformance.shell.order import Order, options
from think_conformance.shell.run import Run
from think_conformance.shell.store import Store, fresh_folder
from think_conformance.targets.defects import Defect, defects_of

OUT = "folder of this selftest [default: think-runs/<time>]"
FULL = "play every scenario with every defect and write the whole table to table.md"
WHICH = "only this defect; may be repeated"
BUSY = 2
"""Cases at a time for each processor: most of a case is waiting."""


@click.command()
@click.option("--target", default="reference", help="a target file, or the name of a packaged target")
@click.option("--defect", "names", multiple=True, help=WHICH)
@click.option("--full", is_flag=True, help=FULL)
@click.option("--seed", type=int, default=7, help="what chance is drawn from", show_default=True)
@click.option("--jobs", type=click.IntRange(1), help="cases at a time [default: two a processor]")
@click.option("--out", type=click.Path(path_type=Path), help=OUT)
def selftest(
    target: str, names: tuple[str, ...], full: bool, seed: int, jobs: int | None, out: Path | None
) -> None:
    """Prove that the checks can fail: switch on each deliberate defect and see its requirements turn red.

    Of the scenarios that exercise what a defect breaks, the best fitting are played for each requirement, and
    a fixed sample of others; --full plays all."""
    order = Order(target=target, scenarios=list(load().values()), seed=seed, jobs=jobs)
    defects = _chosen(defects_of(options(order).target), names)
    store = Store(out or fresh_folder())
    click.echo(f"seed {seed}")
    try:
        proofs = interruptible(_all(order, defects, store, full))
    except asyncio.CancelledError:
        tell("interrupted; what was played so far is there")
        raise SystemExit(INTERRUPTED) from None
    _write(store.folder, proofs)
    if not full:
        click.echo(_left_out(proofs))
    raise SystemExit(_summary(proofs, store.folder, whole=not names))


def _chosen(defects: list[Defect], names: tuple[str, ...]) -> list[Defect]:
    known = {defect.name: defect for defect in defects}
    for name in names:
        if name not in known:
            raise Unknown("defect", name, known)
    if not known:
        raise UsageError("the target has no deliberate defects: there is nothing to prove")
    return [known[name] for name in names or known]


async def _all(order: Order, defects: list[Defect], store: Store, full: bool) -> list[Proof]:
    proofs = []
    for number, defect in enumerate(defects, 1):
        scenarios = list(load().values()) if full else proving(defect.breaks, load().values())
        began = time.monotonic()
        proof = await _prove(order, defect, scenarios, store.folder / defect.name)
        proofs.append(proof)
        took_s = time.monotonic() - began
        click.echo(
            f"[{number}/{len(defects)}] {_line(proof)} ({proof.cases} cases, {took_s:.1f} s)", err=True
        )
    return proofs


async def _prove(order: Order, defect: Defect, scenarios: list[Scenario], folder: Path) -> Proof:
    """One run with this defect switched on."""
    asked = replace(order, scenarios=scenarios, defect=defect.name)
    base = options(replace(asked, defect=None))
    ordered = replace(
        base, defect=defect.name, jobs=order.jobs or BUSY * base.jobs, nonce=secrets.token_hex(3)
    )
    store = Store(folder)
    with logbook(asked, ordered, store, tell) as ending:
        run = Run(ordered, store, lambda ended: None, tell)
        ending.exit_code = await run.play()
    return Proof(
        defect=defect.name,
        breaks=frozenset(defect.breaks),
        red=_in(run.verdicts, "failed", "warned"),
        untested=_in(run.verdicts, "not-testable"),
        cases=len(scenarios),
        exercising=len(exercising(defect.breaks, load().values())),
    )


def _in(verdicts: Iterable[Verdict], *states: State) -> frozenset[str]:
    return frozenset(v.requirement for v in verdicts if v.state in states)


def _line(proof: Proof) -> str:
    return f"NOT PROVEN {proof.defect}: {proof.wrong}" if proof.wrong else f"proven {proof.defect}"


def _left_out(proofs: list[Proof]) -> str:
    """That not everything was played, and how much."""
    played, all_of_it = sum(proof.cases for proof in proofs), sum(proof.exercising for proof in proofs)
    return (
        f"played {played} cases: for each requirement of a defect the {PER_REQUIREMENT} scenarios that fit"
        f" best, and {OTHER} others; {all_of_it} exercise what the defects break (all: --full)"
    )


def _write(folder: Path, proofs: list[Proof]) -> None:
    told = [{**to_builtins(proof), "wrong": proof.wrong} for proof in proofs]
    for one in told:
        one |= {key: sorted(one[key]) for key in ("breaks", "red", "untested")}
    write_whole(folder / "selftest.json", f"{json.dumps(told, indent=1)}\n".encode())
    write_whole(folder / "table.md", table(proofs, requirements()).encode())


def _summary(proofs: list[Proof], folder: Path, *, whole: bool) -> int:
    """What stdout holds: the defects that are not proven, the requirements that no defect breaks, one line
    last."""
    wrong = [proof for proof in proofs if proof.wrong]
    for proof in wrong:
        click.echo(_line(proof))
    broken = {i for proof in proofs for i in proof.breaks & proof.red}
    left = [i for i in requirements() if i not in broken] if whole else []
    for ident in left:
        click.echo(f"unproven {ident:9} {unproven().get(ident, 'no proven defect breaks it')}")
    code = 1 if wrong else 0
    click.echo(
        f"selftest: {len(proofs) - len(wrong)} of {len(proofs)} defects proven, {len(broken)} of"
        f" {len(requirements())} requirements can turn red, table in {folder / 'table.md'} -> exit {code}"
    )
    return code
