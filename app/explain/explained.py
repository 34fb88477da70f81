"""Computes explanations of plans and layouts with `core.explain`, from facts and prices."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from app.document import format as fmt
from app.document import vocabulary
from app.forecast import machines
from app.forecast.choice import choice_of
from app.forecast.named_layout import completed
from app.forecast.search import best_of, job_of
from app.forecast.stack_limits import as_planned, asked_of, variants_of
from app.forecast.training import question_of, tokens_of
from app.scenario.layout import layout_text
from core.errors import ScenarioError
from core.explain.bottleneck import Faster, faster
from core.explain.changes import Changes, changes
from core.explain.explain import (
    Case,
    CostDifference,
    Difference,
    Evaluated,
    Place,
    columns_of,
    cost_difference,
    difference,
    evaluate,
)
from core.explain.knobs import KNOBS
from core.explain.obstacles import Obstacle, Shortage, obstacles, shortage
from core.layout.layouts import Choices, Layouts
from core.scenario import Scenario
from core.scenario.types import AUTO
from core.search.best import Job
from core.search.job import Machine, Question
from core.search.plan import Answer, Layout, Plan
from core.search.recommended import MOST_PROBABILITY_OOM

LAYOUT_KNOBS = tuple(k for k in KNOBS if k not in ("num_gpus", "accelerator", "offload"))
MOST_CHANGES = 8
ALIKE = 1e-3  # relative difference of time and dollars below which two plans are alike
MOST_PLACES = 8  # larger accelerators to try, the cheapest GPU-hour first


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The setting in which layouts are compared: one machine, one number of GPUs, one job."""

    scenario: Scenario
    case: Case
    machine: Machine
    choices: Choices
    num_gpus: int

    def job(self) -> Job:
        """The job for which layouts are searched, as in the answer's search."""
        job = job_of(self.scenario, self.machine, self.num_gpus)
        return replace(job, cluster=self.case.place.cluster)

    @property
    def question(self) -> Question:
        """What is trained in this setting, and how."""
        return Question(work=self.case.work, eff=self.case.eff, choices=self.choices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Time, cost and memory of one layout."""

    step_s: float
    parts_s: dict[str, float]
    hours: float
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


def setting_of(scenario: Scenario, plan: Plan) -> Setting:
    """The machine and the job of a plan. Its layout evaluated in this setting has the plan's own
    step time: a measurement by the user that moved the plan also moves every compared layout."""
    scenario = as_planned(scenario, plan)
    accelerator = machines.accelerator_of(plan.offer.accelerator, scenario)
    machine = machines.as_known(machines.machine(plan.offer, accelerator), scenario)
    found = _setting(scenario, machine, plan.num_gpus)
    computed = evaluate(found.case, columns_of([plan.layout], [plan.num_gpus]))
    moved = sum(plan.step_s.values()) / float(computed.step_s[0])
    place = found.case.place
    if plan.usd is not None:  # including other costs, if the plan counts more than instances
        hourly = plan.usd.p50 / (plan.billed_hours * plan.num_nodes)
        place = replace(place, usd_per_instance_hour=hourly)
    surely = plan.probability_oom <= MOST_PROBABILITY_OOM
    return replace(found, case=replace(found.case, slowdown=moved, place=place, surely=surely))


def settings_of(scenario: Scenario, plan: Plan) -> tuple[Setting, ...]:
    """The setting of a plan, and, where the scenario leaves the stack open, those of the other
    stacks that run on its machine, each different question once."""
    own = setting_of(scenario, plan)
    if scenario.stack != AUTO:
        return (own,)
    variants = variants_of(scenario)
    others = (variants[n] for n in asked_of(variants, own.machine.accelerator.name))
    found = {own.question: own}
    for variant in others:
        if variant.precision == own.scenario.precision:
            other = _setting(variant, own.machine, plan.num_gpus)
            case = replace(
                other.case, slowdown=own.case.slowdown, place=own.case.place, surely=own.case.surely
            )
            found.setdefault(other.question, replace(other, case=case))
    return tuple(found.values())


def setting_without_plan(scenario: Scenario) -> Setting:
    """The scenario's cheapest machine at its first number of GPUs, used if nothing fits, with the
    stack that misses its memory by least. Machines with a guessed network come last if several
    instances are needed."""
    offered = choice_of(scenario).machines
    if not offered or not scenario.num_gpus:
        missing = "the number of GPUs (--num-gpus)" if offered else "GPUs that some offer has"
        raise ScenarioError(f"Nothing fits, so that a layout can only be explained with {missing}.")
    count = scenario.num_gpus[0]
    machine = min(offered, key=lambda m: _dearness(m, count))
    variants = variants_of(scenario)
    asked = asked_of(variants, machine.accelerator.name)
    return min((_setting(variants[n], machine, count) for n in asked), key=_miss)


def _miss(setting: Setting) -> float:
    """Bytes that the nearest miss of a setting needs over those of the device."""
    closest = best_of(setting.question, [setting.job()]).closest
    return math.inf if closest is None else closest.over


def _setting(scenario: Scenario, machine: Machine, num_gpus: int) -> Setting:
    question = question_of(scenario)
    return Setting(
        scenario=scenario,
        case=Case(
            work=question.work,
            place=_place(machine),
            eff=question.eff,
            memory_sigma=question.memory_sigma,
            num_tokens=tokens_of(scenario),
        ),
        machine=machine,
        choices=question.choices,
        num_gpus=num_gpus,
    )


def _place(machine: Machine) -> Place:
    usd = machine.offer.usd_per_hour
    return Place(
        name=machine.accelerator.name,
        cluster=machine.cluster,
        gpus_per_instance=float(machine.offer.gpu_count),
        usd_per_instance_hour=math.nan if usd is None else usd,
        host_bytes=machine.host_bytes,
        most_gpus=min(machine.largest_num_gpus or math.inf, machine.largest_job),
        startup_hours=machine.supply.startup_hours,
        least_billed_hours=machine.supply.least_billed_hours,
    )


def _dearness(machine: Machine, num_gpus: int) -> tuple[bool, float]:
    """Sort key of machines: guessed networks between instances last, then price per GPU-hour."""
    usd, per_instance = machine.offer.usd_per_hour, machine.offer.gpu_count
    guessed = not machine.network_known and num_gpus > per_instance
    return guessed, math.inf if usd is None else usd / per_instance


def larger_places(setting: Setting) -> list[Place]:
    """The cheapest offer of the same purchase kind for every accelerator with more memory;
    guessed networks last if the job needs several instances."""
    needed = float(np.asarray(setting.case.place.cluster.memory_bytes))
    offered = choice_of(setting.scenario.model_copy(update={"gpu": ()})).machines
    best: dict[str, Machine] = {}
    for m in sorted(offered, key=lambda m: _dearness(m, setting.num_gpus)):
        if m.accelerator.memory_bytes > needed and m.offer.usd_per_hour is not None:
            best.setdefault(m.accelerator.name, m)
    return [_place(m) for m in list(best.values())[:MOST_PLACES]]


def row_of(setting: Setting, layout: Layout) -> Layouts:
    """A layout as columns with one row."""
    return columns_of([layout], [setting.num_gpus])


def figures_of(found: Evaluated) -> Figures:
    """The figures of the first evaluated row."""
    usd = float(found.usd[0])
    return Figures(
        step_s=float(found.step_s[0]),
        parts_s={k: float(v[0]) for k, v in found.parts_s.items() if v[0] > 0},
        hours=float(found.hours[0]),
        usd=usd if math.isfinite(usd) else None,
        memory_bytes={k: float(v[0]) for k, v in found.memory_bytes.items()},
        capacity_bytes=float(found.capacity_bytes[0]),
        probability_oom=float(found.probability_oom[0]),
    )


# --- what is asked -------------------------------------------------------------------------------


def why(scenario: Scenario, plan: Plan, other: Plan | None) -> Why:
    """A plan compared with another plan and with neighbouring layouts, and what makes it faster."""
    setting = setting_of(scenario, plan)
    near = changes(
        setting.case,
        plan.layout,
        num_gpus=plan.num_gpus,
        choices=setting.choices,
        knobs=LAYOUT_KNOBS,
        most=1,
    )
    next_layout = None
    if near.ranked:
        found = figures_of(evaluate(setting.case, row_of(setting, near.ranked[0].layout)))
        next_layout = against_layout(setting, plan.layout, near.ranked[0].layout, found)
    return Why(
        runner_up=None if other is None else against_plan(plan, other),
        next_layout=next_layout,
        next_changes=near,
        faster=faster(setting.case, row_of(setting, plan.layout)),
    )


def faster_of(scenario: Scenario, plan: Plan) -> Faster:
    """What makes a plan faster."""
    setting = setting_of(scenario, plan)
    return faster(setting.case, row_of(setting, plan.layout))


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
    cost = None
    if plan.usd is not None and other.usd is not None:
        cost = cost_difference(
            first_gpu_hours=plan.gpu_hours,
            second_gpu_hours=other.gpu_hours,
            first_usd=plan.usd.p50,
            second_usd=other.usd.p50,
        )
    return Against(
        name=other.id,
        label=f"Plan {other.rank}, {vocabulary.machine(other)}",
        step=difference(plan.step_s, other.step_s),
        hours=other.hours.p50 - plan.hours.p50,
        cost=cost,
    )


def against_layout(setting: Setting, first: Layout, second: Layout, found: Figures) -> Against:
    """One layout compared with another on the same machines."""
    own = evaluate(setting.case, row_of(setting, first))
    here = figures_of(own)
    cost = None
    if here.usd is not None and found.usd is not None:
        gpus = float(own.gpu_hours[0]) / max(here.hours, setting.case.place.least_billed_hours)
        place = setting.case.place
        paid = (max(x.hours, place.least_billed_hours) for x in (here, found))
        first_paid, second_paid = paid
        cost = cost_difference(
            first_gpu_hours=first_paid * gpus,
            second_gpu_hours=second_paid * gpus,
            first_usd=here.usd,
            second_usd=found.usd,
        )
    return Against(
        name=layout_text(second),
        label=fmt.layout_short(second),
        step=difference(here.parts_s, found.parts_s),
        hours=found.hours - here.hours,
        cost=cost,
    )


def named(setting: Setting, text: str, *, like: Layout, most: int = MOST_CHANGES) -> Named:
    """The result for a named layout on the machines of `setting`. Parts that the text leaves out
    are searched. ScenarioError if the text is not a layout."""
    layout, choices = completed(
        text,
        scenario=setting.scenario,
        case=setting.case,
        choices=setting.choices,
        num_gpus=setting.num_gpus,
        like=like,
    )
    row = row_of(setting, layout)
    broken = obstacles(setting.case.work, row, 0, choices)
    found, lacks = None, None
    if not broken:
        evaluated = evaluate(setting.case, row)
        found, lacks = figures_of(evaluated), shortage(evaluated, 0)
    near = changes(
        setting.case,
        layout,
        num_gpus=setting.num_gpus,
        choices=setting.choices,
        places=larger_places(setting),
        most=4 * most,
    )
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
