"""Sentences about a plan with failures."""

from __future__ import annotations

from collections.abc import Callable

from app.document import format as fmt
from app.document import vocabulary
from app.forecast.failure_inputs import Input
from app.risk.risk import Risk
from core.cost.distribution import GIVEN_UP
from core.cost.uncertain import Uncertain
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan


def risk_sentences(scenario: Scenario, risk: Risk) -> tuple[str, ...]:
    """The answer, what failures add, and other failure rates."""
    plan = risk.plan
    name = f"Plan {plan.rank} on {vocabulary.machine(plan)}"
    if risk.hours is None:
        chance = fmt.percent(risk.attempt_probability)
        return (
            f"{name} takes {fmt.days(plan.startup_hours + plan.wall_clock_hours)} without "
            "failures. With failures it does not end: an attempt gets as far as its next "
            f"checkpoint with a chance of {chance}, so that the run is expected to take over "
            f"{GIVEN_UP:,.0f} times as long.",
        )
    sentences = [
        f"{name} takes about {_with_range(risk.hours, fmt.days)}.",
        *_cost(plan, risk.usd),
        *_failures(risk),
    ]
    if risk.misses_deadline is not None and scenario.deadline_days is not None:
        sentences.append(
            f"It misses the deadline of {fmt.days(scenario.deadline_days * 24)} with a chance of "
            f"{fmt.chance(risk.misses_deadline)}."
        )
    low, high = risk.rates
    sentences.append(
        f"At the lowest and highest published failure rate, {low[0]:g} and {high[0]:g} failures a "
        f"node-day, it takes {fmt.days(low[1])} and {fmt.days(high[1])} on average."
    )
    if risk.bursty is not None:
        mean, _, p90 = risk.bursty
        sentences.append(
            "Simulated at the forecast speed with failures in bursts, of that Weibull shape and "
            f"the same rate, it takes {fmt.days(mean)} on average and {fmt.days(p90)} at P90."
        )
    return tuple(sentences)


def _cost(plan: Plan, usd: Uncertain | None) -> tuple[str, ...]:
    """The cost of the run, after the sum that is committed."""
    if usd is None:
        return ()
    if plan.cost.commits:
        return (
            f"You commit to {_usd(plan.paid_usd)}; of it this run uses about "
            f"{_with_range(usd, _usd)}.",
        )
    return (f"It costs about {_with_range(usd, _usd)}.",)


def _failures(risk: Risk) -> tuple[str, ...]:
    """The run without failures and with machine failures alone, at the forecast speed; and what
    interruptions of spot add."""
    plan, cost = risk.plan, risk.plan.cost
    count = as_float(cost.failures)
    failures = fmt.count(count) if count >= 10 else f"{count:.2g}"
    usd = only_usd = ""
    if plan.usd is not None:
        usd = f" and costs {_usd(as_float(plan.usd.p50))}"
        only_usd = f" and costs {_usd(as_float(cost.failures_only_usd))}"
    sentences = [
        f"Without failures, at the forecast speed, it takes {fmt.days(as_float(plan.hours.p50))}"
        f"{usd}. With {failures} failures, at the same speed, it takes "
        f"{fmt.days(as_float(cost.failures_only_hours))}{only_usd} on average: goodput "
        f"{fmt.percent(risk.goodput)}."
    ]
    if plan.offer.purchase == "spot":
        waits = fmt.days(as_float(cost.hour_terms["preemption"]))
        adds = ""
        if cost.terms is not None and cost.has_price:
            adds = f" and {_usd(as_float(cost.terms['preemption'].mean))}"
        sentences.append(
            f"Spot waits whenever it is preempted: interruptions are {waits}{adds} of this. "
            "`runcast buy` compares policies."
        )
    return tuple(sentences)


def _usd(usd: float | None) -> str:
    return fmt.usd(usd, digits=3)


def _with_range(figures: Uncertain, write: Callable[[float], str]) -> str:
    """The mean and the range of eight runs in ten."""
    low, high = write(as_float(figures.p10)), write(as_float(figures.p90))
    return f"{write(as_float(figures.mean))} on average, 8 times in 10 between {low} and {high}"


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
