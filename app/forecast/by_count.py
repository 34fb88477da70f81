"""Find the best layout of a plan's machine at many GPU counts, in one search."""

from __future__ import annotations

from app.forecast.vary import PlansByCount, plans_at
from core.errors import ScenarioError
from core.money.scaling import counts_around
from core.search.plan import Plan

MOST_GPUS = 131_072


def plans_by_count(plan: Plan) -> PlansByCount:
    """The best layouts of the plan's machine at GPU counts around the plan's own."""
    machine = plan.job.machine
    counts = counts_around(
        num_gpus=plan.num_gpus,
        per_instance=plan.offer.gpu_count,
        most=int(min(machine.most_gpus, MOST_GPUS)),
    )
    found = plans_at(plan.job.scenario, machine, counts)
    if not found.plans:
        raise ScenarioError("No layout fits on this machine at any of the GPU counts around.")
    return found
