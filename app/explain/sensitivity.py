"""How much a plan changes with each input, with its layout kept or searched again, and which
unknowns make up its interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from app.explain.explained import Setting, row_of, setting_of
from app.forecast.search import best_of
from app.forecast.stack_limits import is_unknown, stack_of
from app.forecast.training import profile_of
from core.evidence import uncertainty
from core.evidence.uncertainty import Circumstances
from core.explain.explain import evaluate, record_of
from core.explain.sensitivity import CHANGE, JOB, MACHINE, Effect, Unknown, sensitivities, unknowns
from core.money import cost as money_cost
from core.scenario import Scenario
from core.search.plan import Layout, Plan
from core.units import HOUR_S
from hardware.efficiency import GENERIC, read_entries
from hardware.habits.built_on import stack_named
from hardware.measured import measured_accelerators

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


def sensitivity_of(scenario: Scenario, plan: Plan) -> Sensitivity:
    """The effect of each input 10% lower and higher, and the causes of the plan's interval."""
    setting = setting_of(scenario, plan)
    causes = _unknowns(setting, plan)
    return Sensitivity(
        change=CHANGE,
        effects=sensitivities(
            setting.case, row_of(setting, plan.layout), bounds=_bounds(setting.scenario.stack)
        ),
        unknowns=causes,
        sigma=float(np.sqrt(sum(u.sigma**2 for u in causes))),
    )


@lru_cache(maxsize=32)
def _bounds(stack: str) -> dict[str, tuple[float, float]]:
    """The valid range of each software fraction, from hardware/efficiency.csv."""
    families = (GENERIC, stack_named(stack).family)
    return {e.quantity: (e.low, e.high) for e in read_entries() if e.stack in families}


def _unknowns(setting: Setting, plan: Plan) -> tuple[Unknown, ...]:
    """The unknowns that make up the plan's interval. Measured runs like the plan, and what the user
    measured, narrow those that they share with it."""
    scenario, work, machine = setting.scenario, setting.case.work, setting.machine
    eff = profile_of(scenario)
    known = Circumstances(
        unknown_stack=float(is_unknown(stack_of(scenario))),
        experts=float(np.any(np.asarray(work.model.num_experts) > 0)),
        adapters=float(bool(work.adapters)),
        unmeasured=float(machine.accelerator.matmul_flops_per_s is None),
        unseen_accelerator=float(machine.accelerator.name not in measured_accelerators()),
        doublings=float(uncertainty.doublings(plan.num_gpus)),
        network_guessed=float(plan.num_nodes > 1 and not machine.network_known),
    )
    parts_s, half = _timed(setting, plan)
    guessed = bool(known.network_guessed)
    known = uncertainty.of_step(known, parts_s=parts_s, at_half_network=half if guessed else 0.0)
    left = 1.0 if plan.nearby is None else plan.nearby.variance_left
    return unknowns(eff, known, variance_left=left)


def _timed(setting: Setting, plan: Plan) -> tuple[dict[str, float], float]:
    """The parts of the plan's step, and the log of the step at half its network over the step."""
    case, lay = setting.case, row_of(setting, plan.layout)
    network = np.asarray(case.place.cluster.scale_out_bytes_per_s)
    half = replace(case.place.cluster, scale_out_bytes_per_s=network / 2)
    now, then = evaluate(case, lay), evaluate(case, lay, cluster=half)
    parts_s = {name: float(v[0]) for name, v in now.parts_s.items()}
    return parts_s, float(np.log(then.step_s[0] / now.step_s[0]))


def searched_again(scenario: Scenario, plan: Plan) -> tuple[Again, ...]:
    """The effect of inputs 10% lower and higher, with the best layout searched again.

    Lengths are rounded to multiples of 128, batches to multiples of the data-parallel ranks.
    """
    setting = setting_of(scenario, plan)
    found = []
    for name, kind in SEARCHED_AGAIN:
        if name == "scale_out_bytes_per_s" and plan.num_nodes == 1:
            continue
        owner: object = setting.case.work if kind == JOB else setting.case.place.cluster
        value = float(np.asarray(getattr(owner, name)))
        for factor in (1 - CHANGE, 1 + CHANGE):
            to = _whole(name, value, factor, plan.layout)
            if to is not None:
                found.append(_again(setting, plan, name, kind, value, to))
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


def _again(
    setting: Setting, plan: Plan, name: str, kind: str, value: float, to: float
) -> Again:  # fmt: skip
    work, cluster = setting.case.work, setting.case.place.cluster
    if kind == JOB:
        work = replace(work, **{name: to})  # type: ignore[arg-type]
    else:
        cluster = replace(cluster, **{name: to})  # type: ignore[arg-type]
    job = replace(setting.job(), cluster=cluster)
    case = setting.case
    best = best_of(replace(setting.question, work=work), [job])
    if not len(best.job):
        return Again(name=name, value=value, to=to, time=None, layout=None, changed=True)
    layout = record_of(best.layouts, 0)
    steps = money_cost.num_steps(
        num_tokens=case.num_tokens, seq_len=work.seq_len, global_batch_size=work.global_batch_size
    )
    hours = float(np.asarray(steps)) * float(best.step.step_s[0]) * case.slowdown / HOUR_S
    same = replace(layout, num_microbatches=plan.layout.num_microbatches) == plan.layout
    return Again(
        name=name,
        value=value,
        to=to,
        time=hours / plan.wall_clock_hours - 1,
        layout=layout,
        changed=not same,
    )
