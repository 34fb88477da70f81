"""The cards at the top of the Plan page: a number each, its range, its machines."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace

import numpy as np

from app.document import format as fmt
from app.forecast.standing import set_aside
from app.plan.document import NO_PRICE, cost_range, machine_of, peak_bytes, time_range
from core.scenario import Scenario
from core.search.plan import Answer, Plan
from core.search.ranking import standing
from pricing.book.offers import is_quote

BEYOND = "beyond the plans listed below"


@dataclass(frozen=True, slots=True)
class Headline:
    """One of the four numbers at the top: its value and its qualifying lines."""

    label: str
    value: str
    lines: tuple[str, ...]
    about: str
    of: tuple[str, Plan] | None = None  # which number of which plan; None: no listed plan


@dataclass(frozen=True, slots=True)
class Point:
    """A plan that is shown only as a point of the chart."""

    usd: float
    hours: float
    machine: str


def _extreme(answer: Answer, column: str) -> Plan | Point | None:
    """The plan with the least cost, or the least time within the budget, of those that no more
    speaks against than against the recommended one, else of all; in full if it is listed, else as
    its chart point."""
    if column not in answer.points:
        return None
    values = np.asarray(answer.points[column], dtype=float)
    points = answer.points
    usd = np.asarray(points["paid_usd"], dtype=float)
    dear = np.isnan(usd)
    if column == "expected_hours":
        dear |= ~points["meets_budget"]
    for without in (dear, set_aside(answer)):
        values = standing(values, in_doubt=np.asarray(without, dtype=bool))
    if not np.isfinite(values).any():
        return None
    row = int(np.nanargmin(values))
    plan_id = str(answer.points["id"][row])
    gpus, provider = fmt.count(answer.points["num_gpus"][row]), answer.points["provider"][row]
    return next((p for p in answer.plans if p.id == plan_id), None) or Point(
        usd=float(answer.points["paid_usd"][row]),
        hours=float(answer.points["expected_hours"][row]),
        machine=f"{gpus} x {answer.points['accelerator'][row]}, {provider}",
    )


def _of_plan(label: str, about: str, number: str, plan: Plan, today: dt.date) -> Headline:
    """The cost or the time of a plan, its spread, the other of the two, the age of the price."""
    cost, time = fmt.usd_short(plan.paid_usd), fmt.days(plan.expected_hours)
    value, other, spread = cost, time, cost_range(plan)
    if number == "time":
        value, other, spread = time, cost, time_range(plan)
    age = NO_PRICE if plan.usd is None else f"price {fmt.age(plan.offer.observed_at, today)}"
    own = ", your quote" if is_quote(plan.offer) else ""
    lines = (spread, f"{other} on {machine_of(plan)}, {plan.offer.provider}{own}", age)
    return Headline(label, value, lines, about, (number, plan))


def _least(label: str, about: str, number: str, answer: Answer, today: dt.date) -> Headline | None:
    """The plan with the least cost or time; None if there is none."""
    match _extreme(answer, "paid_usd" if number == "cost" else "expected_hours"):
        case Plan() as plan:
            return _of_plan(label, about, number, plan, today)
        case Point() as point:
            cost, time = fmt.usd_short(point.usd), fmt.days(point.hours)
            value, other = (cost, time) if number == "cost" else (time, cost)
            return Headline(label, value, (f"{other} on {point.machine}", BEYOND), about)
    return None


def headlines(scenario: Scenario, answer: Answer, selected: Plan, today: dt.date) -> list[Headline]:
    """Recommended, its chance to be on time, the cheapest, the fastest, and the memory of the
    selected plan."""
    best, about = answer.plans[0], "Average cost of the first plan, failures included"
    recommended = _of_plan("Recommended", about, "cost", best, today)
    if best.usd is None:
        hours = fmt.days(best.expected_hours)
        recommended = replace(recommended, value=hours, of=("time", best))
    else:  # the sentence above the cards has the price's age
        recommended = replace(recommended, lines=recommended.lines[:-1])
    about = "Expected cost of the cheapest plan, however long it takes"
    cheapest = _least("Cheapest if you wait", about, "cost", answer, today)
    about = "Expected time of the fastest plan"
    money = "Fastest" if scenario.budget_usd is None else "Fastest for your money"
    fastest = _least(money, about, "time", answer, today)
    peak, capacity = peak_bytes(selected), selected.memory_capacity_bytes
    lines = (
        f"of {fmt.gib(capacity)} usable ({fmt.percent(peak / capacity)})",
        f"chance to run out {fmt.chance(selected.probability_oom)}",
        *([f"selected plan: #{selected.rank}"] if selected.rank > 1 else []),
    )
    of = ("memory", selected)
    memory_of = Headline("Peak memory per GPU", fmt.gib(peak), lines, "Of the selected plan", of)
    found = (recommended, _on_time(scenario, best), cheapest, fastest, memory_of)
    return [h for h in found if h is not None]


def _on_time(scenario: Scenario, best: Plan) -> Headline | None:
    """The chance that the recommended plan ends by the deadline; None without one."""
    chance, days = best.chance_on_time, scenario.deadline_days
    if chance is None or days is None:
        return None
    lines = (
        f"deadline {fmt.days(days * 24)}",
        f"asked: {fmt.percent(scenario.deadline_confidence)}",
    )
    return Headline("On time", fmt.chance(chance), lines, "Of the recommended plan")
