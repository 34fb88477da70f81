"""Layouts of one job evaluated, and the differences between two of them.

Nothing here has a formula of its own: seconds are those of `core.time.step`, bytes those of
`core.memory.memory`, dollars those of `core.money.cost`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.evidence.uncertainty import probability_above
from core.layout.layouts import CONTEXT_METHODS, RECOMPUTE, SCHEDULES, Layouts
from core.layout.sharding import INDEX, STRATEGIES
from core.layout.workload import OFFLOAD, Workload
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.memory import peak_bytes
from core.memory.offload import host_bytes, work_on
from core.money import cost as money_cost
from core.money import other_costs
from core.search.best import usable_share
from core.search.job import Machine, PlanJob
from core.search.plan import Layout
from core.time.step import step
from core.units import HOUR_S

Floats = NDArray[np.float64]
PLACES = {round(place): name for name, place in OFFLOAD.items()}
TERMS = 3  # parts of a difference that are listed one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """Layouts with what they take, as columns of one length."""

    layouts: Layouts
    parts_s: dict[str, Floats]  # seconds of a step; they add up to step_s
    step_s: Floats
    hours: Floats  # of the whole run, with the start-up
    gpu_hours: Floats
    usd: Floats  # NaN: no price
    memory_bytes: dict[str, Floats]
    need_bytes: Floats
    usable_bytes: Floats  # what a plan may need, so that it fits with the required probability
    capacity_bytes: Floats
    probability_oom: Floats
    host_bytes: Floats  # that one GPU keeps in the host's memory

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Rows that the search would offer, whatever they keep on the host."""
        return np.asarray(self.need_bytes <= self.usable_bytes)


def columns_of(layouts: Sequence[Layout], num_gpus: Sequence[int]) -> Layouts:
    """Records of layouts as columns, one row a record."""

    def column(name: str) -> Floats:
        return np.array([getattr(x, name) for x in layouts], dtype=float)

    return Layouts(
        num_gpus=np.array(num_gpus, dtype=float),
        **{n: column(n) for n in ("tp", "pp", "virtual_stages", "cp", "ep", "etp")},
        **{n: column(n) for n in ("dp_replicate", "dp_shard", "micro_batch_size")},
        num_microbatches=column("num_microbatches"),
        strategy=np.array([INDEX[x.sharding] for x in layouts], dtype=float),
        recompute=np.array([RECOMPUTE.index(x.recompute) for x in layouts], dtype=float),
        sequence_parallel=(column("tp") > 1).astype(float),
        schedule=np.array([SCHEDULES.index(x.schedule) for x in layouts], dtype=float),
        context_method=np.array(
            [CONTEXT_METHODS.index(x.context_parallel) for x in layouts], dtype=float
        ),
        reshard=column("reshard_after_forward"),
        offload_optimizer=np.array([OFFLOAD[x.offload_optimizer] for x in layouts]),
        offload_params=np.array([OFFLOAD[x.offload_params] for x in layouts]),
    )


def record_of(layouts: Layouts, row: int) -> Layout:
    """One row of the columns as a record; degrees that are no whole numbers are rounded."""
    return records_of(layouts, [row])[0]


def records_of(layouts: Layouts, rows: Sequence[int]) -> list[Layout]:
    """Rows of the columns as records; degrees that are no whole numbers are rounded."""
    at = np.array(rows, dtype=np.intp)
    degrees = (
        "tp", "pp", "virtual_stages", "cp", "ep", "etp", "dp_replicate", "dp_shard",
        "micro_batch_size", "num_microbatches",
    )  # fmt: skip
    others = (
        "strategy", "recompute", "schedule", "context_method", "reshard", "offload_optimizer",
        "offload_params",
    )  # fmt: skip
    columns = (np.asarray(getattr(layouts, name))[at] for name in (*degrees, *others))
    whole = zip(*(np.rint(column).astype(int).tolist() for column in columns), strict=True)
    return [
        Layout(
            **dict(zip(degrees, numbers, strict=True)),
            sharding=STRATEGIES[strategy].name,
            recompute=RECOMPUTE[recompute],
            schedule=SCHEDULES[schedule],
            context_parallel=CONTEXT_METHODS[method],
            reshard_after_forward=reshard > 0,
            offload_optimizer=PLACES[optimizer],
            offload_params=PLACES[params],
        )
        for *numbers, strategy, recompute, schedule, method, reshard, optimizer, params in whole
    ]


def rent_of(machine: Machine) -> dict[str, float]:
    """What is paid for a machine: dollars are NaN where nobody has a price."""
    usd, terms = machine.offer.usd_per_hour, machine.terms
    return {
        "gpus_per_instance": float(machine.offer.gpu_count),
        "usd_per_instance_hour": np.nan if usd is None else usd,
        "startup_hours": machine.supply.startup_hours,
        "least_billed_hours": machine.supply.least_billed_hours,
        "storage_usd_per_hour": terms.storage_usd_per_hour,
        "egress_usd": terms.egress_usd,
        "credit_usd": terms.credit_usd,
    }


