"""Where hours, dollars and goodput with failures come from."""

from __future__ import annotations

from dataclasses import replace
from math import exp, isclose, isfinite

from app.forecast.case import Case
from app.forecast.expected.total import price_sigmas
from app.forecast.failure_inputs import given_numbers
from app.forecast.failure_job import job_of, least_interval_s
from app.forecast.price_book import price_day
from app.forecast.with_failures import of_plans
from app.provenance.of_facts import of_risk, price_of
from app.provenance.of_money import billing_of, instances_of, wall_clock
from app.provenance.of_speed import sigma_record, skew_record
from app.provenance.record import Record, record
from core.failures import goodput
from core.failures.time_factor import factor_cumulants, time_factor
from core.numeric import Z_90, as_float


def failing_records(case: Case, whole: Record) -> tuple[Record, ...]:
    """Hours, dollars and goodput with failures, as on the Plan page."""
    scenario, plan = case.scenario, case.plan
    (shown,) = of_plans(scenario, (plan,))
    given = given_numbers(scenario)
    asked = job_of(plan, given)
    least_s = least_interval_s(asked.job, plan)
    if (interval := given.get("interval_s")) is None:
        job = goodput.at_best_interval(asked.job, least_s=least_s)
    else:
        job = replace(asked.job, interval_s=max(interval, least_s))
    topic = "Failures and checkpoints"
    rests = tuple(of_risk(i, plan.offer.accelerator) for i in asked.inputs.values())
    named = {r.key: r for r in rests}

    def of_job(key: str, label: str, value: object, unit: str = "", note: str = "") -> Record:
        return record(key, label, value, unit, topic=topic, note=note, inputs=rests)

    segments = ("the number that makes the expected time least" if interval is None
                else "as the given interval makes")  # fmt: skip
    inputs = (
        of_job("num_segments", "Segments of work, each with a checkpoint",
               goodput.num_segments(job), note=segments),
        of_job("segment_s", "One segment with its checkpoint", goodput.segment_s(job), "s"),
        of_job("failures_per_s", "Failures a second of the whole job", job.failures_per_s,
               note="GPUs / 8 x failures per node-day, and those of the job"),
        of_job("down_s", "Down after a failure, and waiting for a machine",
               job.down_s + job.wait_s, "s"),
        named.get("restart_s") or of_job("restart_s", "Restart and reload", job.reload_s, "s"),
        named.get("upload_s") or of_job("upload_s", "Its upload", job.upload_s, "s"),
    )  # fmt: skip
    formula = (
        "(num_segments * exp(failures_per_s * (restart_s + upload_s))"
        " * (exp(failures_per_s * segment_s) - 1) + exp(failures_per_s * restart_s)"
        " * (exp(failures_per_s * upload_s) - 1)) / failures_per_s"
        " * (1 + failures_per_s * down_s) / 3600"
    )
    if not as_float(job.failures_per_s):
        formula = "(num_segments * segment_s + upload_s) / 3600"
    start, least = billing_of(case)
    formula = f"{start.key} + {formula}"
    ends = isfinite(shown.hours_expected)
    expected = record(
        "expected_hours", "Wall clock with failures, expected", shown.hours_expected, "h",
        formula=formula if ends else "", topic=topic,
        inputs=(start, *inputs, *(r for r in rests if r not in inputs)),
        note="" if ends else "at these failure rates no attempt ends",
    )  # fmt: skip
    if not ends:
        return (expected,)
    kept = record(
        "goodput", "Goodput", shown.goodput, "share", topic=topic,
        formula="wall_clock_hours / (expected_hours - startup_hours)",
        inputs=(wall_clock(case, whole), expected, start),
    )  # fmt: skip
    if not isfinite(plan.expected_hours):
        return expected, kept
    whole_time = _all_in_hours(case, expected, start)
    if plan.usd is None or plan.usd_per_gpu_hour is None:
        return expected, kept, whole_time
    instances = plan.usd_per_gpu_hour * plan.gpu_hours
    more = plan.usd.p50 - instances
    has_more = abs(more) > 1e-9 * max(instances, 1.0)
    others = record("beside_usd", "Storage, traffic, less credits", more, "USD", topic="Dollars")
    usd = record(
        "expected_usd", "Cost with failures, expected", shown.usd_expected, "USD", topic="Dollars",
        formula="max(expected_hours, least_billed_hours) * num_instances * usd_per_instance_hour"
        + (" + beside_usd" if has_more else ""),
        inputs=(expected, least, instances_of(case)[0], price_of(plan.offer),
                *([others] if has_more else [])),
    )  # fmt: skip
    return expected, kept, usd, whole_time, *_all_in_usd(case, whole_time, others)


