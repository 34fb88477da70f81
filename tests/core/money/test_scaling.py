"""Quantiles of many rows at once, where each row may be any of several jobs."""

from __future__ import annotations

import numpy as np
import pytest

from core.failures.goodput import Job
from core.money.scaling import quantiles_s

NEVER_FAILS = {"interval_s": np.inf, "checkpoint_s": 10.0, "failures_per_s": 0.0}


@pytest.mark.parametrize(("p", "work_s"), [(0.2, 100.0), (0.5, 200.0), (0.7, 300.0), (0.9, 400.0)])
def test_without_failures_a_quantile_is_that_of_the_works(p, work_s):
    """Four jobs, all as likely: each ends after its work and its one checkpoint."""
    jobs = Job(work_s=np.array([[100.0, 200.0, 300.0, 400.0]]), **NEVER_FAILS)
    assert quantiles_s(jobs, p) == pytest.approx(work_s + 10)


def test_rows_that_never_finish_are_infinite_and_leave_the_others_alone():
    work_s = np.array([[1e3, 1e3], [1e3, 1e3]])
    rates = np.array([[0.0], [10.0]])
    jobs = Job(work_s=work_s, interval_s=1e3, checkpoint_s=0.0, failures_per_s=rates)
    assert quantiles_s(jobs, 0.5).tolist() == pytest.approx([1e3, np.inf])


def test_failures_move_the_far_quantile_more_than_the_median():
    jobs = Job(
        work_s=np.full((1, 2), 1e5), interval_s=1e3, checkpoint_s=10.0, failures_per_s=1e-4,
        down_s=300.0,
    )  # fmt: skip
    least = 1e5 + 100 * 10
    median, p90 = float(quantiles_s(jobs, 0.5)[0]), float(quantiles_s(jobs, 0.9)[0])
    assert least < median < p90