def evaluate(
    job: PlanJob,
    layouts: Layouts,
    *,
    work: Workload | None = None,
    cluster: Cluster | None = None,
    eff: Efficiency | None = None,
    num_tokens: Floats | float | None = None,
    **rent: Floats | float,
) -> Evaluated:
    """Evaluate layouts (columns) of a job; arguments that are given, also columns, replace its own.
    `rent` are keys of `rent_of`."""
    work = work_on(job.work if work is None else work, layouts)
    cluster = job.cluster if cluster is None else cluster
    eff = job.eff if eff is None else eff
    tokens = job.num_tokens if num_tokens is None else num_tokens
    paid: dict[str, Any] = {**rent_of(job.machine), **rent}
    start, per_instance = paid["startup_hours"], paid["gpus_per_instance"]
    sigma = job.question.memory_sigma
    times = step(work, layouts, cluster, eff)
    memory = peak_bytes(work, layouts, cluster, eff)
    step_s = times.step_s * job.measured_factor
    steps = money_cost.num_steps(
        num_tokens=tokens, seq_len=work.seq_len, global_batch_size=work.global_batch_size
    )
    hours = np.asarray(steps) * step_s / HOUR_S
    billed = money_cost.billed_hours(
        run_hours=hours, startup_hours=start, least_hours=paid["least_billed_hours"]
    )
    instances = money_cost.num_instances(num_gpus=layouts.num_gpus, gpus_per_instance=per_instance)
    need = np.sum(list(memory.values()), axis=0)
    capacity = np.broadcast_to(np.asarray(cluster.memory_bytes, dtype=float), need.shape)
    return Evaluated(
        layouts=layouts,
        parts_s={k: v * job.measured_factor for k, v in times.parts.items()},
        step_s=step_s,
        hours=start + hours,
        gpu_hours=np.asarray(
            money_cost.gpu_hours(
                wall_clock_hours=billed, num_instances=instances, gpus_per_instance=per_instance
            )
        ),
        usd=np.asarray(
            other_costs.run_total_usd(
                instances_usd=money_cost.run_usd(
                    wall_clock_hours=billed,
                    num_instances=instances,
                    usd_per_instance_hour=paid["usd_per_instance_hour"],
                ),
                storage_usd_per_hour=paid["storage_usd_per_hour"],
                hours=start + hours,
                egress_usd=paid["egress_usd"],
                credit_usd=paid["credit_usd"],
            )
        ),
        memory_bytes=memory,
        need_bytes=need,
        usable_bytes=capacity * usable_share(sigma, surely=job.is_sure),
        capacity_bytes=capacity,
        probability_oom=np.asarray(
            probability_above(capacity, p50=np.maximum(need, 1.0), sigma=sigma)
        ),
        host_bytes=np.broadcast_to(
            np.asarray(host_bytes(work, layouts, eff), dtype=float), need.shape
        ),
    )


# --- differences of two ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One part of a step in both."""

    part: str
    first_s: float
    second_s: float

    @property
    def more_s(self) -> float:
        """Seconds that the second takes longer."""
        return self.second_s - self.first_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Why a second step takes longer, or less, than a first: `terms` and `rest_s` add up to
    `more_s`."""

    first_s: float
    second_s: float
    terms: tuple[Term, ...]  # the largest first
    rest_s: float  # of all other parts together

    @property
    def more_s(self) -> float:
        """Seconds that the second takes longer."""
        return self.second_s - self.first_s


def difference(
    first: Mapping[str, float], second: Mapping[str, float], *, most: int = TERMS
) -> Difference:
    """The parts of two steps compared.

    >>> d = difference({"matmul": 2.0, "bubble": 0.5}, {"matmul": 2.0, "bubble": 1.0})
    >>> [(t.part, t.more_s) for t in d.terms], d.rest_s
    ([('bubble', 0.5)], 0.0)
    """
    names = dict.fromkeys((*first, *second))
    every = [Term(part=n, first_s=first.get(n, 0.0), second_s=second.get(n, 0.0)) for n in names]
    every.sort(key=lambda t: -abs(t.more_s))
    listed = tuple(t for t in every[:most] if t.more_s)
    return Difference(
        first_s=sum(first.values()),
        second_s=sum(second.values()),
        terms=listed,
        rest_s=sum(t.more_s for t in every[len(listed) :]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CostDifference:
    """Why a second run costs more, or less: both parts add up to `more_usd`."""

    more_usd: float
    by_gpu_hours_usd: float
    by_price_usd: float


def cost_difference(
    *,
    first_gpu_hours: float,
    second_gpu_hours: float,
    first_usd_per_gpu_hour: float,
    second_usd_per_gpu_hour: float,
    more_usd: float,
) -> CostDifference:
    """Dollars by GPU-hours, at the mean of both prices, and by price and all that is priced
    otherwise.

    >>> cost_difference(
    ...     first_gpu_hours=10, second_gpu_hours=20, first_usd_per_gpu_hour=2,
    ...     second_usd_per_gpu_hour=2, more_usd=20,
    ... )
    CostDifference(more_usd=20, by_gpu_hours_usd=20.0, by_price_usd=0.0)
    """
    mean = (first_usd_per_gpu_hour + second_usd_per_gpu_hour) / 2
    by_hours = (second_gpu_hours - first_gpu_hours) * mean
    return CostDifference(
        more_usd=more_usd, by_gpu_hours_usd=by_hours, by_price_usd=more_usd - by_hours
    )
