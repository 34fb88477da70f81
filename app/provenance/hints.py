"""Short help for a number of a plan: its formula with this plan's numbers, and its sources.

A hint is a tooltip of at most `MOST` characters.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import cache

from app.document import format as fmt
from app.plan import document as plan_document
from app.provenance.age import age_of, fit_sentence
from app.provenance.record import number
from core.errors import ScenarioError, unknown_sentence
from core.search.plan import Plan

MOST = 300
NO_PRICE = "No price of this machine is known."


@cache
def _fit() -> str:
    return fit_sentence()


def hint(name: str, plan: Plan, today: dt.date | None = None) -> str:
    """Formula, inputs and source of one of the numbers in `HINTS`."""
    if name not in HINTS:
        raise ScenarioError(unknown_sentence("number", name, HINTS))
    day = today or dt.datetime.now(tz=dt.UTC).date()
    return HINTS[name](plan, day)[:MOST]


def _price_source(plan: Plan, today: dt.date) -> str:
    offer = plan.offer
    short = offer.source if len(offer.source) <= 70 else f"{offer.source[:69]}…"
    return f"{short or 'not recorded'}, {age_of(offer.observed_at, today)}"


def _cost(plan: Plan, today: dt.date) -> str:
    if plan.usd is None:
        return NO_PRICE
    return (
        f"Wall clock x instances x price of one: {fmt.hours(plan.wall_clock_hours)} x "
        f"{fmt.count(plan.num_nodes)} x {fmt.usd_per_hour(plan.offer.usd_per_hour)}. "
        f"Price: {_price_source(plan, today)}. P10 to P90 is the forecast's own error, no failures."
    )


def _step(plan: Plan) -> str:
    return fmt.seconds(sum(plan.step_s.values()))


def _time(plan: Plan, today: dt.date) -> str:
    return (
        f"Steps x time of a step: {fmt.count(plan.num_steps)} x {_step(plan)}. A step is work "
        f"over rates x fractions fitted on {_fit()}. Without failures; P10 to P90 is the "
        "forecast's own error."
    )


def _memory(plan: Plan, today: dt.date) -> str:
    largest = sorted(plan.memory_bytes.items(), key=lambda item: -item[1])[:3]
    parts = " + ".join(f"{name} {fmt.gib(size)}" for name, size in largest)
    return (
        f"Sum of its parts: {parts} + others, of {fmt.gib(plan.memory_capacity_bytes)} that a "
        f"framework can use. Activations and buffers rest on fractions fitted on published runs."
    )


def _speed(plan: Plan, today: dt.date) -> str:
    return (
        f"Tokens of a step over its time, {_step(plan)}. The time: work over the device's rates x "
        f"fractions fitted on {_fit()}."
    )


def _mfu(plan: Plan, today: dt.date) -> str:
    return (
        "Tokens/s per GPU x model FLOPs per token / dense 16-bit peak of "
        f"{plan.offer.accelerator}, with {number(round(plan.tokens_per_s_per_gpu, 1))} tokens/s "
        "per GPU. Causal attention counts once, recompute does not count."
    )


def _price(plan: Plan, today: dt.date) -> str:
    if plan.usd is None:
        return NO_PRICE
    return (
        f"Price of the instance over its GPUs: {fmt.usd_per_hour(plan.offer.usd_per_hour)} / "
        f"{fmt.count(plan.offer.gpu_count)}. Source: {_price_source(plan, today)}."
    )


def _gpu_hours(plan: Plan, today: dt.date) -> str:
    return (
        f"Wall clock x instances x GPUs of each: {fmt.hours(plan.wall_clock_hours)} x "
        f"{fmt.count(plan.num_nodes)} x {fmt.count(plan.offer.gpu_count)}. Idle GPUs of "
        "an instance are in it."
    )


# Hints that do not depend on the plan.
SAID = {
    "hfu": "As MFU, with the FLOPs that activation recompute repeats counted, too.",
    "probability_oom": (
        "Chance that the real peak is above the capacity: a log-normal around the forecast, as "
        "wide as forecasts of published runs missed their measured memory."
    ),
    "with_failures": (
        "Expected, with failures, checkpoints and restarts at published rates, or at yours: "
        "hardware/reliability.csv names them; the Prices & risk page shows them."
    ),
}
HINTS: dict[str, Callable[[Plan, dt.date], str]] = {
    "cost": _cost,
    "time": _time,
    "memory": _memory,
    "tokens_per_s": _speed,
    "mfu": _mfu,
    "hfu": lambda plan, today: SAID["hfu"],
    "price": _price,
    "gpu_hours": _gpu_hours,
    "probability_oom": lambda plan, today: SAID["probability_oom"],
    "with_failures": lambda plan, today: SAID["with_failures"],
}

# For the column headers of the ranked table, which apply to all plans.
COLUMNS = {
    plan_document.COST: "Wall clock x instances x price of one, median (P50); without failures",
    plan_document.COST_LOW: "One run in ten costs less: "
    "the forecast's own error, not that of prices",
    plan_document.COST_HIGH: "One run in ten costs more: "
    "the forecast's own error, not that of prices",
    plan_document.TIME: "Steps x time of a step, median (P50); without failures",
    plan_document.FAILING_TIME: "Expected, if machines fail as often as published, or as given; "
    "a dash: so often that it never ends",
    plan_document.FAILING_COST: "Expected, if machines fail as often as published, or as given",
    plan_document.GOODPUT: "Share of the expected time that is training which is kept",
    plan_document.MFU: "Model FLOPs over the dense 16-bit peak; recompute does not count",
    plan_document.SPEED: "Tokens of a step over its time, all GPUs together",
    plan_document.MEMORY: "Of the fullest GPU: states, activations, logits, buffers, reserve",
    plan_document.PRICE: "Price of the instance over its GPUs",
    plan_document.GPU_HOURS: "Wall clock x every GPU that is paid, "
    "idle ones of an instance included",
    "Price of": "The day on which the source dates the price",
    "Fastest or cheapest": "No other priced plan is both cheaper and faster",
}
