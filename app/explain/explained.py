"""Computes explanations of plans and layouts with `core.explain`, from facts and prices."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from app.document import format as fmt
from app.document import vocabulary
from app.forecast.choice import choice_of
from app.forecast.named_layout import completed
from app.forecast.search import best_of, plan_job, search_job
from app.forecast.stack_limits import asked_of, variants_of
from app.forecast.training import question_of
from app.scenario.layout import layout_text
from core.errors import ScenarioError
from core.explain.bottleneck import Faster, faster
from core.explain.changes import Changes, changes
from core.explain.explain import (
    CostDifference,
    Difference,
    Evaluated,
    columns_of,
    cost_difference,
    difference,
    evaluate,
)
from core.explain.knobs import KNOBS
from core.explain.obstacles import Obstacle, Shortage, obstacles, shortage
from core.layout.layouts import Layouts
from core.scenario import Scenario
from core.scenario.types import AUTO
from core.search.job import Machine, PlanJob
from core.search.plan import Answer, Layout, Plan

LAYOUT_KNOBS = tuple(k for k in KNOBS if k not in ("num_gpus", "accelerator", "offload"))
MOST_CHANGES = 8
ALIKE = 1e-3  # relative difference of time and dollars below which two plans are alike
MOST_MACHINES = 8  # with larger accelerators to try, the cheapest GPU-hour first


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Time, cost and memory of one layout."""

    step_s: float
    parts_s: dict[str, float]
    hours: float
    gpu_hours: float
    usd: float | None
    memory_bytes: dict[str, float]
    capacity_bytes: float
    probability_oom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """One plan or layout compared with another."""

    name: str  # of the other: the id of a plan, or the text of a layout
    label: str  # the other as shown to a reader
    step: Difference
    hours: float  # additional hours of the other
    cost: CostDifference | None  # None: one of the two has no price


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The result for a layout that the user named."""

    text: str  # the complete layout as text; an illegal one as it was given
    layout: Layout
    verdict: str  # fits, does_not_fit or illegal: stable, like the keys of the JSON
    obstacles: tuple[Obstacle, ...]
    shortage: Shortage | None
    figures: Figures | None  # None: illegal
    changes: Changes  # changes that make it fit; if it fits, changes that improve it


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why a plan is as fast and as expensive as it is."""

    runner_up: Against | None  # the next plan of the ranking, or the first
    next_layout: Against | None  # the best other layout on the same machines
    next_changes: Changes
    faster: Faster


def jobs_by_stack(scenario: Scenario, plan: Plan) -> tuple[PlanJob, ...]:
    """The job of a plan, and, where the scenario leaves the stack open, those of the other stacks
    that run on its machine, each different question once."""
    own = plan.job
    if scenario.stack != AUTO:
        return (own,)
    variants = variants_of(scenario)
    found = {own.question: own}
    for number in asked_of(variants, own.machine.accelerator.name):
        if (variant := variants[number]).precision == own.scenario.precision:
            question = question_of(variant)
            found.setdefault(question, replace(own, scenario=variant, question=question))
    return tuple(found.values())


def job_without_plan(scenario: Scenario) -> PlanJob:
    """The job on the scenario's cheapest machine at its first number of GPUs, used if nothing fits,
    with the stack that misses its memory by least. Machines with a guessed network come last if
    several instances are needed."""
    offered = choice_of(scenario).machines
    if not offered or not scenario.num_gpus:
        missing = "the number of GPUs (--num-gpus)" if offered else "GPUs that some offer has"
        raise ScenarioError(f"Nothing fits, so that a layout can only be explained with {missing}.")
    count = scenario.num_gpus[0]
    machine = min(offered, key=lambda m: _dearness(m, count))
    variants = variants_of(scenario)
    asked = (variants[n] for n in asked_of(variants, machine.accelerator.name))
    return min((plan_job(v, question_of(v), machine, count) for v in asked), key=_miss)


def _miss(job: PlanJob) -> float:
    """Bytes that the nearest miss of a job needs over those of the device."""
    closest = best_of(job.question, [search_job(job)]).closest
    return math.inf if closest is None else closest.over


def _dearness(machine: Machine, num_gpus: int) -> tuple[bool, float]:
    """Sort key of machines: guessed networks between instances last, then price per GPU-hour."""
    usd, per_instance = machine.offer.usd_per_hour, machine.offer.gpu_count
    guessed = not machine.network_known and num_gpus > per_instance
    return guessed, math.inf if usd is None else usd / per_instance


def larger_machines(job: PlanJob) -> list[Machine]:
    """The cheapest offer of the same purchase kind for every accelerator with more memory;
    guessed networks last if the job needs several instances."""
    needed = float(np.asarray(job.cluster.memory_bytes))
    offered = choice_of(job.scenario.model_copy(update={"gpu": ()})).machines
    best: dict[str, Machine] = {}
    for m in sorted(offered, key=lambda m: _dearness(m, job.num_gpus)):
        if m.accelerator.memory_bytes > needed and m.offer.usd_per_hour is not None:
            best.setdefault(m.accelerator.name, m)
    return list(best.values())[:MOST_MACHINES]


def row_of(job: PlanJob, layout: Layout) -> Layouts:
    """A layout as columns with one row."""
    return columns_of([layout], [job.num_gpus])


