"""The cost of every plan of an answer, as columns: the one way in to core/cost/run_cost.py.

A spot plan is bought with the policy that needs no other price: it waits until capacity is there
again. Failures are those of app/forecast/failure_job.py, with the best interval between
checkpoints unless the scenario gives one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.forecast import preemption
from app.forecast.failure_inputs import given_numbers, known
from app.forecast.failure_job import jobs_of, with_interval
from app.forecast.power import electricity_usd_per_hour
from app.forecast.price_book import price_day
from app.forecast.rows.row import Row
from core.cost.run_cost import CostBasis, RunCost, RunTerms
from core.cost.training import training_of_job
from core.failures import spot
from core.failures.failures import gang_start_s
from core.failures.goodput import Job
from core.machine.offer import Offer
from core.money.purchase import TERM_HOURS
from core.numeric import Numeric
from core.scenario import Scenario
from core.units import DAY_S, HOUR_S
from pricing.book.offers import is_booked
from pricing.offers import age_days
from pricing.price_life import log_sd

POLICY = "spot_only"  # by which a spot plan is bought; a name of core/failures/policies.py
LEAST_OUTAGE_S = 1.0
Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The costs of the rows of an answer, and what they follow from."""

    basis: CostBasis
    cost: RunCost  # without terms

    def take(self, rows: NDArray[np.intp]) -> Costs:
        """These rows, with the dollars of each term."""
        basis = self.basis.take(rows)
        return Costs(basis=basis, cost=basis.cost(with_terms=True))


def costs_of(scenario: Scenario, rows: Sequence[Row], columns: Columns) -> Costs:
    """The costs of rows with the columns num_gpus, num_nodes, gpus_per_node, wall_clock_hours,
    accelerator, stack, purchase, sigma, skew and correction."""
    basis = CostBasis(
        **jobs_and_training(scenario, columns, num_steps=rows[0].num_steps if rows else 1.0),
        run=run_terms(scenario, rows, columns),
    )
    return Costs(basis=basis, cost=basis.cost())


def run_terms(scenario: Scenario, rows: Sequence[Row], columns: Columns) -> RunTerms:
    """What turns the trainings of these rows into whole runs."""
    offers, machines = [r.machine.offer for r in rows], [r.machine for r in rows]

    def column(values: Sequence[float]) -> NDArray[np.float64]:
        return np.array(values, dtype=float)

    prices = column([np.nan if o.usd_per_hour is None else o.usd_per_hour for o in offers])
    powers = [
        electricity_usd_per_hour(
            scenario, r.machine.offer, num_gpus=r.num_gpus, num_nodes=r.num_nodes
        )
        for r in rows
    ]
    days = scenario.deadline_days
    return RunTerms(
        startup_hours=column([m.supply.startup_hours for m in machines]),
        least_billed_hours=column([m.supply.least_billed_hours for m in machines]),
        usd_per_hour=prices * columns["num_nodes"],
        sigma=columns["sigma"],
        skew=columns["skew"],
        correction=columns["correction"],
        price_sigma=price_sigmas(offers, price_day(scenario)),
        checkpoint_usd_per_hour=column([m.terms.checkpoint_usd_per_hour for m in machines]),
        data_usd_per_hour=column([m.terms.data_usd_per_hour for m in machines]),
        egress_usd=column([m.terms.egress_usd for m in machines]),
        credit_usd=column([m.terms.credit_usd for m in machines]),
        power_usd_per_hour=column([training for training, _ in powers]),
        idle_power_usd_per_hour=column([idle for _, idle in powers]),
        experiment_share=scenario.experiment_share or 0.0,
        term_hours=column([TERM_HOURS.get(o.purchase, 0.0) for o in offers]),
        utilisation=scenario.reserved_utilisation,
        is_block=np.array([o.purchase == "capacity_block" for o in offers], dtype=bool),
        block_days=scenario.block_days,
        deadline_hours=None if days is None else days * 24.0,
        budget_usd=scenario.budget_usd,
    )


def jobs_and_training(scenario: Scenario, columns: Columns, *, num_steps: float) -> dict[str, Any]:
    """The parts `job`, `stopped` and `training` of the basis of each plan."""
    job, _ = jobs_of(scenario, columns)
    work_s = np.asarray(columns["wall_clock_hours"], dtype=float) * HOUR_S
    on_spot = np.asarray(columns["purchase"] == "spot", dtype=bool)
    stopped, paid = preempted(scenario, job, num_nodes=columns["num_nodes"], on_spot=on_spot)
    is_same = stopped is job
    stopped = with_interval(scenario, stopped, num_steps=num_steps)
    job = stopped if is_same else replace(job, interval_s=stopped.interval_s)
    paid = stopped if is_same else replace(paid, interval_s=stopped.interval_s)
    training = training_of_job(work_s=work_s, job=stopped, paid=paid, failing=job)
    return {"job": job, "stopped": stopped, "training": training}


def preempted(
    scenario: Scenario, job: Job, *, num_nodes: Numeric, on_spot: Numeric
) -> tuple[Job, Job]:
    """Jobs with the preemptions of those on spot, and what of them is paid; the jobs themselves
    where none is on spot."""
    if not np.any(on_spot):
        return job, job
    num_nodes = np.asarray(num_nodes, dtype=float)
    preemptions_per_s = spot.fleet_preemptions_per_s(
        num_instances=num_nodes,
        preemptions_per_s=preemption.rate(scenario).value / DAY_S,
        common_fraction=preemption.common_fraction().value,
    )
    start_s = known("node_start_s", given_numbers(scenario)).value
    outage_s = preemption.fact(scenario, "outage_hours").value * HOUR_S
    return spot.also_preempted(
        job,
        preemptions_per_s=np.where(on_spot, preemptions_per_s, 0.0),
        outage_s=max(outage_s, LEAST_OUTAGE_S),
        gang_start_s=np.where(
            on_spot, gang_start_s(num_nodes=num_nodes, mean_start_s=start_s), 0.0
        ),
        zones=scenario.spot_zones or 1,
    )


def price_sigmas(offers: Sequence[Offer], day: dt.date) -> NDArray[np.float64]:
    """Deviation of the logarithm of each price, by its age; none of one's own or agreed."""
    return np.array(
        [
            0.0
            if o.usd_per_hour is None or o.purchase == "owned" or is_booked(o)
            else _price_sigma(o.provider, o.purchase, o.observed_at, day)
            for o in offers
        ],
        dtype=float,
    )


@lru_cache(maxsize=4096)
def _price_sigma(provider: str, purchase: str, observed_at: str, day: dt.date) -> float:
    return log_sd(provider, purchase, age_days(observed_at, day))
