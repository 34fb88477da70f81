"""How much a plan changes with each input, with its layout kept or searched again, and which
unknowns make up its interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import log
from typing import Any

import numpy as np

from app.explain.explained import row_of
from app.forecast.plans import circumstances_of
from app.forecast.stack_limits import is_unknown, stack_of
from app.forecast.training import profile_of
from app.forecast.vary import vary
from core.evidence import uncertainty
from core.explain.sensitivity import CHANGE, JOB, MACHINE, Effect, Unknown, sensitivities, unknowns
from core.search.plan import Layout, Plan
from hardware.efficiency import GENERIC, read_entries
from hardware.habits.built_on import stack_named

# Inputs on which the best layout depends, so that searching again is worthwhile.
SEARCHED_AGAIN = (
    ("seq_len", JOB),
    ("global_batch_size", JOB),
    ("memory_bytes", MACHINE),
    ("scale_up_bytes_per_s", MACHINE),
    ("scale_out_bytes_per_s", MACHINE),
)
TOKENS = 128  # lengths are multiples of this, since others cannot be split over GPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """The effect of one changed input with the best layout searched again: time and dollars over
    those of the plan, minus one."""

    name: str
    value: float
    to: float
    time: float | None  # None: nothing fits after the change
    changed: bool  # whether the layout differs
    layout: Layout | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """How much a plan changes with each input."""

    change: float  # relative change of an input, up and down
    effects: tuple[Effect, ...]  # with the layout kept
    unknowns: tuple[Unknown, ...]  # the unknowns that make up the throughput's interval
    sigma: float  # width of the interval: standard deviation of the log


def sensitivity_of(plan: Plan) -> Sensitivity:
    """The effect of each input 10% lower and higher, and the causes of the plan's interval."""
    causes = unknowns_of(plan)
    return Sensitivity(
        change=CHANGE,
        effects=sensitivities(
            plan.job, row_of(plan.job, plan.layout), bounds=_bounds(plan.job.scenario.stack)
        ),
        unknowns=causes,
        sigma=float(np.sqrt(sum(u.sigma**2 for u in causes))),
    )


@lru_cache(maxsize=32)
def _bounds(stack: str) -> dict[str, tuple[float, float]]:
    """The valid range of each software fraction, from hardware/efficiency.csv."""
    families = (GENERIC, stack_named(stack).family)
    return {e.quantity: (e.low, e.high) for e in read_entries() if e.stack in families}


def unknowns_of(plan: Plan) -> tuple[Unknown, ...]:
    """The unknowns that make up the plan's interval. Measured runs like the plan, and what the user
    measured, narrow those that they share with it."""
    job = plan.job
    eff = profile_of(job.scenario)
    known = replace(
        circumstances_of(job.machine, num_gpus=plan.num_gpus, crosses=plan.num_nodes > 1),
        unknown_stack=float(is_unknown(stack_of(job.scenario))),
        experts=float(np.any(np.asarray(job.work.model.num_experts) > 0)),
        adapters=float(bool(job.work.adapters)),
    )
    half = plan.at_half_network
    known = uncertainty.of_step(
        known, parts_s=plan.step_s, at_half_network=0.0 if half is None else log(half.step_factor)
    )
    left = 1.0 if plan.nearby is None else plan.nearby.variance_left
    return unknowns(eff, known, variance_left=left)


def searched_again(plan: Plan) -> tuple[Again, ...]:
    """The effect of inputs 10% lower and higher, with the best layout searched again.

    Lengths are rounded to multiples of 128, batches to multiples of the data-parallel ranks.
    """
    found = []
    for name, kind in SEARCHED_AGAIN:
        if name == "scale_out_bytes_per_s" and plan.num_nodes == 1:
            continue
        owner: object = plan.job.work if kind == JOB else plan.job.cluster
        value = float(np.asarray(getattr(owner, name)))
        for factor in (1 - CHANGE, 1 + CHANGE):
            to = _whole(name, value, factor, plan.layout)
            if to is not None:
                found.append(_again(plan, name, kind, value, to))
    return tuple(found)


def _whole(name: str, value: float, factor: float, layout: Layout) -> float | None:
    """The nearest length or batch that can be split; None if there is none below."""
    unit = {
        "seq_len": float(TOKENS if value >= 10 * TOKENS else 1),
        "global_batch_size": float(layout.dp_replicate * layout.dp_shard),
    }.get(name)
    if unit is None:
        return value * factor
    turns = round(value * factor / unit)
    if turns * unit == value:
        turns += 1 if factor > 1 else -1
    return turns * unit if turns >= 1 else None


def _again(plan: Plan, name: str, kind: str, value: float, to: float) -> Again:
    job, machine = plan.job, plan.job.machine
    if kind == JOB:
        other = vary(job, scenario=job.scenario.model_copy(update={name: round(to)}))
    else:
        change: dict[str, Any] = {name: to}
        other = vary(job, machine=replace(machine, cluster=replace(machine.cluster, **change)))
    if other is None:
        return Again(name=name, value=value, to=to, time=None, layout=None, changed=True)
    layout = other.layout
    return Again(
        name=name,
        value=value,
        to=to,
        time=other.wall_clock_hours / plan.wall_clock_hours - 1,
        layout=layout,
        changed=replace(layout, num_microbatches=plan.layout.num_microbatches) != plan.layout,
    )
