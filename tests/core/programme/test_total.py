"""Totals of a programme against a simulation, and boundaries that agree with them."""

import numpy as np
import pytest

from core.failures.goodput import Job, at_best_interval
from core.money.total import Run, of_training, total
from core.programme.total import Leg, boundaries, whole

HOURS = (400.0, 90.0, 30.0)
SIGMA = 0.12


def leg(hours, *, sigma=SIGMA, before=0.0):
    job = Job(
        work_s=hours * 3600, interval_s=3600.0, checkpoint_s=20.0, failures_per_s=1e-5,
        down_s=300.0, reload_s=600.0,
    )  # fmt: skip
    trained = of_training(at_best_interval(job, least_s=10.0))
    return Leg(trained=trained, paid=trained, sigma=sigma, before_hours=before)


MONEY = {
    "least_billed_hours": 0.0, "usd_per_hour": 100.0, "other_usd": 50.0, "price_sigma": 0.05,
}  # fmt: skip


def test_one_stage_is_a_run():
    job = Job(work_s=36e4, interval_s=3600.0, checkpoint_s=20.0, failures_per_s=1e-5, down_s=300.0)
    run = Run(job=job, paid=job, startup_hours=0.5, sigma=SIGMA, **MONEY)
    trained = of_training(job)
    found = whole(
        [Leg(trained=trained, paid=trained, sigma=SIGMA)], startup_hours=0.5, deadline_hours=110.0,
        **MONEY,
    )  # fmt: skip
    assert found == total(run, deadline_hours=110.0)


def test_the_last_boundary_is_the_end_and_all_agree_with_a_simulation():
    legs = [leg(h, before=b) for h, b in zip(HOURS, (0.0, 2.0, 1.0), strict=True)]
    found = whole(legs, startup_hours=0.5, deadline_hours=600.0, **MONEY)
    ends = boundaries(legs, startup_hours=0.5)
    assert ends[-1] == found.hours
    rng = np.random.default_rng(5)
    speed = np.exp(SIGMA * rng.standard_normal(200_000))  # one error for all stages
    end = 0.5
    for one, outcome in zip(legs, ends, strict=True):
        mean, sd = float(one.trained.mean) / 3600, float(one.trained.variance) ** 0.5 / 3600
        failed = mean * speed + sd * np.sqrt(speed) * rng.standard_normal(len(speed))
        end = end + float(one.before_hours) + failed
        for name, q in (("p10", 0.1), ("p50", 0.5), ("p90", 0.9)):
            assert float(getattr(outcome, name)) == pytest.approx(np.quantile(end, q), rel=4e-3)
    assert float(found.chance_on_time) == pytest.approx((end <= 600).mean(), abs=0.01)


def test_a_stage_that_never_ends_makes_the_programme_never_end():
    job = Job(work_s=36e4, interval_s=3600.0, checkpoint_s=20.0, failures_per_s=1.0, down_s=300.0)
    trained = of_training(job)
    legs = [leg(10.0), Leg(trained=trained, paid=trained, sigma=SIGMA)]
    found = whole(legs, startup_hours=0.5, deadline_hours=1e4, **MONEY)
    assert np.isinf(found.hours.expected)
    assert float(found.chance_on_time) == 0
