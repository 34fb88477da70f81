"""How long a job stops to save and to start again: by its size, its machines and its stack.

Numbers of one plan, or columns of many: what is not given follows from the bandwidth of the
machines to their storage (hardware/reliability.csv) and from whether the stack saves behind
training (hardware/async_checkpoints.csv).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from app.document import format as fmt
from app.forecast.failure_inputs import Input, known
from app.forecast.stack_limits import software
from app.forecast.training import workload_of
from app.scenario.model import model_of
from core.failures import checkpoint as failures_checkpoint
from core.failures.failures import GPUS_PER_COUNTED_NODE
from core.machine.cluster import ASSUMED_HOST_LINK_BYTES_PER_S
from core.model.transformer import total_params
from core.money.other_costs import checkpoint_bytes
from core.numeric import Numeric, as_float
from core.scenario import Scenario
from core.time.software import decimal_year, is_since
from hardware import facts
from hardware.efficiency import GENERIC
from hardware.reliability import used
from hardware.stack_support import AsyncCheckpoint, async_checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds of each checkpoint and restart, and the rates that they follow from."""

    checkpoint_s: Numeric  # training stops
    upload_s: Numeric  # behind training
    restart_s: Numeric
    size_bytes: float
    write_bytes_per_s: Numeric  # of the whole job
    read_bytes_per_s: Numeric


def times_of(
    scenario: Scenario,
    given: Mapping[str, float],
    *,
    num_gpus: Numeric,
    rented_gpus: Numeric,
    link_bytes_per_s: Numeric,
) -> Times:
    """The times of one plan, or of a column of plans; `link_bytes_per_s`: one GPU to its host."""
    size = checkpoint_size_bytes(scenario)
    write, read = (_bytes_per_s(rented_gpus, way) for way in ("write", "read"))
    written = failures_checkpoint.write_s(size_bytes=size, bytes_per_s=write)
    stop: Numeric = written
    upload: Numeric = 0.0
    if "checkpoint_s" in given:
        stop, upload = given["checkpoint_s"], given.get("upload_s", 0.0)
    elif saves_behind_training(scenario) or "upload_s" in given:
        stop = failures_checkpoint.async_stop_s(
            blocked_s=_of_stack(scenario).blocked_s,
            copy_s=failures_checkpoint.write_s(
                size_bytes=np.divide(size, num_gpus), bytes_per_s=link_bytes_per_s
            ),
            write_s=written,
        )
        upload = given.get("upload_s", np.where(stop < written, written, 0.0)[()])
    restart: Numeric
    if "restart_s" in given:
        restart = given["restart_s"]
    else:
        restart = failures_checkpoint.restart_s(
            start_s=used("restart_s").value,
            join_s_per_gpu=used("join_s_per_gpu").value,
            num_gpus=rented_gpus,
            load_s=failures_checkpoint.write_s(size_bytes=size, bytes_per_s=read),
        )
    return Times(
        checkpoint_s=stop,
        upload_s=upload,
        restart_s=restart,
        size_bytes=size,
        write_bytes_per_s=write,
        read_bytes_per_s=read,
    )


def saves_behind_training(scenario: Scenario) -> bool:
    """Whether checkpoints are asynchronous: as the scenario says, else if its stack can."""
    if scenario.async_checkpoint is not None:
        return scenario.async_checkpoint
    since = async_checkpoint(software(scenario)).since
    return bool(is_since(decimal_year(scenario.software_date), since))


def time_inputs(
    scenario: Scenario, given: Mapping[str, float], times: Times, rented_gpus: float
) -> tuple[Input, ...]:
    """The three times of one plan as inputs, each with what it follows from."""
    return (
        *_checkpoint_inputs(scenario, given, times, rented_gpus),
        known("restart_s", given)
        if "restart_s" in given
        else Input(
            name="restart_s",
            value=as_float(times.restart_s),
            basis="assumed",
            source=(
                f"{used('restart_s').value:g} s to start, {used('join_s_per_gpu').value:g} s for "
                f"each of {fmt.count(rented_gpus)} GPUs to join, and {fmt.gib(times.size_bytes)} "
                f"read at {_rate(times.read_bytes_per_s)}; {used('restart_s').source}; "
                f"{used('join_s_per_gpu').source}; {used('machine_read_bytes_per_s').source}"
            ),
        ),
    )


def _checkpoint_inputs(
    scenario: Scenario, given: Mapping[str, float], times: Times, rented_gpus: float
) -> tuple[Input, Input]:
    if "checkpoint_s" in given:
        upload = Input(
            name="upload_s",
            value=as_float(times.upload_s),
            basis="given",
            source="" if "upload_s" in given else "0: the checkpoint that was given blocks",
        )
        return known("checkpoint_s", given), upload
    machine = used("machine_write_bytes_per_s")
    why = (
        f"{fmt.gib(times.size_bytes)} at {_rate(times.write_bytes_per_s)} in all: "
        f"{machine.printed} from each machine of {GPUS_PER_COUNTED_NODE:g} GPUs, at most "
        f"{used('storage_bytes_per_s').printed}; {machine.source}"
    )
    behind = as_float(times.upload_s) > 0 or "upload_s" in given
    stop = why
    if behind:
        of_stack = _of_stack(scenario)
        stop = (
            f"{of_stack.blocked_s:g} s that {of_stack.stack} stops, and the copy of each GPU's "
            f"states to its host; {of_stack.blocked_source}; {of_stack.source}"
        )
    return (
        Input(
            name="checkpoint_s",
            value=as_float(times.checkpoint_s),
            basis="assumed",
            source=stop,
        ),
        known("upload_s", given)
        if "upload_s" in given
        else Input(
            name="upload_s",
            value=as_float(times.upload_s),
            basis="assumed",
            source=why if behind else "training stops for it all",
        ),
    )


def _rate(bytes_per_s: Numeric) -> str:
    return f"{as_float(bytes_per_s) / 1e9:,.4g} GB/s"


def _of_stack(scenario: Scenario) -> AsyncCheckpoint:
    """What the stack stops for; a stack without asynchronous saving is taken as no particular
    one."""
    found = async_checkpoint(software(scenario))
    return found if found.since else async_checkpoint(GENERIC)


def _bytes_per_s(rented_gpus: Numeric, way: str) -> Numeric:
    """Of the whole job to its storage, `way` write or read."""
    return failures_checkpoint.cluster_bytes_per_s(
        num_machines=np.divide(rented_gpus, GPUS_PER_COUNTED_NODE),
        machine_bytes_per_s=used(f"machine_{way}_bytes_per_s").value,
        storage_bytes_per_s=used("storage_bytes_per_s").value,
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
