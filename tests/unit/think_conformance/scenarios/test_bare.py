"""Plans for any model do not rely on what one says."""

from __future__ import annotations

from think_conformance.scenarios.base import load


def test_no_plan_for_any_model_holds_or_counts_on_its_words() -> None:
    plans = {s.id: s.plan for s in load().values() if s.plan.any_model}
    assert len(plans) >= 3
    for name, plan in plans.items():
        steps = [step for calls in plan.model.values() for said in calls for step in said]
        assert all(step == "done" or set(step) == {"text"} for step in steps), name
        assert all(fault.leg == "client" and (fault.when.nth or 1) == 1 for fault in plan.faults), name
        for operation in plan.operations:
            seen = operation.after.seen if operation.after else None
            if seen is not None:
                assert seen.source == "client", name
                assert seen.nested is None or seen.nth == 1, name
