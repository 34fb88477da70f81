"""Short help for a number of a plan: what it is made of, with this plan's numbers, and its sources.

A hint is a tooltip of at most `MOST` characters.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

from app.document import format as fmt
from app.document import vocabulary
from app.forecast import price_book
from app.plan import document as plan_document
from app.provenance.age import age_of, fit_sentence
from core.errors import ScenarioError, unknown_sentence
from core.numeric import as_float
from core.search.plan import Plan

MOST = 300
NO_PRICE = "No price of this machine is known."

HINTS = {
    "cost": "Average: {costs}. Price {price} for each of {instances}: {source}. P10 to P90 covers "
    "speed, failures and the price's age.",
    "time": "Average: {times}. Speed: work over the device's rates x fractions fitted on {fit}. "
    "P10 to P90 covers speed and failures.",
    "memory": "Sum of its parts: {parts} + others, of {capacity} that a framework can use. "
    "Activations and buffers rest on fractions fitted on published runs.",
    "tokens_per_s": "Tokens of a step over its time, {step}. The time: work over the device's "
    "rates x fractions fitted on {fit}.",
    "mfu": "Tokens/s per GPU x model FLOPs per token / dense 16-bit peak of {accelerator}, with "
    "{speed} tokens/s per GPU. Causal attention counts once, recompute does not count.",
    "hfu": "As MFU, with the FLOPs that activation recompute repeats counted, too.",
    "price": "Price of the instance over its GPUs: {price} / {gpus}. Source: {source}.",
    "gpu_hours": "Hours paid x instances x GPUs of each: {billed} x {instances} x {gpus}. Idle "
    "GPUs of an instance are in it.",
    "probability_oom": "Chance that the real peak is above the capacity: a log-normal around the "
    "forecast, as wide as forecasts of published runs missed their measured memory.",
    "with_failures": "Average with failures, checkpoints and restarts at published rates, or at "
    "yours: hardware/reliability.csv names them. The Risk & money page shows them.",
}


def hint(name: str, plan: Plan, today: dt.date | None = None) -> str:
    """What one of the numbers in `HINTS` is made of, and its source."""
    if name not in HINTS:
        raise ScenarioError(unknown_sentence("number", name, HINTS))
    if plan.usd is None and name in ("cost", "price"):
        return NO_PRICE
    day = today or price_book.today()
    return HINTS[name].format(**_figures(plan, day))[:MOST]


def _figures(plan: Plan, today: dt.date) -> dict[str, str]:
    """What hints name, as text."""
    offer = plan.offer
    source = offer.source if len(offer.source) <= 70 else f"{offer.source[:69]}…"
    largest = sorted(plan.memory_bytes.items(), key=lambda item: -item[1])[:3]
    return {
        "billed": fmt.hours(plan.billed_hours),
        "costs": _largest(plan.cost.terms or {}, vocabulary.COST_TERMS, fmt.usd_short),
        "times": _largest(plan.cost.hour_terms, vocabulary.LOST, fmt.days),
        "instances": fmt.count(plan.num_nodes),
        "gpus": fmt.count(offer.gpu_count),
        "accelerator": offer.accelerator,
        "price": fmt.usd_per_hour(offer.usd_per_hour),
        "source": f"{source or 'not recorded'}, {age_of(offer.observed_at, today)}",
        "step": fmt.seconds(sum(plan.step_s.values())),
        "speed": f"{plan.tokens_per_s_per_gpu:,.1f}",
        "fit": fit_sentence(),
        "parts": " + ".join(f"{name} {fmt.gib(size)}" for name, size in largest),
        "capacity": fmt.gib(plan.memory_capacity_bytes),
    }


def _largest(
    parts: Mapping[str, Any], labels: Mapping[str, str], write: Callable[[float], str]
) -> str:
    """The largest parts of a sum, with how much the others add."""
    means = {labels[name]: as_float(getattr(part, "mean", part)) for name, part in parts.items()}
    first = sorted(means.items(), key=lambda item: -abs(item[1]))[:2]
    rest = sum(means.values()) - sum(mean for _, mean in first)
    texts = [f"{label[0].lower()}{label[1:]} {write(mean)}" for label, mean in first if mean]
    return " + ".join([*texts, f"others {write(rest)}"])


# For the column headers of the ranked table, which apply to all plans.
COLUMNS = {
    plan_document.EXPECTED_COST: "Mean of the run: uncertain speed, failures, checkpoints, "
    "restarts, preemption, start-up, least billing, and a price that may have moved",
    plan_document.EXPECTED_TIME: "Mean from the request of the machines to the last checkpoint",
    plan_document.EXPECTED_LOW: "One run in ten costs less",
    plan_document.EXPECTED_HIGH: "One run in ten costs more",
    plan_document.ON_TIME: "That the run ends by the deadline",
    plan_document.TIME_LOW: "One run in ten ends sooner",
    plan_document.TIME_HIGH: "One run in ten ends later",
    plan_document.COST: "Hours paid, start-up included, x instances x price of one, median (P50); "
    "without failures",
    plan_document.COST_LOW: "One run in ten costs less: "
    "the forecast's own error, not that of prices",
    plan_document.COST_HIGH: "One run in ten costs more: "
    "the forecast's own error, not that of prices",
    plan_document.TIME: "Start-up, and steps x time of a step, median (P50); without failures",
    plan_document.PAID: "Mean of what is signed for: whole terms of a reservation, whole blocks",
    plan_document.IN_BUDGET: "That what is paid keeps to the budget",
    plan_document.FAILING_TIME: "As the expected time; a dash: the run never ends",
    plan_document.FAILING_COST: "As the expected cost",
    plan_document.GOODPUT: "Share of the expected time that is training which is kept",
    plan_document.MFU: "Model FLOPs over the dense 16-bit peak; recompute does not count",
    plan_document.SPEED: "Tokens of a step over its time, all GPUs together",
    plan_document.MEMORY: "Of the fullest GPU: states, activations, logits, buffers, reserve",
    plan_document.PRICE: "Price of the instance over its GPUs",
    plan_document.GPU_HOURS: "Hours paid x every GPU that is rented, "
    "idle ones of an instance included",
    "Price of": "The day on which the source dates the price",
    plan_document.AGAINST: "Why the plan is ranked below all others",
    "Fastest or cheapest": "No other priced plan is expected to be both cheaper and faster",
    plan_document.AGAINST: "Such plans come after all others within the same limits",
}
