"""What a run directory says today: its histories judged again by the checkers of now, and what did not run
told as it was."""

from __future__ import annotations

from pathlib import Path

import msgspec

from think_conformance.checkers.agreement import scenario_of
from think_conformance.checkers.tally import Tally
from think_conformance.errors import UsageError
from think_conformance.shell.recorder import read_history
from think_conformance.shell.store import accounting_of, histories_of, verdicts_of


class Judged(msgspec.Struct, frozen=True):
    """How many histories there were, and the scenarios that the run did not come to the end of."""

    histories: int
    cut_off: frozenset[str]


def judge(run_dir: Path, tally: Tally) -> Judged:
    """Adds the verdicts of a run to a tally. UsageError, one line, for what is no run, or a broken one."""
    files = histories_of(run_dir)
    if not files and not (run_dir / "env.json").exists():
        raise UsageError(f"{run_dir} holds no cases/*/history.jsonl: name the folder of a run")
    account = accounting_of(run_dir)
    left = account.reasons if account else {}
    files = [file for file in files if file.parent.name not in left]
    if account and len(files) < account.ran:
        raise UsageError(f"{run_dir} is not whole: {account.ran} cases ran, {len(files)} histories are there")
    for file in files:
        history = read_history(file)
        try:
            tally.judge(file.parent.name, history)
        except UsageError as error:
            raise UsageError(f"{file}: {error}") from None
    told = verdicts_of(run_dir)
    cut_off = frozenset(account.cut_off if account else ())
    for case, reason in left.items():
        # a verdict that a baseline made another still ends in the reason
        ids = dict.fromkeys(v.requirement for v in told if v.case == case and v.reason.endswith(reason))
        tally.skip(case, ids, reason, "inconclusive" if case in cut_off else "not-applicable")
    return Judged(len(files), frozenset(map(scenario_of, cut_off)))
