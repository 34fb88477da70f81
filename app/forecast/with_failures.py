"""Every ranked plan with failures: closed forms over columns, without simulation or search.

Uses the job that app/risk/risk.py builds for one plan, with the best interval between checkpoints.
P50 and P90 cover failures alone, by the quick fit of core/failures/finish_time.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.forecast.failure_inputs import given_numbers, known
from app.forecast.failure_job import USED, job_at
from app.forecast.failure_times import host_link_bytes_per_s, times_of
from core.failures import finish_time, goodput
from core.failures.goodput import Job
from core.numeric import Numeric
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import HOUR_S
from hardware.reliability import RATE

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WithFailures:
    """One plan with failures. Infinite hours: it never finishes; NaN dollars: no price."""

    goodput: float
    hours_expected: float
    hours_p50: float
    hours_p90: float
    usd_expected: float
    usd_p50: float
    usd_p90: float


def of_plans(scenario: Scenario, plans: Sequence[Plan]) -> tuple[WithFailures, ...]:
    """Each of the plans with failures, computed together."""
    if not plans:
        return ()
    usd = [p.usd.p50 if p.usd else np.nan for p in plans]
    rate = [p.usd_per_gpu_hour if p.usd_per_gpu_hour is not None else np.nan for p in plans]
    points = {
        "wall_clock_hours": np.array([p.wall_clock_hours for p in plans]),
        "usd": np.array(usd),
        "instances_usd": np.array(rate) * [p.gpu_hours for p in plans],
        "startup_hours": np.array([p.startup_hours for p in plans]),
        "billed_hours": np.array([p.billed_hours for p in plans]),
        "least_billed_hours": np.array([p.least_billed_hours for p in plans]),
        "num_gpus": np.array([p.num_gpus for p in plans]),
        "num_nodes": np.array([p.num_nodes for p in plans]),
        "gpus_per_node": np.array([p.offer.gpu_count for p in plans]),
        "accelerator": np.array([p.offer.accelerator for p in plans], dtype=object),
        "stack": np.array([p.stack for p in plans], dtype=object),
    }
    found = with_failures(scenario, points, num_steps=plans[0].num_steps)
    return tuple(
        WithFailures(**{name: float(column[n]) for name, column in found.items()})
        for n in range(len(plans))
    )


def with_failures(scenario: Scenario, points: Columns, *, num_steps: float) -> Columns:
    """Columns to add to those of `Answer.points`: goodput, and hours, start-up included, and
    dollars as expected value, P50 and P90.

    Infinite hours and a goodput of 0: the run never finishes. NaN dollars: no price.
    """
    job, slowdown = jobs_of(scenario, points)
    job = with_interval(scenario, job, num_steps=num_steps)
    steady = np.asarray(points["wall_clock_hours"], dtype=float)
    start = np.asarray(points["startup_hours"], dtype=float)
    found_s = (goodput.expected_s(job), *finish_time.quick_quantiles_s(job, 0.5, 0.9))
    names = ("expected", "p50", "p90")
    hours = {n: start + np.asarray(s) / HOUR_S for n, s in zip(names, found_s, strict=True)}
    per_hour = np.asarray(points["instances_usd"], dtype=float) / points["billed_hours"]
    others = np.asarray(points["usd"], dtype=float) - np.asarray(points["instances_usd"])
    least = points["least_billed_hours"]
    return {
        "goodput": np.broadcast_to(goodput.goodput(job) / slowdown, steady.shape),
        **{f"hours_{name}": found for name, found in hours.items()},
        **{
            f"usd_{name}": np.maximum(found, least) * per_hour + others
            for name, found in hours.items()
        },
    }


def with_interval(scenario: Scenario, job: Job, *, num_steps: float) -> Job:
    """The jobs with the interval that the scenario gives, else the best one."""
    least_s = np.maximum(
        np.divide(job.work_s, num_steps), np.subtract(job.upload_s, job.checkpoint_s)
    )
    given = given_numbers(scenario).get("interval_s")
    if given is None:
        return goodput.at_best_interval(job, least_s=least_s)
    return replace(job, interval_s=np.maximum(given, least_s))


def jobs_of(scenario: Scenario, points: Columns) -> tuple[Job, Numeric]:
    """The plans as a column of jobs without an interval, and the factor of slow nodes on step
    time."""
    given = given_numbers(scenario)
    names = points["accelerator"].tolist()
    row_of = {name: row for row, name in enumerate(dict.fromkeys(names))}
    rows = np.fromiter(map(row_of.__getitem__, names), dtype=np.intp, count=len(names))
    num_nodes = np.asarray(points["num_nodes"], dtype=float)
    times = {
        stack: times_of(
            scenario.model_copy(update={"stack": stack}),
            given,
            num_gpus=points["num_gpus"],
            rented_gpus=num_nodes * points["gpus_per_node"],
            link_bytes_per_s=np.array([host_link_bytes_per_s(n) for n in row_of])[rows],
        )
        for stack in dict.fromkeys(points["stack"].tolist())
    }
    mine = [points["stack"] == stack for stack in times]

    def time_of(name: str) -> Numeric:
        """A time of each plan, as its stack saves checkpoints."""
        columns = [np.broadcast_to(getattr(t, name), num_nodes.shape) for t in times.values()]
        return np.select(mine, columns)

    value: dict[str, Numeric] = {n: known(n, given).value for n in USED if n != RATE}
    value |= {n: given[n] for n in ("spares", "repair_s") if "spares" in given}
    value |= {n: given[n] for n in ("min_nodes",) if n in given}
    return job_at(
        {
            **value,
            RATE: np.array([known(RATE, given, n).value for n in row_of])[rows],
            **{n: time_of(n) for n in ("checkpoint_s", "upload_s", "restart_s")},
        },
        hours=points["wall_clock_hours"],
        num_nodes=num_nodes,
        gpus_per_node=points["gpus_per_node"],
    )
