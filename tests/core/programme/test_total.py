"""Totals of a programme against a simulation, and boundaries that agree with them."""

from dataclasses import replace

import numpy as np
import pytest

from core.cost.run_cost import RunTerms, run_cost
from core.cost.training import training_of_job
from core.failures.goodput import Job, at_best_interval
from core.programme.total import Leg, boundaries, whole

HOURS = (400.0, 90.0, 30.0)
SIGMA = 0.12
TERMS = RunTerms(
    startup_hours=0.5, least_billed_hours=0.0, usd_per_hour=100.0, egress_usd=50.0,
    price_sigma=0.05, sigma=SIGMA, deadline_hours=600.0,
)  # fmt: skip


def leg_of(job, *, before=0.0):
    training = training_of_job(work_s=job.work_s, job=job, paid=job, failing=job)
    return Leg(training=training, sigma=SIGMA, before_hours=before)


def leg(hours, *, before=0.0):
    job = Job(
        work_s=hours * 3600, interval_s=3600.0, checkpoint_s=20.0, failures_per_s=1e-5,
        down_s=300.0, reload_s=600.0,
    )  # fmt: skip
    return leg_of(at_best_interval(job, least_s=10.0), before=before)


def test_one_stage_is_a_run():
    job = Job(work_s=36e4, interval_s=3600.0, checkpoint_s=20.0, failures_per_s=1e-5, down_s=300.0)
    terms = replace(TERMS, deadline_hours=110.0)
    programme, run = whole([leg_of(job)], terms), run_cost(leg_of(job).training, terms)
    assert programme.total == run.total
    assert programme.hours == run.hours
    assert programme.chance_on_time == run.chance_on_time


def test_the_last_boundary_is_the_end_and_all_agree_with_a_simulation():
    legs = [leg(h, before=b) for h, b in zip(HOURS, (0.0, 2.0, 1.0), strict=True)]
    found = whole(legs, TERMS)
    ends = boundaries(legs, startup_hours=0.5)
    assert ends[-1] == found.hours
    rng = np.random.default_rng(5)
    speed = np.exp(SIGMA * rng.standard_normal(200_000))  # one error for all stages
    end = 0.5
    for one, outcome in zip(legs, ends, strict=True):
        mean, sd = (
            float(one.training.elapsed.mean) / 3600,
            one.training.elapsed.variance**0.5 / 3600,
        )
        failed = mean * speed + sd * np.sqrt(speed) * rng.standard_normal(len(speed))
        end = end + float(one.before_hours) + failed
        for name, q in (("p10", 0.1), ("p50", 0.5), ("p90", 0.9)):
            assert float(getattr(outcome, name)) == pytest.approx(np.quantile(end, q), rel=4e-3)
    assert float(found.chance_on_time) == pytest.approx((end <= 600).mean(), abs=0.01)


def test_a_stage_that_never_ends_makes_the_programme_never_end():
    job = Job(work_s=36e4, interval_s=3600.0, checkpoint_s=20.0, failures_per_s=1.0, down_s=300.0)
    found = whole([leg(10.0), leg_of(job)], replace(TERMS, deadline_hours=1e4))
    assert np.isinf(found.hours.mean)
    assert float(found.chance_on_time) == 0
