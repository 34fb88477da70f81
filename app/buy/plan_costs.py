"""The training and the terms behind the cost of one plan, so that they can be varied."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.forecast.costs import Columns, Costs, costs_of
from app.forecast.machines import accelerator_of, machine
from app.forecast.price_book import with_terms
from app.forecast.rows.row import Row
from core.numeric import Z_90, as_float
from core.scenario import Scenario
from core.search.plan import Plan


def costs_of_plan(scenario: Scenario, plan: Plan) -> Costs:
    """The costs of one plan as columns of one row. They give `plan.cost` again."""
    offer = plan.offer
    (rented,) = with_terms(scenario, (machine(offer, accelerator_of(offer.accelerator, scenario)),))
    supply = replace(
        rented.supply,
        startup_hours=plan.startup_hours,
        least_billed_hours=plan.least_billed_hours,
    )
    row = Row(
        id=plan.id,
        machine=replace(rented, supply=supply),
        best_row=0,
        num_gpus=plan.num_gpus,
        num_nodes=plan.num_nodes,
        num_steps=plan.num_steps,
        run_hours=plan.wall_clock_hours,
        tokens_per_s=as_float(plan.tokens_per_s.p50),
        stack=plan.stack,
    )
    return costs_of(scenario, (row,), columns_of_plan(plan)).take(np.zeros(1, dtype=np.intp))


def columns_of_plan(plan: Plan) -> Columns:
    """The columns of one row from which app/forecast/costs.py computes the cost of a plan."""
    speed, hours = plan.tokens_per_s, plan.training_hours.p50
    slower, faster = np.log([speed.p50 / speed.p10, speed.p90 / speed.p50]) / Z_90
    sigma = (slower + faster) / 2
    numbers = {
        "num_gpus": plan.num_gpus,
        "num_nodes": plan.num_nodes,
        "gpus_per_node": plan.offer.gpu_count,
        "wall_clock_hours": plan.wall_clock_hours,
        "sigma": sigma,
        "skew": (slower - faster) / (2 * sigma) if sigma else 0.0,
        "correction": hours / plan.wall_clock_hours if np.isfinite(hours) else 1.0,
    }
    names = {
        "accelerator": plan.offer.accelerator,
        "stack": plan.stack,
        "purchase": plan.offer.purchase,
    }
    return {name: np.array([value], dtype=float) for name, value in numbers.items()} | {
        name: np.array([value], dtype=object) for name, value in names.items()
    }
