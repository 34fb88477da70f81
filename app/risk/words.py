"""Sentences about a plan with failures."""

from __future__ import annotations

from app.document import format as fmt
from app.document import vocabulary
from app.forecast.failure_inputs import Input
from app.risk.risk import GIVEN_UP, Risk
from core.scenario import Scenario


def risk_sentences(scenario: Scenario, risk: Risk) -> tuple[str, ...]:
    """The answer, and what it leaves out."""
    steady = fmt.days(risk.plan.hours.p50)
    head = (
        f"Plan {risk.plan.rank} on {vocabulary.machine(risk.plan)} takes {steady} without failures"
    )
    if not risk.finishes or risk.hours is None:
        chance = fmt.percent(risk.attempt_probability)
        return (
            f"{head}, and with them it does not end: an attempt gets as far as its next checkpoint "
            f"with a chance of {chance}, so that it is expected to take over {GIVEN_UP:,.0f} "
            "times as long.",
        )
    plan, usd = risk.plan, risk.usd
    cost = all_in = ""
    if usd is not None and plan.usd is not None and plan.total.usd is not None:
        steady_usd = fmt.usd(plan.usd.p50, digits=3)
        cost = f" and {fmt.usd(usd.expected, digits=3)} instead of {steady_usd}"
        all_in = (
            f" and {fmt.usd(plan.total.usd.expected, digits=3)} "
            f"(P90 {fmt.usd_short(plan.total.usd.p90)})"
        )
    failures = fmt.count(risk.failures) if risk.failures >= 10 else f"{risk.failures:.2g}"
    found = [
        f"{head}. With {failures} failures it takes {fmt.days(risk.hours.expected)}{cost} in the "
        f"mean: goodput {fmt.percent(risk.goodput)}.",
        f"Expected, all in: {fmt.days(plan.expected_hours)} (P90 "
        f"{fmt.days(plan.total.hours.p90)}){all_in}.",
    ]
    if plan.total.chance_on_time is not None and scenario.deadline_days is not None:
        found.append(
            f"It misses the deadline of {fmt.days(scenario.deadline_days * 24)} with a chance of "
            f"{fmt.chance(1 - plan.total.chance_on_time)}."
        )
    low, high = risk.rates
    found.append(
        f"At the lowest and highest published rate, {low[0]:g} and {high[0]:g} failures a "
        f"node-day, {fmt.days(low[1])} and {fmt.days(high[1])} are expected."
    )
    if risk.bursty is not None:
        mean, _, p90 = risk.bursty
        found.append(
            f"Simulated with uptimes of that Weibull shape and the same mean, {fmt.days(mean)} are "
            f"expected and the P90 is {fmt.days(p90)}."
        )
    if risk.plan.offer.purchase == "spot":
        found.append(
            "It is a spot price: its interruptions are not among these failures, but in what is "
            "expected all in; `runcast buy` has them policy by policy."
        )
    return tuple(found)


def basis_words(item: Input) -> str:
    """The basis of an input and its source: published: Kokolis et al., arXiv:2410.21680."""
    source = source_words(item)
    return f"{vocabulary.BASES[item.basis]}{f': {source}' if source else ''}"


def source_words(item: Input) -> str:
    """The source of an input without its basis."""
    return item.source.removeprefix("assumed: ")


def shown_value(item: Input) -> str:
    """The value of an input in the unit in which it is given."""
    if item.name.endswith("_s"):
        return f"{fmt.count(item.value) if item.value >= 1000 else f'{item.value:.3g}'} s"
    return f"{item.value:.4g}"
