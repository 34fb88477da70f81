"""Find the best layout of one machine at many GPU counts, in one search."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.forecast import machines
from app.forecast.choice import choice_of, jobs_of
from app.forecast.choosing import launchable
from app.forecast.plans import plans_of
from app.forecast.points import points_of, total_at, within_limits
from app.forecast.rows.row import rows_of
from app.forecast.search import searched
from app.forecast.stack_limits import as_planned
from app.forecast.training import num_steps_of
from core.errors import ScenarioError
from core.money.scaling import counts_around
from core.scenario import Scenario
from core.search.job import Machine
from core.search.plan import Plan

MOST_GPUS = 131_072
MOST_LEGAL = 4_000_000  # legal layouts; beyond this the largest counts are not searched


def machine_of(scenario: Scenario, plan: Plan) -> Machine:
    """The machine of a plan, with the prices and facts that the answer used."""
    for found in choice_of(scenario).machines:
        if machines.rented(found, plan.num_gpus).offer == plan.offer:
            return found
    accelerator = machines.accelerator_of(plan.offer.accelerator, scenario)
    return machines.as_known(machines.machine(plan.offer, accelerator), scenario)


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """Results for one machine at many GPU counts, ascending."""

    plans: tuple[Plan, ...]
    no_layout: tuple[int, ...]  # counts at which no layout is legal and fits
    not_searched: tuple[int, ...]  # counts that the search did not reach


def plans_by_count(scenario: Scenario, plan: Plan) -> Searched:
    """The best layouts of the plan's machine at GPU counts around the plan's own."""
    machine = machine_of(scenario, plan)
    counts = counts_around(
        num_gpus=plan.num_gpus,
        per_instance=plan.offer.gpu_count,
        most=int(min(machine.largest_num_gpus or MOST_GPUS, machine.largest_job, MOST_GPUS)),
    )
    asked = scenario.model_copy(update={"num_gpus": tuple(counts)})
    jobs, pairs, _ = jobs_of(asked, (machine,), 0.0)
    rents = {job: m for m, job in pairs}
    asked = as_planned(asked, plan)
    search = searched(asked, jobs, most_rows=MOST_LEGAL)
    best = search.best
    rented = [(rents[int(job)], n) for n, job in enumerate(best.job)]
    rows = rows_of(rented, search, num_steps=num_steps_of(asked))
    points = points_of(asked, rows, search)
    on_time, in_budget = within_limits(asked, points)
    no_launch = launchable.refusals(search, [(r.best_row, r.machine) for r in rows])
    ranked = [
        replace(
            row, total=total_at(asked, points, n), meets_deadline=bool(on_time[n]),
            meets_budget=bool(in_budget[n]), no_launch=no_launch[n],
        )
        for n, row in enumerate(rows)
    ]  # fmt: skip
    found = plans_of(ranked, search, points, range(len(rows)))
    if not found:
        raise ScenarioError("No layout fits on this machine at any of the GPU counts around.")
    fits = {p.num_gpus for p in found}
    cut = {jobs[n].num_gpus for n in best.jobs_cut}
    return Searched(
        plans=tuple(sorted(found, key=lambda p: p.num_gpus)),
        no_layout=tuple(n for n in counts if n not in fits | cut),
        not_searched=tuple(n for n in counts if n in cut),
    )
