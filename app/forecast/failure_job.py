"""Turn a plan and its risk inputs into the job that core/failures/goodput.py takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from app.document import format as fmt
from app.forecast.failure_inputs import Input, known
from app.forecast.training import workload_of
from app.scenario.model import model_of
from core.failures import checkpoint as failures_checkpoint
from core.failures import failures
from core.failures.goodput import Job
from core.machine.cluster import ASSUMED_HOST_LINK_BYTES_PER_S
from core.model.transformer import total_params
from core.money.other_costs import checkpoint_bytes
from core.numeric import Numeric, as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import HOUR_S
from hardware import facts

# What every job rests on, besides its checkpoints.
USED = (
    "failures_per_node_day", "job_failures_per_day", "detection_s", "restart_s", "wait_s",
    "node_start_s", "slow_probability", "slow_fraction",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A job without a checkpoint interval yet, and the inputs it was built from."""

    job: Job
    inputs: Mapping[str, Input]
    slowdown: float  # factor on step time, caused by slow nodes


def job_of(scenario: Scenario, plan: Plan, given: Mapping[str, float]) -> Asked:
    """The job of one plan; every number that was not given is listed among the inputs."""
    inputs = {n: known(n, given) for n in USED}
    inputs |= {item.name: item for item in checkpoint_inputs(scenario, plan, given)}
    if "spares" in given:
        inputs |= {n: known(n, given) for n in ("spares", "repair_s")}
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
    `value` has the inputs by name; of spares, if there are any."""
    rate = failures.job_failures_per_s(
        num_gpus=num_nodes * gpus_per_node,
        failures_per_node_day=value["failures_per_node_day"],
        job_failures_per_day=value["job_failures_per_day"],
    )
    wait_s = value["wait_s"]
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


def checkpoint_inputs(
    scenario: Scenario, plan: Plan, given: Mapping[str, float]
) -> tuple[Input, ...]:
    """How long a checkpoint stops training and how long its upload takes, where not given: its
    bytes divided by a rate."""
    if "checkpoint_s" in given:
        upload = Input(
            name="upload_s",
            value=given.get("upload_s", 0.0),
            basis="given",
            source="" if "upload_s" in given else "0: the checkpoint that was given blocks",
        )
        return known("checkpoint_s", given), upload
    size = checkpoint_size_bytes(scenario)
    rate = known("checkpoint_bytes_per_s", given)
    written = as_float(failures_checkpoint.write_s(size_bytes=size, bytes_per_s=rate.value))
    why = f"{fmt.gib(size)} at {rate.value / 1e9:g} GB/s in all; {rate.source}"
    blocking = not scenario.async_checkpoint and "upload_s" not in given
    if blocking:
        return (
            Input(name="checkpoint_s", value=written, basis="assumed", source=why),
            Input(name="upload_s", value=0.0, basis="assumed", source="training stops for it all"),
        )
    per_gpu = host_link_bytes_per_s(plan.offer.accelerator)
    copied = failures_checkpoint.write_s(size_bytes=size / plan.num_gpus, bytes_per_s=per_gpu)
    copy = f"{fmt.gib(size / plan.num_gpus)} of each GPU to its host at {per_gpu / 1e9:g} GB/s"
    return (
        Input(name="checkpoint_s", value=as_float(copied), basis="assumed", source=copy),
        known("upload_s", given)
        if "upload_s" in given
        else Input(name="upload_s", value=written, basis="assumed", source=why),
    )


def checkpoint_size_bytes(scenario: Scenario) -> float:
    """Bytes of one checkpoint of what the scenario trains."""
    work = workload_of(scenario, model_of(scenario))
    return as_float(
        checkpoint_bytes(
            parameters=total_params(work.model) * work.trained_fraction,
            optimizer_state_bytes=work.optimizer_state_bytes,
        )
    )


def host_link_bytes_per_s(accelerator: str) -> float:
    """Bytes per second from one accelerator to its host; assumed if no source states it."""
    link = facts.accelerators().get(accelerator)
    return (link and link.host_link_bytes_per_s) or ASSUMED_HOST_LINK_BYTES_PER_S


def least_interval_s(job: Job, plan: Plan) -> float:
    """The shortest interval: one step, or the time until the last checkpoint is uploaded."""
    step_s = as_float(job.work_s) / plan.num_steps
    return max(step_s, as_float(job.upload_s) - as_float(job.checkpoint_s))
