"""A warning of a batch that leaves a run too few steps."""

from __future__ import annotations

from app.document import format as fmt
from app.plan.words import tokens
from core.scenario import Scenario
from core.scenario.task_size import batch_for_steps, few_long_steps
from core.search.plan import Plan
from core.units import HOUR_S


def few_steps(scenario: Scenario, plan: Plan) -> str:
    """What is wrong with the batch of a plan of few, long steps, and a batch that would do; else
    empty."""
    step_s = float(sum(plan.step_s.values()))
    if not few_long_steps(num_steps=plan.num_steps, step_s=step_s):
        return ""
    size = scenario.global_batch_size
    smaller = batch_for_steps(global_batch_size=size, num_steps=plan.num_steps)
    steps = "optimizer step" if plan.num_steps == 1 else "optimizer steps"
    return (
        f"Only {fmt.count(plan.num_steps)} {steps} of {fmt.days(step_s / HOUR_S)}: a batch of "
        f"{fmt.count(size)} sequences is large for {tokens(scenario)}. Is {fmt.count(smaller)} "
        "meant?"
    )
