"""Turn a plan and its risk inputs into the job that core/failures/goodput.py takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.forecast.failure_inputs import Input, given_numbers, known
from app.forecast.failure_times import host_link_bytes_per_s, time_inputs, times_of
from core.failures import failures, goodput
from core.failures.goodput import Job
from core.numeric import Numeric, as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import HOUR_S
from hardware.reliability import RATE

Columns = Mapping[str, NDArray[Any]]
# What every job rests on, besides its checkpoints and restarts.
USED = (
    "failures_per_node_day", "job_failures_per_day", "detection_s", "wait_s", "node_start_s",
    "slow_probability", "slow_fraction",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A job without a checkpoint interval yet, and the inputs it was built from."""

    job: Job
    inputs: Mapping[str, Input]
    slowdown: float  # factor on step time, caused by slow nodes


def job_of(plan: Plan, given: Mapping[str, float]) -> Asked:
    """The job of one plan; every number that was not given is listed among the inputs."""
    scenario = plan.job.scenario
    inputs = {n: known(n, given, plan.offer.accelerator) for n in USED}
    rented = float(plan.num_nodes * plan.offer.gpu_count)
    times = times_of(
        scenario,
        given,
        num_gpus=float(plan.num_gpus),
        rented_gpus=rented,
        link_bytes_per_s=host_link_bytes_per_s(plan.offer.accelerator),
    )
    inputs |= {item.name: item for item in time_inputs(scenario, given, times, rented)}
    if "spares" in given:
        inputs |= {n: known(n, given) for n in ("spares", "repair_s")}
    if "min_nodes" in given:
        inputs["min_nodes"] = known("min_nodes", given)
    job, slowdown = job_at(
        {n: i.value for n, i in inputs.items()},
        hours=plan.wall_clock_hours,
        num_nodes=float(plan.num_nodes),
        gpus_per_node=plan.offer.gpu_count,
    )
    one = Job(**{f.name: as_float(getattr(job, f.name)) for f in fields(Job)})
    return Asked(job=one, inputs=inputs, slowdown=as_float(slowdown))


def job_at(
    value: Mapping[str, Any], *, hours: Numeric, num_nodes: Numeric, gpus_per_node: Numeric
) -> tuple[Job, Numeric]:
    """The job without an interval, or a column of jobs, and the factor of slow nodes on step time.
    `value` has the inputs by name; of spares and of the fewest machines, if they are given."""
    rate = failures.job_failures_per_s(
        num_gpus=num_nodes * gpus_per_node,
        failures_per_node_day=value["failures_per_node_day"],
        job_failures_per_day=value["job_failures_per_day"],
    )
    wait_s = value["wait_s"]
    if "min_nodes" in value:
        wait_s = failures.elastic_wait_s(
            wait_s=wait_s, num_nodes=num_nodes, min_nodes=value["min_nodes"],
            rejoin_s=value["checkpoint_s"] + value["restart_s"],
        )  # fmt: skip
    if "spares" in value:
        empty = failures.exhausted_probability(
            failures_per_s=rate, repair_s=value["repair_s"], spares=int(value["spares"])
        )
        wait_s = failures.mean_wait_s(replacement_s=wait_s, exhausted_probability=empty)
    slowdown = failures.straggler_slowdown(
        num_nodes=num_nodes,
        slow_probability=value["slow_probability"],
        slow_fraction=value["slow_fraction"],
    )
    job = Job(
        work_s=hours * HOUR_S * slowdown,
        interval_s=np.inf,
        checkpoint_s=value["checkpoint_s"],
        failures_per_s=rate,
        upload_s=value["upload_s"],
        down_s=value["detection_s"] + value["node_start_s"],  # of the node that is replaced
        wait_s=wait_s,
        reload_s=value["restart_s"],
    )
    return job, slowdown


def failures_per_s(plan: Plan, failures_per_node_day: float, job_failures_per_day: float) -> float:
    """Failures per second of all rented GPUs, and of the job."""
    return as_float(
        failures.job_failures_per_s(
            num_gpus=float(plan.num_nodes * plan.offer.gpu_count),
            failures_per_node_day=failures_per_node_day,
            job_failures_per_day=job_failures_per_day,
        )
    )


def least_interval_s(job: Job, plan: Plan) -> float:
    """The shortest interval: one step, or the time until the last checkpoint is uploaded."""
    step_s = as_float(job.work_s) / plan.num_steps
    return max(step_s, as_float(job.upload_s) - as_float(job.checkpoint_s))


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
        return np.select(mine, columns) if columns else np.zeros(num_nodes.shape)

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
