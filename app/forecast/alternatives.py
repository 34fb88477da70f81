"""Alternatives to the best plan: the smallest count that fits, the fastest within a budget, the
cheapest by a deadline, the best use of the cluster at hand. core/search/alternatives.py chooses
them; this module puts them into sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from app.document import format as fmt
from app.document import vocabulary
from app.forecast.choice import choice_of
from app.forecast.search import job_of, searched
from app.forecast.stack_limits import asked_of, variants_of
from app.forecast.standing import set_aside
from app.forecast.vary import vary
from app.scenario.model import model_of
from core.scenario import Scenario
from core.scenario.types import AUTO
from core.search import alternatives as search_alternatives
from core.search.job import Machine
from core.search.plan import Answer
from hardware.efficiency import GENERIC
from hardware.stack_support import support_of

WORTH_SAYING = 1.5  # times as fast, from which software without a launch file is named
LIKELY = 0.5  # chance to be on time from which a plan does not miss the deadline, but may
MOST_COUNTS = 64  # counts tried below the smallest one known to fit
SAME_OFFER = ("accelerator", "provider", "instance_type", "region", "purchase")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """One alternative: the question it answers (a stable word), the limit it keeps, and the
    plan."""

    question: str
    limit: float | None
    point: Mapping[str, Any]  # a row of Answer.points
    sentence: str


def picks_of(scenario: Scenario, answer: Answer) -> tuple[Pick, ...]:
    """Every alternative that exists for this answer, in the order in which it is shown."""
    points = answer.points
    if not answer.num_plans:
        return ()
    deadline, budget = scenario.deadline_days, scenario.budget_usd
    first = partial(_first, answer)
    found = [
        ("smallest_count", None, "Fewest GPUs of those tried",
         _smallest_count(answer)),
        ("fastest", budget,
         "Fastest" if budget is None else f"Fastest within {fmt.usd(budget)}",
         first(search_alternatives.fastest, budget_usd=budget)),
        ("cheapest", deadline,
         "Cheapest" if deadline is None else f"Cheapest within {fmt.days(deadline * 24)}",
         first(search_alternatives.cheapest, on_time=points["meets_deadline"])),
    ]  # fmt: skip
    if len(scenario.gpu) == len(scenario.num_gpus) == 1:
        mine = (points["accelerator"] == scenario.gpu[0]) & (
            points["num_gpus"] == scenario.num_gpus[0]
        )
        what = f"Best use of {fmt.count(scenario.num_gpus[0])} x {scenario.gpu[0]}"
        best = first(search_alternatives.best_of_cluster, is_cluster=mine)
        found.append(("fixed_cluster", None, what, best))
    return tuple(
        Pick(question=question, limit=limit, point=point,
             sentence=f"{what}: {described(point)}{_outside(point)}.")
        for question, limit, what, row in found
        if row is not None
        for point in [{name: column[row] for name, column in points.items()}]
    )  # fmt: skip


def _outside(point: Mapping[str, Any]) -> str:
    """Which limits of the scenario a plan does not keep: a count that fits may be too slow."""
    missed = []
    if not point["meets_deadline"]:
        unsure = float(point["chance_on_time"]) >= LIKELY
        missed.append("is less sure of the deadline than asked" if unsure
                      else "misses the deadline")  # fmt: skip
    if not point["meets_budget"] and not np.isnan(point["paid_usd"]):
        missed.append("is over the budget")
    return f", which {' and '.join(missed)}" if missed else ""


def _smallest_count(answer: Answer) -> int | None:
    return _first(answer, search_alternatives.smallest_count, num_gpus=answer.points["num_gpus"])


def _first(answer: Answer, choose: Callable[..., int | None], **more: Any) -> int | None:
    """The row that is chosen among the priced plans that no more speaks against than against the
    recommended one, else among the priced ones, else among all."""
    points = answer.points
    columns = {"usd": points["paid_usd"], "hours": points["expected_hours"], **more}
    stands, priced = ~set_aside(answer), ~np.isnan(points["usd"])
    for kept in (stands & priced, priced, stands, np.ones_like(stands)):
        rows = np.flatnonzero(kept)
        some = {n: c[rows] if isinstance(c, np.ndarray) else c for n, c in columns.items()}
        if (row := choose(**some)) is not None:
            return int(rows[row])
    return None


def described(point: Mapping[str, Any]) -> str:
    """Describe a plan as expected in a few words: 64 x H100-80GB-SXM (aws p5.48xlarge, on demand),
    $12k in 3 days."""
    seller = vocabulary.seller_short(
        *(str(point[name]) for name in ("provider", "instance_type", "accelerator"))
    )
    usd = float(point["paid_usd"])
    cost = "no price" if np.isnan(usd) else fmt.usd(usd, digits=3)
    return (
        f"{fmt.count(int(point['num_gpus']))} x {point['accelerator']} ({seller}, "
        f"{vocabulary.purchase(str(point['purchase']))}), {cost} in "
        f"{fmt.days(float(point['expected_hours']))}"
    )


def spread_experts(scenario: Scenario, answer: Answer) -> float | None:
    """How many times as fast the recommended machines would pre-train with software that spreads
    experts over GPUs, where no stack with a launch file does so for this model; None where one
    does, or where it is hardly worth it."""
    experts = bool(np.any(np.asarray(model_of(scenario).transformer.num_experts) > 0))
    if not experts or scenario.stack != AUTO or scenario.task != "pretrain" or not answer.plans:
        return None
    plan, variants = answer.plans[0], variants_of(scenario)
    asked_stacks = {variants[n].stack for n in asked_of(variants, plan.offer.accelerator)}
    supports = [support_of(name) for name in asked_stacks]
    if any(s is None or "ep" in s.degrees for s in supports):
        return None
    other = vary(plan.job, scenario=scenario.model_copy(update={"stack": GENERIC}))
    if other is None:
        return None
    faster = other.tokens_per_s.p50 / plan.tokens_per_s.p50
    return faster if faster >= WORTH_SAYING else None


def _machine_of(scenario: Scenario, offer: Mapping[str, Any]) -> Machine | None:
    """The machine of an offer, by what tells offers apart."""
    return next(
        (
            m for m in choice_of(scenario).machines
            if all(getattr(m.offer, name) == offer[name] for name in SAME_OFFER)
        ),
        None,
    )  # fmt: skip


def smaller_count(scenario: Scenario, answer: Answer) -> int | None:
    """The fewest GPUs, in whole instances, on which the machine of the smallest pick still fits.
    None if no count below those of the answer fits. The counts need not be powers of two."""
    asked = answer.num_plans and not scenario.num_gpus
    row = _smallest_count(answer) if asked else None
    if row is None:
        return None
    point = {name: column[row] for name, column in answer.points.items()}
    machine = _machine_of(scenario, point)
    if machine is None:
        return None
    instance = machine.offer.gpu_count
    counts = list(range(instance, int(point["num_gpus"]), instance))[-MOST_COUNTS:]
    fits = fitting_counts(scenario, machine, counts)
    return min(fits, default=None)


def fitting_counts(scenario: Scenario, machine: Machine, counts: list[int]) -> list[int]:
    """The GPU counts on which some layout fits the machine."""
    best = searched(scenario, [job_of(scenario, machine, n) for n in counts]).best
    return [counts[int(j)] for j in best.job]
