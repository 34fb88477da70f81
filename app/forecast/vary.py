"""Vary the job of a plan: another scenario, machine, number of GPUs or layout, by the path of the
answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.forecast.choice import jobs_of
from app.forecast.choosing import launchable
from app.forecast.fixed_layout import FIXED
from app.forecast.plans import plans_of
from app.forecast.points import priced, within_limits
from app.forecast.rows.row import rows_of
from app.forecast.search import searched
from app.forecast.training import num_steps_of
from core.scenario import Scenario
from core.search.job import Machine, PlanJob
from core.search.plan import Layout, Plan

MOST_LEGAL = 4_000_000  # legal layouts; beyond this the largest counts are not searched


@dataclass(frozen=True, slots=True, kw_only=True)
class PlansByCount:
    """The best plan of one machine at each of some GPU counts, ascending."""

    plans: tuple[Plan, ...]
    no_layout: tuple[int, ...]  # counts at which no layout is legal and fits
    not_searched: tuple[int, ...]  # counts that the search did not reach


def vary(
    job: PlanJob,
    *,
    scenario: Scenario | None = None,
    machine: Machine | None = None,
    num_gpus: int | None = None,
    layout: Layout | None = None,
) -> Plan | None:
    """The best plan of a job with these changes; None if none is legal and fits."""
    scenario = job.scenario if scenario is None else scenario
    if layout is not None:
        scenario = scenario.model_copy(update=layout_fields(layout))
    count = job.num_gpus if num_gpus is None else num_gpus
    plans = plans_at(scenario, job.machine if machine is None else machine, [count]).plans
    return plans[0] if plans else None


def layout_fields(layout: Layout) -> dict[str, Any]:
    """The fields of a scenario that fix a layout."""
    lists = ("sharding", "recompute")
    fields = {name: getattr(layout, name) for name in FIXED}
    fields |= {name: (fields[name],) for name in lists}
    return fields | {"dp_shard": layout.dp_shard if layout.sharding == "hsdp" else None}


def plans_at(scenario: Scenario, machine: Machine, counts: Sequence[int]) -> PlansByCount:
    """The best plan of a machine at each GPU count, for a scenario whose stack is fixed."""
    scenario = scenario.model_copy(update={"num_gpus": tuple(counts)})
    jobs, pairs, _ = jobs_of(scenario, (machine,), 0.0)
    machine_of_job = {job: m for m, job in pairs}
    found = searched(scenario, jobs, most_rows=MOST_LEGAL)
    best = found.best
    rented = [(machine_of_job[int(job)], n) for n, job in enumerate(best.job)]
    rows = rows_of(rented, found, num_steps=num_steps_of(scenario))
    table = priced(scenario, rows, found)
    on_time, in_budget = within_limits(scenario, table.points)
    no_launch = launchable.refusals(found, [(r.best_row, r.machine) for r in rows])
    ranked = [
        replace(
            row, meets_deadline=bool(on_time[n]), meets_budget=bool(in_budget[n]),
            no_launch=no_launch[n], chosen_correction=table.corrections.basis.get(n),
        )
        for n, row in enumerate(rows)
    ]  # fmt: skip
    every = np.arange(len(rows), dtype=np.intp)
    plans = plans_of(ranked, found, table.points, table.costs.take(every))
    fits = {p.num_gpus for p in plans}
    cut = {jobs[n].num_gpus for n in best.jobs_cut}
    return PlansByCount(
        plans=tuple(sorted(plans, key=lambda p: p.num_gpus)),
        no_layout=tuple(n for n in counts if n not in fits | cut),
        not_searched=tuple(n for n in counts if n in cut),
    )
