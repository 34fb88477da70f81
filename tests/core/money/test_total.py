"""The whole run all in, held against a simulation of its events; and how fast it is."""

import time
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from core.failures import goodput, monte_carlo
from core.failures.goodput import Job
from core.failures.spot import also_preempted
from core.failures.time_factor import factor_at
from core.money.total import Run, total

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
    return Run(
        job=job, paid=job, startup_hours=start, least_billed_hours=least, usd_per_hour=3.0,
        other_usd=0.0, sigma=sigma, price_sigma=price_sigma,
    )  # fmt: skip


def simulated(run):
    """Hours and dollars of runs at equally likely speeds, at prices that may have moved."""
    hours = []
    numbers = {n: float(getattr(run.job, n)) for n in Job.__slots__ if n != "work_s"}
    for n in range(SPEEDS):
        longer = factor_at(NormalDist().inv_cdf((n + 0.5) / SPEEDS), run.sigma, run.skew)
        played = monte_carlo.play(**numbers, work_s=run.job.work_s * longer, seed=n, trials=700)
        hours.append(run.startup_hours + played.total_s / HOUR)
    found = np.concatenate(hours)
    moved = np.exp(run.price_sigma * np.random.default_rng(1).standard_normal(found.size))
    return found, np.maximum(found, run.least_billed_hours) * run.usd_per_hour * moved


@pytest.mark.parametrize("skew", [0.0, 0.25])
@pytest.mark.parametrize("case", CASES)
def test_mean_quantiles_and_chance_are_those_of_simulated_events(case, skew):
    *given, bound = CASES[case]
    run = replace(run_of(*given), skew=skew)
    hours, usd = simulated(run)
    deadline = float(np.quantile(hours, 0.8))
    found = total(run, deadline_hours=deadline)
    for outcome, samples in ((found.hours, hours), (found.usd, usd)):
        assert outcome.expected == pytest.approx(samples.mean(), rel=0.01)
        three = (outcome.p10, outcome.p50, outcome.p90)
        # A skewed speed times a price that may have moved is no shifted log-normal any more.
        near = bound + (0.015 if skew else 0.005)
        assert three == pytest.approx(np.quantile(samples, [0.1, 0.5, 0.9]), rel=near)
        assert outcome.p10 <= outcome.p50 <= outcome.p90
        assert outcome.expected <= outcome.p90
    assert found.chance_on_time == pytest.approx(0.8, abs=0.06)


def test_only_speed_or_price_uncertain_is_exact():
    run = run_of(100, 0, 0, 0, 0, 0, 0, 0.2, 0.3, 1.0, 0)
    found = total(replace(run, startup_hours=0.0), deadline_hours=100.0)
    assert found.hours.p90 == pytest.approx(100 * np.exp(1.2815515655 * 0.2), rel=1e-6)
    both = np.hypot(0.2, 0.3)
    assert found.usd.p10 == pytest.approx(300 * np.exp(-1.2815515655 * both), rel=1e-6)
    assert found.usd.expected == pytest.approx(300 * np.exp(both**2 / 2), rel=1e-9)
    assert found.chance_on_time == pytest.approx(0.5)


def test_a_skewed_speed_alone_is_exact():
    run = replace(run_of(100, 0, 0, 0, 0, 0, 0, 0.2, 0.0, 0.0, 0), skew=0.25)
    found = total(run, deadline_hours=100.0)
    z = 1.2815515655
    assert found.hours.p90 == pytest.approx(100 * np.exp(z * 0.2 * 1.25), rel=1e-6)
    assert found.hours.p50 == pytest.approx(100, rel=1e-6)
    assert found.hours.p10 == pytest.approx(100 * np.exp(-z * 0.2 * 0.75), rel=1e-6)
    assert found.chance_on_time == pytest.approx(0.5)
    plain = total(replace(run, skew=0.0))
    assert found.hours.expected > plain.hours.expected > 100


def test_spot_waits_unpaid():
    """Preempted every 8 hours for 2: up 80% of the time; a fixed failure repair is paid."""
    job = run_of(1000, 0.5, 10, 0, 300, 0, 400, 0, 0, 0, 0).job
    every, paid = also_preempted(
        job, preemptions_per_s=1 / 28800, outage_s=7200.0, gang_start_s=0.0
    )
    run = Run(
        job=every, paid=paid, startup_hours=0.0, least_billed_hours=0.0, usd_per_hour=1.0,
        other_usd=0.0, sigma=0.0, price_sigma=0.0,
    )  # fmt: skip
    found = total(run)
    up = goodput.uptime_s(every) / HOUR
    assert found.hours.expected - found.usd.expected == pytest.approx(up / 8 * 2, rel=1e-9)
    assert found.usd.expected == pytest.approx(up * (1 + 0.5 / 24 * 300 / HOUR), rel=1e-3)
    ups = np.random.default_rng(0).exponential(8.0, (4000, 400))
    assert found.hours.p90 / found.hours.p50 < np.quantile(ups.sum(1), 0.9) / ups.sum(1).mean()


def test_what_never_ends_is_infinite_and_never_on_time():
    run = run_of(1000, 5000, 600, 0, 300, 600, 3000, 0.1, 0.1, 0.2, 0)
    found = total(run, deadline_hours=1e6)
    assert found.hours.expected == found.hours.p10 == found.usd.expected == np.inf
    assert found.chance_on_time == 0


def test_a_hundred_thousand_plans_take_a_third_of_a_second_of_a_core():
    random = np.random.default_rng(0)

    def between(low, high):
        return random.uniform(low, high, 100_000)

    job = Job(
        work_s=between(1, 2000) * HOUR, interval_s=np.inf, checkpoint_s=between(1, 100),
        failures_per_s=between(0.01, 20) / 86400, upload_s=0.0, down_s=300.0, wait_s=600.0,
        reload_s=400.0,
    )  # fmt: skip
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        best = goodput.at_best_interval(job, least_s=20.0)
        total(
            Run(
                job=best, paid=best, startup_hours=0.2, least_billed_hours=between(0, 2),
                usd_per_hour=between(1, 9), other_usd=0.0, sigma=between(0.05, 0.3),
                price_sigma=between(0, 0.3),
            ),
            deadline_hours=500.0,
        )  # fmt: skip
        seconds.append(time.process_time() - begun)
    assert min(seconds) < 0.3
