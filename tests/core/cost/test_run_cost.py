"""The cost of a run, held against a simulation of its events."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from core.cost.run_cost import TERMS, RunTerms, run_cost
from core.cost.training import joined_trainings, training_of_job
from core.failures import goodput, monte_carlo
from core.failures.goodput import Job
from core.failures.spot import also_preempted
from core.failures.time_factor import factor_at

HOUR = 3600.0
SPEEDS = 60  # equally likely slices of the speed
# Work in hours, failures a day, checkpoint, upload, down, wait and reload in seconds, the widths of
# speed and price, start-up and least billing in hours; and how far quantiles may be off.
CASES = {
    "a fortnight on one machine": (300, 0.05, 30, 60, 300, 600, 400, 0.12, 0.1, 0.2, 1, 0.005),
    "two months on 2,048 GPUs": (1100, 6, 40, 0, 300, 600, 600, 0.15, 0.05, 0.2, 0, 0.005),
    "four fifths lost": (1500, 30, 60, 120, 300, 1800, 900, 0.22, 0.3, 0.2, 0, 0.005),
    "a day of waiting, rarely": (200, 0.01, 60, 0, 300, 86400, 900, 0.1, 0.1, 0.2, 0, 0.015),
    "two hours": (2, 0.3, 20, 60, 300, 600, 400, 0.12, 0.0, 0.2, 1, 0.02),
    "often within the least billed": (10, 0.3, 20, 60, 300, 600, 400, 0.3, 0.1, 0.2, 12, 0.02),
    "a known speed, a rare failure": (2, 0.1, 20, 0, 300, 3600, 400, 0.02, 0.0, 0.2, 1, 0.05),
}


def run_of(
    work, failures, checkpoint, upload, down, wait, reload, sigma, price_sigma, start, least
):
    job = Job(
        work_s=work * HOUR, interval_s=np.inf, checkpoint_s=checkpoint, upload_s=upload,
        failures_per_s=failures / 86400, down_s=down, wait_s=wait, reload_s=reload,
    )  # fmt: skip
    job = goodput.at_best_interval(job, least_s=max(20.0, upload - checkpoint))
    terms = RunTerms(
        startup_hours=start, least_billed_hours=least, usd_per_hour=3.0, sigma=sigma,
        price_sigma=price_sigma,
    )  # fmt: skip
    return job, terms


def cost_of(job, terms, **options):
    training = training_of_job(work_s=job.work_s, job=job, paid=job, failing=job)
    return run_cost(training, terms, **options)


def simulated(job, terms):
    """Hours and dollars of runs at equally likely speeds, at prices that may have moved."""
    hours = []
    numbers = {n: float(getattr(job, n)) for n in Job.__slots__ if n != "work_s"}
    for n in range(SPEEDS):
        longer = factor_at(NormalDist().inv_cdf((n + 0.5) / SPEEDS), terms.sigma, terms.skew)
        played = monte_carlo.play(**numbers, work_s=job.work_s * longer, seed=n, trials=700)
        hours.append(terms.startup_hours + played.total_s / HOUR)
    every = np.concatenate(hours)
    moved = np.exp(terms.price_sigma * np.random.default_rng(1).standard_normal(every.size))
    return every, np.maximum(every, terms.least_billed_hours) * terms.usd_per_hour * moved


@pytest.mark.parametrize("skew", [0.0, 0.25])
@pytest.mark.parametrize("case", CASES)
def test_cost_agrees_with_simulated_events(case, skew):
    *numbers, bound = CASES[case]
    job, terms = run_of(*numbers)
    terms = replace(terms, skew=skew)
    hours, usd = simulated(job, terms)
    deadline, budget = float(np.quantile(hours, 0.8)), float(np.quantile(usd, 0.7))
    cost = cost_of(job, replace(terms, deadline_hours=deadline, budget_usd=budget))
    for number, samples in ((cost.hours, hours), (cost.total, usd)):
        assert number.mean == pytest.approx(samples.mean(), rel=0.01)
        quantiles = (number.p10, number.p50, number.p90)
        # A skewed speed times a price that may have moved is no shifted log-normal any more.
        near = bound + (0.015 if skew else 0.005)
        assert quantiles == pytest.approx(np.quantile(samples, [0.1, 0.5, 0.9]), rel=near)
        assert number.p10 <= number.p50 <= number.p90
        assert number.mean <= number.p90
    assert cost.chance_on_time == pytest.approx(0.8, abs=0.06)
    assert cost.chance_in_budget == pytest.approx(0.7, abs=0.06)


@pytest.mark.parametrize("case", CASES)
def test_terms_and_causes_add_up(case):
    job, terms = run_of(*CASES[case][:-1])
    terms = replace(
        terms, checkpoint_usd_per_hour=0.1, data_usd_per_hour=0.2, egress_usd=7.0, credit_usd=5.0,
        experiment_share=0.3, power_usd_per_hour=0.5, idle_power_usd_per_hour=0.1,
    )  # fmt: skip
    cost = cost_of(job, terms, with_terms=True)
    assert tuple(cost.terms) == TERMS
    assert sum(float(t.mean) for t in cost.terms.values()) == pytest.approx(cost.total.mean)
    assert sum(float(h) for h in cost.hour_terms.values()) == pytest.approx(cost.hours.mean)
    assert cost.terms["experiments"].mean == pytest.approx(
        0.3 * sum(float(cost.terms[n].mean) for n in TERMS[:6])
    )
    assert cost.terms["credits"].mean == -5


def test_credits_pay_at_most_for_the_run():
    job, terms = run_of(*CASES["two hours"][:-1])
    cost = cost_of(job, replace(terms, credit_usd=1e6, budget_usd=1.0), with_terms=True)
    assert cost.total.mean == 0
    assert sum(float(t.mean) for t in cost.terms.values()) == pytest.approx(0, abs=1e-9)
    assert cost.chance_in_budget == pytest.approx(1)


def test_uncertain_speed_or_price_alone_is_exact():
    job, terms = run_of(100, 0, 0, 0, 0, 0, 0, 0.2, 0.3, 0.0, 0)
    cost = cost_of(job, replace(terms, deadline_hours=100.0))
    assert cost.hours.p90 == pytest.approx(100 * np.exp(1.2815515655 * 0.2), rel=1e-6)
    both = np.hypot(0.2, 0.3)
    assert cost.total.p10 == pytest.approx(300 * np.exp(-1.2815515655 * both), rel=1e-6)
    assert cost.total.mean == pytest.approx(300 * np.exp(both**2 / 2), rel=1e-9)
    assert cost.chance_on_time == pytest.approx(0.5)


def test_skewed_speed_alone_is_exact():
    job, terms = run_of(100, 0, 0, 0, 0, 0, 0, 0.2, 0.0, 0.0, 0)
    cost = cost_of(job, replace(terms, skew=0.25, deadline_hours=100.0))
    z = 1.2815515655
    assert cost.hours.p90 == pytest.approx(100 * np.exp(z * 0.2 * 1.25), rel=1e-6)
    assert cost.hours.p50 == pytest.approx(100, rel=1e-6)
    assert cost.hours.p10 == pytest.approx(100 * np.exp(-z * 0.2 * 0.75), rel=1e-6)
    assert cost.failure_free_hours.p90 == pytest.approx(cost.hours.p90, rel=1e-6)
    assert cost.chance_on_time == pytest.approx(0.5)
    assert cost.hours.mean > cost_of(job, terms).hours.mean > 100


def spot_cost(terms, outage_s=7200.0, **options):
    """Preempted every 8 hours for 2: up 80% of the time; a fixed failure repair is paid."""
    job = run_of(1000, 0.5, 10, 0, 300, 0, 400, 0, 0, 0, 0)[0]
    every, paid = also_preempted(
        job, preemptions_per_s=1 / 28800, outage_s=outage_s, gang_start_s=0.0
    )
    training = training_of_job(work_s=job.work_s, job=every, paid=paid, failing=job)
    return every, run_cost(training, terms, **options)


def test_waiting_for_spot_is_not_paid():
    terms = RunTerms(
        startup_hours=0.0, least_billed_hours=0.0, usd_per_hour=1.0, sigma=0.0, price_sigma=0.0
    )
    every, cost = spot_cost(terms, with_terms=True)
    up = goodput.uptime_s(every) / HOUR
    assert cost.hours.mean - cost.total.mean == pytest.approx(up / 8 * 2, rel=1e-9)
    assert cost.total.mean == pytest.approx(up * (1 + 0.5 / 24 * 300 / HOUR), rel=1e-3)
    assert sum(float(t.mean) for t in cost.terms.values()) == pytest.approx(cost.total.mean)
    assert sum(float(h) for h in cost.hour_terms.values()) == pytest.approx(cost.hours.mean)
    assert cost.hour_terms["preemption"] > cost.terms["preemption"].mean > 0
    ups = np.random.default_rng(0).exponential(8.0, (4000, 400))
    assert cost.hours.p90 / cost.hours.p50 < np.quantile(ups.sum(1), 0.9) / ups.sum(1).mean()


def test_a_reservation_is_signed_for_whole():
    job, terms = run_of(*CASES["a fortnight on one machine"][:-1])
    plain = cost_of(job, terms)
    reserved = replace(terms, term_hours=8760.0, budget_usd=25_000.0)
    cost = cost_of(job, reserved)
    assert cost.total == plain.total
    assert cost.num_terms == 1
    assert cost.commits
    assert cost.paid.mean == pytest.approx(8760 * 3 * np.exp(0.1**2 / 2))
    within = NormalDist().cdf(np.log(25_000 / (8760 * 3)) / 0.1)
    assert cost.chance_in_budget == pytest.approx(within, abs=1e-4)
    twice = cost_of(job, replace(reserved, term_hours=250.0))
    assert twice.num_terms == 2
    shared = cost_of(job, replace(reserved, utilisation=0.8), with_terms=True)
    assert shared.total.mean == pytest.approx(plain.total.mean / 0.8)
    assert shared.terms["commitment"].mean == pytest.approx(plain.total.mean * 0.25)
    assert shared.paid == shared.total
    assert not shared.commits


def test_a_capacity_block_is_paid_whole():
    job, terms = run_of(*CASES["a fortnight on one machine"][:-1])
    cost = cost_of(job, replace(terms, is_block=True), with_terms=True)
    days = cost.window_hours / 24
    assert days % 7 == 0
    assert days * 24 >= cost.hours.p90
    assert cost.total.mean == pytest.approx(cost.window_hours * 3 * np.exp(0.1**2 / 2))
    assert cost.paid == cost.total
    assert sum(float(t.mean) for t in cost.terms.values()) == pytest.approx(cost.total.mean)
    assert cost.terms["commitment"].mean > 0
    assert cost_of(job, replace(terms, is_block=True, block_days=182.0)).window_hours == 182 * 24


def test_a_column_has_the_costs_of_its_rows():
    first, terms = run_of(*CASES["a fortnight on one machine"][:-1])
    second, others = run_of(*CASES["four fifths lost"][:-1])
    column = Job(**{
        n: np.array([getattr(first, n), getattr(second, n)], dtype=float) for n in Job.__slots__
    })  # fmt: skip
    names = ("startup_hours", "least_billed_hours", "sigma", "price_sigma")
    both = replace(
        terms,
        usd_per_hour=np.array([3.0, np.nan]), term_hours=np.array([8760.0, 0.0]), budget_usd=1e4,
        **{n: np.array([getattr(terms, n), getattr(others, n)], dtype=float) for n in names},
    )  # fmt: skip
    cost = cost_of(column, both, with_terms=True)
    alone = cost_of(first, replace(terms, term_hours=8760.0, budget_usd=1e4), with_terms=True)
    assert cost.row(0).paid.mean == pytest.approx(alone.paid.mean)
    assert cost.row(0).terms["failures"].p90 == pytest.approx(alone.terms["failures"].p90)
    assert cost.row(0).chance_in_budget == pytest.approx(alone.chance_in_budget)
    assert np.isnan(cost.row(1).total.mean)
    assert np.isnan(cost.row(1).chance_in_budget)
    assert cost.row(1).hours.p90 == pytest.approx(cost_of(second, others).hours.p90)
    assert not cost.row(1).has_price


def test_a_correction_stretches_the_work():
    job, terms = run_of(100, 0, 0, 0, 0, 0, 0, 0.2, 0.0, 0.0, 0)
    plain, corrected = cost_of(job, terms), cost_of(job, replace(terms, correction=1.1))
    assert corrected.hours.p90 == pytest.approx(1.1 * plain.hours.p90)
    assert corrected.uncorrected_hours == pytest.approx(plain.hours.mean)
    assert corrected.uncorrected_usd == pytest.approx(plain.total.mean)
    assert plain.uncorrected_usd == plain.total.mean


def test_joined_trainings_add_up():
    job, terms = run_of(*CASES["two months on 2,048 GPUs"][:-1])
    whole = training_of_job(work_s=job.work_s, job=job, paid=job, failing=job)
    half = whole.repeated(0.5)
    cost, joined = run_cost(whole, terms), run_cost(joined_trainings([half, half]), terms)
    for number in ("mean", "p10", "p50", "p90"):
        assert getattr(joined.total, number) == pytest.approx(getattr(cost.total, number))
        assert getattr(joined.hours, number) == pytest.approx(getattr(cost.hours, number))


def test_what_never_ends_is_infinite_and_never_on_time():
    job, terms = run_of(1000, 5000, 600, 0, 300, 600, 3000, 0.1, 0.1, 0.2, 0)
    cost = cost_of(job, replace(terms, deadline_hours=1e6, budget_usd=1e9))
    assert cost.hours.mean == cost.hours.p10 == cost.total.mean == np.inf
    assert cost.chance_on_time == cost.chance_in_budget == 0
    assert cost.goodput == 0