def _all_in_hours(case: Case, failing: Record, start: Record) -> Record:
    """The expected time all in: with the mean of how much longer the training takes."""
    sigma, skew = sigma_record(case), skew_record(case)
    on_spot = case.plan.offer.purchase == "spot"
    longer = _longer(sigma, skew)
    return record(
        "total_hours", "Time of the run, all in, expected", case.plan.expected_hours, "h",
        formula="" if on_spot else f"{start.key} + ({failing.key} - {start.key}) * {longer.key}",
        topic="Interval", inputs=(start, failing, longer),
        note="preempted, too, and waiting until spot is there again" if on_spot else "",
    )  # fmt: skip


def _longer(sigma: Record, skew: Record) -> Record:
    """How much longer than forecast training takes in the mean (core/failures/time_factor.py)."""
    given = sigma.value or 0.0, skew.value or 0.0
    scale, width = map(as_float, time_factor(*given))
    slower = f"(exp({Z_90:.10g} * {sigma.key} * (1 + {skew.key})) - 1)"
    faster = f"(1 - exp(-{Z_90:.10g} * {sigma.key} * (1 - {skew.key})))"
    of_width = record(
        "time_factor_width", "Width of how much longer training may take", width, "",
        formula=f"ln({slower} / {faster}) / {Z_90:.10g}", topic="Interval", inputs=(sigma, skew),
    )  # fmt: skip
    of_scale = record(
        "time_factor_scale", "Scale of how much longer training may take", scale, "",
        formula=f"{slower} / (exp({Z_90:.10g} * {of_width.key}) - 1)", topic="Interval",
        inputs=(sigma, skew, of_width),
    )  # fmt: skip
    return record(
        "mean_time_factor", "How much longer than forecast training takes, in the mean",
        as_float(factor_cumulants(*given)[0]), "",
        formula=f"1 + {of_scale.key} * (exp({of_width.key}^2 / 2) - 1)", topic="Interval",
        inputs=(of_scale, of_width),
    )  # fmt: skip


def _all_in_usd(case: Case, hours: Record, others: Record) -> tuple[Record, ...]:
    """The expected cost all in; without a formula where waiting or the least billing changes it."""
    plan, rented = case.plan, (instances_of(case)[0], price_of(case.plan.offer))
    if plan.expected_usd is None or plan.usd_per_gpu_hour is None:
        return ()
    width = float(price_sigmas((plan.offer,), price_day(case.scenario))[0])
    moved = record(
        "price_sigma", "How far the price may have moved since it was seen (log)", width, "",
        topic="Interval", note="pricing/price_moves.csv, times the root of its age in years",
    )  # fmt: skip
    per_hour = plan.usd_per_gpu_hour * plan.gpu_hours / plan.billed_hours
    value = plan.expected_hours * per_hour * exp(width**2 / 2) + (others.value or 0.0)
    has_more = bool(others.value) and abs(others.value or 0.0) > 1e-9 * abs(value)
    exact = isclose(value, plan.expected_usd, rel_tol=1e-7)
    found = record(
        "total_usd", "Cost of the run, all in, expected", plan.expected_usd, "USD",
        formula=f"{hours.key} * num_instances * usd_per_instance_hour * exp({moved.key}^2 / 2)"
        + (" + beside_usd" if has_more else "") if exact else "",
        topic="Dollars", inputs=(hours, *rented, moved, *([others] if has_more else [])),
        note="" if exact else "of the hours that are paid, or the seller's least",
    )  # fmt: skip
    return (found,)
