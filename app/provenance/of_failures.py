"""Where hours, dollars and goodput with failures come from: the terms that the plan carries."""

from __future__ import annotations

from math import isfinite

from app.document import vocabulary
from app.forecast.case import Case
from app.forecast.costs import price_sigmas
from app.forecast.failure_inputs import given_numbers
from app.forecast.failure_job import job_of
from app.forecast.price_book import price_day
from app.provenance.of_facts import of_risk, price_of
from app.provenance.of_money import billing_of, instances_of, wall_clock
from app.provenance.of_speed import sigma_record, skew_record
from app.provenance.record import Record, record
from core.numeric import as_float


def failing_records(case: Case, whole: Record) -> tuple[Record, ...]:
    """Mean hours, dollars and goodput of the run, with what they are made of."""
    plan = case.plan
    cost, topic = plan.cost, "Failures and checkpoints"
    given = given_numbers(case.scenario)
    inputs = job_of(plan, given).inputs.values()
    rests = tuple(of_risk(i, plan.offer.accelerator) for i in inputs)
    start = billing_of(case)[0]
    causes = tuple(
        record(f"{cause}_hours", vocabulary.LOST.get(cause, cause).capitalize(), hours, "h",
               topic=topic, inputs=rests if cause != "training" else (wall_clock(case, whole),))
        for cause, hours in cost.hour_terms.items() if cause != "startup"
    )  # fmt: skip
    hours = record(
        "expected_hours", "Time of the run, mean", plan.expected_hours, "h", topic=topic,
        formula=" + ".join(r.key for r in (start, *causes)) if isfinite(plan.expected_hours)
        else "", inputs=(start, *causes),
        note="" if isfinite(plan.expected_hours) else "at these failure rates no attempt ends",
    )  # fmt: skip
    goodput = record("goodput", "Goodput", cost.goodput, "share", topic=topic, inputs=rests)
    found = (
        hours, goodput,
        record("failures_only_hours", "Time at the forecast speed, with failures",
               cost.failures_only_hours, "h", topic=topic, inputs=rests),
    )  # fmt: skip
    if plan.expected_usd is None or cost.terms is None:
        return found
    width = float(price_sigmas((plan.offer,), price_day(case.scenario))[0])
    rates = (
        instances_of(case)[0], price_of(plan.offer), sigma_record(case), skew_record(case),
        record("price_sigma", "How far the price may have moved since it was seen (log)", width, "",
               topic="Interval",
               note="pricing/price_moves.csv, times the root of its age in years"),
    )  # fmt: skip
    terms = tuple(
        record(f"{name}_usd", vocabulary.COST_TERMS[name], as_float(term.mean), "USD",
               topic="Dollars", inputs=rates)
        for name, term in cost.terms.items() if as_float(term.mean)
    )  # fmt: skip
    usd = record(
        "expected_usd", "Cost of the run, mean", plan.expected_usd, "USD", topic="Dollars",
        formula=" + ".join(r.key for r in terms), inputs=terms,
    )  # fmt: skip
    return (
        *found, usd,
        record("paid_usd", "To pay, mean", plan.paid_usd, "USD", topic="Dollars", inputs=rates),
        record("failures_only_usd", "Cost at the forecast speed and the price as seen",
               cost.failures_only_usd, "USD", topic="Dollars", inputs=rates),
    )  # fmt: skip
