"""Why the recommended plan is recommended, in one or two sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.document import format as fmt
from app.document import vocabulary
from app.forecast.alternatives import described, spread_experts
from app.forecast.standing import OLD
from app.scenario.model import model_of
from core.scenario import Scenario
from core.search.plan import Answer, Plan, Recommendation

CLOSE = 5e-4  # of dollars or hours, below which a difference is none
CERTAIN = 0.995  # chance to be late, from which on nobody asks how sure


def recommended_sentence(scenario: Scenario, answer: Answer) -> str:
    """What decided, the gates that nothing passes, and why the cheapest of all is not it."""
    found = answer.recommendation
    if found is None or not answer.plans:
        return ""
    plan = answer.plans[0]
    sentences = (
        _decided(scenario, answer, found),
        *(_empty(scenario, plan, gate.name) for gate in found.gates if gate.is_empty),
        _passed_over(scenario, answer, found),
        _experts(scenario, answer),
        _spot(plan),
    )
    return " ".join(filter(None, sentences))


def _decided(scenario: Scenario, answer: Answer, found: Recommendation) -> str:
    """$6 more than the cheapest, 6.6 days sooner."""
    by_time = _by_time(scenario, answer)
    what = "fastest" if by_time else "cheapest"
    other = "other " if any(g.is_empty for g in found.gates) else ""
    of = f"of {fmt.count(found.num_passing)} that pass every {other}gate" * (found.num_passing > 1)
    mine, base = _point(answer, 0), _point(answer, found.base)
    usd = float(mine["paid_usd"]) - float(base["paid_usd"])
    hours = float(mine["expected_hours"]) - float(base["expected_hours"])
    no_price = "No price is known: " if answer.plans[0].paid_usd is None else ""
    if found.base == 0 or not abs(hours) >= 0:
        said = f"the {what} {of or f'that passes every {other}gate'}."
        return no_price + (said if no_price else said.capitalize())
    money = _difference(usd, fmt.usd_short, "more", "less", base["paid_usd"])
    time = _difference(hours, fmt.days, "later", "sooner", base["expected_hours"])
    first, second = (time, money) if by_time else (money, time)
    why = "" if _is_better(hours if not by_time else usd, base, by_time) else ", and simpler"
    against = first or ("As fast as" if by_time else "As cheap as")
    join = f"{against} than" if first else against
    return f"{no_price}{join} the {what} {of}".rstrip() + f"{f', {second}' if second else ''}{why}."


def _by_time(scenario: Scenario, answer: Answer) -> bool:
    """Whether time ranks the plans: asked for, or all that is known of them."""
    return scenario.rank_by == "time" or answer.plans[0].paid_usd is None


def _is_better(change: float, base: Mapping[str, Any], by_time: bool) -> bool:
    """Whether what comes second is better by more than nothing: then it decided."""
    whole = float(base["paid_usd" if by_time else "expected_hours"])
    return change < -CLOSE * whole


def _difference(change: float, write: Any, more: str, less: str, whole: object) -> str:
    if not abs(change) > CLOSE * abs(float(whole)):  # type: ignore[arg-type]
        return ""  # or not known
    return f"{write(abs(change))} {more if change > 0 else less}"


def _empty(scenario: Scenario, plan: Plan, gate: str) -> str:
    """Which gate nothing passes, and how far from it the plan is."""
    chance = plan.chance_on_time or 0.0
    budget = fmt.usd(scenario.budget_usd)
    sure = fmt.percent(scenario.deadline_confidence)
    return {
        "deadline": f"No plan ends by the deadline with a chance of {sure}: this one with "
        f"{fmt.chance(chance)}.",
        "budget": f"No such plan is expected to cost at most {budget}: this one "
        f"{fmt.usd(plan.paid_usd)}."
        if plan.paid_usd is not None
        else f"Nothing can be held against the budget of {budget}.",
        "memory": "No such plan runs out of memory with a chance of at most 5%: this one with "
        f"{fmt.chance(plan.probability_oom)}.",
        "price": "No such plan stands on a price that is young and good enough: this one on "
        f"{_doubted(plan.offer.observed_at, plan.against)}.",
        "supply": "No such plan can be had in that number without asking: ask for a reservation.",
        "launch": f"No launch file takes such a plan: {plan.no_launch or plan.stack}.",
    }[gate]


def _passed_over(scenario: Scenario, answer: Answer, found: Recommendation) -> str:
    """The cheapest of all plans, where a gate keeps it out."""
    failed = [n for n in found.failed if not any(g.is_empty and g.name == n for g in found.gates)]
    if not failed or found.cheapest == 0:
        return ""
    point = _point(answer, found.cheapest)
    chance = 1 - float(point["chance_on_time"])
    why = {
        "deadline": "is late" + (f" (chance {fmt.chance(chance)})" if chance < CERTAIN else ""),
        "budget": "is over the budget",
        "memory": "runs out of memory with a chance of "
        f"{fmt.chance(float(point['probability_oom']))}",
        "price": f"stands on {_doubted(point['observed_at'], point['against'].split())}",
        "supply": "needs a reservation",
        "launch": f"has no launch file ({point['stack']})",
    }[failed[0]]
    what = "fastest" if _by_time(scenario, answer) else "cheapest"
    return f"The {what} of all, {described(point)}, {why}."


def _doubted(observed_at: str, against: Sequence[str]) -> str:
    """A price of 2026-07-20, past its life; a price of low quality."""
    seen = f" of {observed_at}," if OLD in against else ""
    return f"a price{seen} {vocabulary.price_faults(against)}"


def _experts(scenario: Scenario, answer: Answer) -> str:
    """What software would do that spreads experts, where no stack with a launch file does."""
    if (faster := spread_experts(scenario, answer)) is None:
        return ""
    return (
        f"No stack with a launch file here spreads the experts of {model_of(scenario).label} over "
        f"GPUs: software that does is about {faster:.2g} times as fast on these machines "
        "(stack=generic)."
    )


def _spot(plan: Plan) -> str:
    """By which policy a spot plan is bought, and how late it may be."""
    if plan.offer.purchase != "spot":
        return ""
    chance = plan.chance_on_time
    late = "" if chance is None else f", {fmt.chance(1 - chance)} likely late"
    return (
        f"Spot only, waiting whenever it is preempted: P90 {fmt.days(plan.cost.hours.p90)}{late}."
    )


def _point(answer: Answer, row: int) -> Mapping[str, Any]:
    return {name: column[row] for name, column in answer.points.items()}
