"""Sensitivity of the answer to each input, and the causes of the width of its interval.

Every input is made a tenth smaller and a tenth larger, one at a time, and the step is evaluated
again with the layout as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from core.evidence import uncertainty
from core.evidence.uncertainty import Circumstances
from core.explain.explain import Evaluated, Floats, evaluate, rent_of
from core.layout.layouts import Layouts
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.numeric import as_float
from core.search.job import PlanJob

CHANGE = 0.1
LEAST = 1e-4  # of time or dollars: an input that changes them less is left out
JOB, MACHINE, SOFTWARE, PRICE = "job", "machine", "software", "price"
OF_WORK = ("seq_len", "global_batch_size", "host_slowdown", "capacity_factor", "expert_imbalance")
OF_CLUSTER = (
    "peak_flops_per_s", "memory_bytes", "memory_bytes_per_s", "scale_up_bytes_per_s",
    "scale_out_bytes_per_s", "host_link_bytes_per_s", "scale_up_hop_s", "scale_out_hop_s",
    "power_share",
)  # fmt: skip
AT_MOST_ONE = ("power_share",)
AT_LEAST_ONE = ("expert_imbalance",)
# Fractions of core.machine.efficiency for the width of the interval move no forecast.
OF_EFFICIENCY = tuple(
    f.name for f in fields(Efficiency) if not f.name.endswith(("_sigma", "_skew"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The answer with one input at its lower and at its higher value. Time and dollars are relative
    to those at the input's own value, minus one."""

    name: str
    kind: str
    value: float
    low: float
    high: float
    time_low: float
    time_high: float
    usd_low: float  # NaN: no price
    usd_high: float
    oom_low: float  # chance of running out of memory
    oom_high: float

    @property
    def swing(self) -> float:
        """The larger of its effects on time and on dollars."""
        moves = (self.time_low, self.time_high, self.usd_low, self.usd_high)
        return max(abs(m) for m in moves if np.isfinite(m))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """One cause of the width of an interval."""

    name: str  # of core.evidence.uncertainty.throughput_terms
    sigma: float  # of the log of the throughput
    share: float  # of the variance


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    name: str
    kind: str
    value: float
    to: float


def sensitivities(
    job: PlanJob,
    layouts: Layouts,
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    change: float = CHANGE,
) -> tuple[Effect, ...]:
    """Effect of every input a tenth down and up, the largest first. `layouts` has one row;
    `bounds` keeps the fractions of software where they have a meaning."""
    turns = _turns(job, layouts, bounds or {}, change)
    base = evaluate(job, layouts)
    found = _turned(job, layouts, turns)
    hours, usd = float(base.hours[0]), float(base.usd[0])
    effects = []
    for n in range(0, len(turns), 2):
        low, high = turns[n], turns[n + 1]
        effects.append(
            Effect(
                name=low.name,
                kind=low.kind,
                value=low.value,
                low=low.to,
                high=high.to,
                time_low=float(found.hours[n]) / hours - 1,
                time_high=float(found.hours[n + 1]) / hours - 1,
                usd_low=float(found.usd[n]) / usd - 1,
                usd_high=float(found.usd[n + 1]) / usd - 1,
                oom_low=float(found.probability_oom[n]),
                oom_high=float(found.probability_oom[n + 1]),
            )
        )
    oom = float(base.probability_oom[0])
    effects = [
        e for e in effects
        if e.swing >= LEAST or max(abs(e.oom_low - oom), abs(e.oom_high - oom)) >= 100 * LEAST
    ]  # fmt: skip
    return tuple(sorted(effects, key=lambda e: -e.swing))


def _turns(
    job: PlanJob, layouts: Layouts, bounds: Mapping[str, tuple[float, float]], change: float
) -> list[_Turn]:
    """The lower and higher value of every input that is given and not 0."""

    def value(owner: object, name: str) -> float:
        return as_float(getattr(owner, name))

    inputs = [("num_tokens", JOB, job.num_tokens)]
    inputs += [(n, JOB, value(job.work, n)) for n in OF_WORK]
    inputs += [(n, MACHINE, value(job.cluster, n)) for n in OF_CLUSTER]
    inputs += [(n, SOFTWARE, value(job.eff, n)) for n in OF_EFFICIENCY]
    inputs += [("usd_per_instance_hour", PRICE, rent_of(job.machine)["usd_per_instance_hour"])]
    turns = []
    for name, kind, now in inputs:
        if not (np.isfinite(now) and now):
            continue
        low, high = bounds.get(name, (-np.inf, np.inf))
        high = min(high, 1.0) if name in AT_MOST_ONE else high
        low = max(low, 1.0) if name in AT_LEAST_ONE else low
        for factor in (1 - change, 1 + change):
            to = float(np.clip(now * factor, low, high))
            turns.append(_Turn(name=name, kind=kind, value=now, to=to))
    return turns


def _turned(job: PlanJob, layouts: Layouts, turns: list[_Turn]) -> Evaluated:
    names = np.array([t.name for t in turns])
    to = np.array([t.to for t in turns])

    def column(owner: object, name: str) -> Any:
        return np.where(names == name, to, np.asarray(getattr(owner, name), dtype=float))

    work: Workload = replace(job.work, **{n: column(job.work, n) for n in OF_WORK})
    given = job.cluster
    cluster: Cluster = replace(given, **{n: column(given, n) for n in OF_CLUSTER})
    eff: Efficiency = replace(job.eff, **{n: column(job.eff, n) for n in OF_EFFICIENCY})
    rows = layouts.take(np.zeros(len(turns), dtype=np.intp))
    larger = np.asarray(work.global_batch_size) / np.asarray(job.work.global_batch_size)
    rows = replace(rows, num_microbatches=np.asarray(rows.num_microbatches) * larger)
    return evaluate(
        job,
        rows,
        work=work,
        cluster=cluster,
        eff=eff,
        num_tokens=np.where(names == "num_tokens", to, job.num_tokens),
        usd_per_instance_hour=np.where(
            names == "usd_per_instance_hour", to, rent_of(job.machine)["usd_per_instance_hour"]
        ),
    )


def unknowns(
    eff: Efficiency,
    known: Circumstances,
    *,
    variance_left: float = 1.0,
    shared: tuple[str, ...] = (
        "throughput_sigma", "inferred_sigma", "unknown_stack_sigma", "experts_sigma",
        "adapters_sigma", "host_time_sigma", "bandwidth_sigma",
    ),
) -> tuple[Unknown, ...]:  # fmt: skip
    """The causes of the width of an interval of tokens per second, the widest first. Variances add
    up; a measurement of the user leaves `variance_left` of what it `shared` with the forecast.
    """
    variances: dict[str, Floats | float] = {}
    for name, times in uncertainty.throughput_terms(known).items():
        sigma = as_float(getattr(eff, name)) * as_float(times)
        variances[name] = sigma**2 * (variance_left if name in shared else 1.0)
    whole = float(sum(variances.values()))
    found = [
        Unknown(name=n, sigma=float(np.sqrt(v)), share=float(v) / whole)
        for n, v in variances.items()
        if v > 0
    ]
    return tuple(sorted(found, key=lambda u: -u.share))
