"""Totals of every plan as columns, by core/money/total.py.

The failures are those of app/forecast/with_failures.py. A spot plan is bought with the policy that
needs no other price: spot alone, which waits until capacity is there again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.forecast.expected import preemption
from app.forecast.failure_inputs import given_numbers, known
from app.forecast.with_failures import Columns, jobs_of, with_interval
from core.failures import spot
from core.failures.failures import gang_start_s
from core.failures.goodput import Job
from core.machine.offer import Offer
from core.money import total as money_total
from core.scenario import Scenario
from core.search.plan import Expected
from core.units import DAY_S, HOUR_S
from pricing.book.offers import is_booked
from pricing.offers import age_days
from pricing.price_life import log_sd

POLICY = "spot_only"  # by which a spot plan is bought; a name of core/failures/policies.py
LEAST_OUTAGE_S = 1.0
OUTCOMES = ("expected", "p10", "p50", "p90")


def _column(name: str) -> str:
    """expected_hours, and total_hours_p10 for its quantiles."""
    unit, outcome = name.split("_")
    return f"expected_{unit}" if outcome == "expected" else f"total_{unit}_{outcome}"


NAMES = (*(_column(f"{u}_{n}") for u in ("hours", "usd") for n in OUTCOMES), "chance_on_time")


def totals(scenario: Scenario, points: Columns, *, num_steps: float) -> dict[str, NDArray[Any]]:
    """Columns to add to those of `Answer.points`, from these, `sigma` (of the logarithm of the
    speed) and its `skew`, `price_sigma` and `other_usd`: hours and dollars all in, and the chance
    of the deadline.

    Infinite hours: the run never ends. NaN dollars: no price. A chance of 1 without a deadline.
    """
    job, paid = jobs_all_in(scenario, points, num_steps)
    days = scenario.deadline_days
    instances = np.asarray(points["instances_usd"], dtype=float)
    found = money_total.total(
        money_total.Run(
            job=job,
            paid=paid,
            startup_hours=points["startup_hours"],
            least_billed_hours=points["least_billed_hours"],
            usd_per_hour=instances / points["billed_hours"],
            other_usd=points["other_usd"],
            sigma=points["sigma"],
            skew=points["skew"],
            price_sigma=points["price_sigma"],
        ),
        deadline_hours=None if days is None else days * 24.0,
    )
    shape = np.shape(instances)
    columns = {f"hours_{n}": getattr(found.hours, n) for n in OUTCOMES}
    columns |= {f"usd_{n}": getattr(found.usd, n) for n in OUTCOMES}
    return {
        **{_column(n): np.broadcast_to(x, shape) for n, x in columns.items()},
        "chance_on_time": np.broadcast_to(found.chance_on_time, shape),
    }


def at(columns: Columns, unit: str, row: int) -> Expected:
    """Hours or usd of one row of these columns."""
    named = {n: _column(f"{unit}_{n}") for n in OUTCOMES}
    return Expected(**{n: float(columns[c][row]) for n, c in named.items()})


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


def jobs_all_in(scenario: Scenario, points: Columns, num_steps: float) -> tuple[Job, Job]:
    """The training of each plan with its stops, and what of it is paid."""
    job, _ = jobs_of(scenario, points)
    on_spot = np.asarray(points["purchase"] == "spot")
    if not on_spot.any():
        job = with_interval(scenario, job, num_steps=num_steps)
        return job, job
    num_nodes = np.asarray(points["num_nodes"], dtype=float)
    of_fleet = spot.fleet_preemptions_per_s(
        num_instances=num_nodes,
        preemptions_per_s=preemption.rate(scenario).value / DAY_S,
        common_fraction=preemption.common_fraction().value,
    )
    start_s = known("node_start_s", given_numbers(scenario)).value
    outage_s = preemption.fact(scenario, "outage_hours").value * HOUR_S
    stopped, paid = spot.also_preempted(
        job,
        preemptions_per_s=np.where(on_spot, of_fleet, 0.0),
        outage_s=max(outage_s, LEAST_OUTAGE_S),
        gang_start_s=np.where(
            on_spot, gang_start_s(num_nodes=num_nodes, mean_start_s=start_s), 0.0
        ),
    )
    stopped = with_interval(scenario, stopped, num_steps=num_steps)
    return stopped, replace(paid, interval_s=stopped.interval_s)