def figures_of(found: Evaluated) -> Figures:
    """The figures of the first evaluated row."""
    usd = float(found.usd[0])
    return Figures(
        step_s=float(found.step_s[0]),
        parts_s={k: float(v[0]) for k, v in found.parts_s.items() if v[0] > 0},
        hours=float(found.hours[0]),
        gpu_hours=float(found.gpu_hours[0]),
        usd=usd if math.isfinite(usd) else None,
        memory_bytes={k: float(v[0]) for k, v in found.memory_bytes.items()},
        capacity_bytes=float(found.capacity_bytes[0]),
        probability_oom=float(found.probability_oom[0]),
    )


# --- what is asked -------------------------------------------------------------------------------


def why(plan: Plan, other: Plan | None) -> Why:
    """A plan compared with another plan and with neighbouring layouts, and what makes it faster."""
    near = changes(plan.job, plan.layout, knobs=LAYOUT_KNOBS, most=1)
    next_layout = None
    if near.ranked:
        layout = near.ranked[0].layout
        found = figures_of(evaluate(plan.job, row_of(plan.job, layout)))
        next_layout = against_layout(plan.job, plan.layout, layout, found)
    return Why(
        runner_up=None if other is None else against_plan(plan, other),
        next_layout=next_layout,
        next_changes=near,
        faster=faster_of(plan),
    )


def faster_of(plan: Plan) -> Faster:
    """What makes a plan faster."""
    return faster(plan.job, row_of(plan.job, plan.layout))


def other_of(answer: Answer, plan: Plan) -> Plan | None:
    """The plan to compare a plan with. For the first of the ranking, the next one whose time or
    price differs (equal machines in other regions often do not); otherwise the first."""
    if plan.rank != 1:
        return next((p for p in answer.plans if p.rank == 1), None)
    others = sorted((p for p in answer.plans if p.rank > 1), key=lambda p: p.rank)
    unlike = (p for p in others if not _alike(p, plan))
    return next(unlike, others[0] if others else None)


def _alike(a: Plan, b: Plan) -> bool:
    usd = [math.nan if p.usd is None else p.usd.p50 for p in (a, b)]
    same_usd = math.isclose(*usd, rel_tol=ALIKE) or a.usd is b.usd is None
    return same_usd and math.isclose(a.hours.p50, b.hours.p50, rel_tol=ALIKE)


def against_plan(plan: Plan, other: Plan) -> Against:
    """One plan compared with another, from the figures of both."""
    return Against(
        name=other.id,
        label=f"Plan {other.rank}, {vocabulary.machine(other)}",
        step=difference(plan.step_s, other.step_s),
        hours=other.hours.p50 - plan.hours.p50,
        cost=_more_usd(plan, other),
    )


def _more_usd(plan: Plan, other: Plan) -> CostDifference | None:
    first, second = plan.usd_per_gpu_hour, other.usd_per_gpu_hour
    if plan.usd is None or other.usd is None or first is None or second is None:
        return None
    return cost_difference(
        first_gpu_hours=plan.gpu_hours,
        second_gpu_hours=other.gpu_hours,
        first_usd_per_gpu_hour=first,
        second_usd_per_gpu_hour=second,
        more_usd=other.usd.p50 - plan.usd.p50,
    )


def against_layout(job: PlanJob, first: Layout, second: Layout, found: Figures) -> Against:
    """One layout compared with another on the same machines."""
    here = figures_of(evaluate(job, row_of(job, first)))
    cost, price = None, job.offer.usd_per_hour
    if here.usd is not None and found.usd is not None and price is not None:
        rate = price / job.offer.gpu_count
        cost = cost_difference(
            first_gpu_hours=here.gpu_hours,
            second_gpu_hours=found.gpu_hours,
            first_usd_per_gpu_hour=rate,
            second_usd_per_gpu_hour=rate,
            more_usd=found.usd - here.usd,
        )
    return Against(
        name=layout_text(second),
        label=fmt.layout_short(second),
        step=difference(here.parts_s, found.parts_s),
        hours=found.hours - here.hours,
        cost=cost,
    )


def named(job: PlanJob, text: str, *, like: Layout, most: int = MOST_CHANGES) -> Named:
    """The result for a named layout of a job. Parts that the text leaves out are searched.
    ScenarioError if the text is not a layout."""
    layout, choices = completed(text, job=job, like=like)
    row = row_of(job, layout)
    broken = obstacles(job.work, row, 0, choices)
    found, lacks = None, None
    if not broken:
        evaluated = evaluate(job, row)
        found, lacks = figures_of(evaluated), shortage(evaluated, 0)
    near = changes(job, layout, machines=larger_machines(job), most=4 * most)
    ranked = near.ranked
    if found is not None and lacks is None:  # it works: only better layouts are worth listing
        ranked = tuple(c for c in ranked if _is_better(c.usd, c.hours, found))
    return Named(
        text=text.strip() if broken else layout_text(layout),
        layout=layout,
        verdict="illegal" if broken else "does_not_fit" if lacks else "fits",
        obstacles=broken,
        shortage=lacks,
        figures=found,
        changes=replace(near, ranked=ranked[:most]),
    )


def _is_better(usd: float, hours: float, found: Figures) -> bool:
    return hours < found.hours if found.usd is None else usd < found.usd
