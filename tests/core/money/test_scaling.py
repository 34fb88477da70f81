"""How many GPUs, and when: savings of more GPUs and of waiting."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.money import scaling
from core.money.scaling import counts_around


@given(st.integers(1, 20_000), st.sampled_from([1, 4, 8, 16, 72]), st.integers(1, 131_072))
def test_counts_are_few_ascending_and_hold_the_plans_own(num_gpus, per_instance, most):
    counts = counts_around(num_gpus=num_gpus, per_instance=per_instance, most=most)
    assert counts == sorted(set(counts))
    assert len(counts) <= 24
    assert all(n <= most for n in counts)
    if num_gpus <= most:
        assert num_gpus in counts
    if 2 * num_gpus <= most:
        assert 2 * num_gpus in counts
    own = {num_gpus, 2 * num_gpus, num_gpus // 2}
    assert all(n % per_instance == 0 for n in counts if n not in own)


def test_there_are_enough_counts_to_see_a_curve():
    for num_gpus in (8, 24, 256, 4096, 131_072):
        assert 16 <= len(counts_around(num_gpus=num_gpus, per_instance=8, most=131_072)) <= 24


def test_a_day_saved_has_a_price_only_where_it_is_saved():
    usd = scaling.usd_per_day_saved(
        usd=100.0, hours=48.0, more_usd=np.array([150.0, 90.0, 150.0]),
        fewer_hours=np.array([24.0, 24.0, 48.0]),
    )  # fmt: skip
    assert usd[:2].tolist() == [50.0, -10.0]
    assert math.isnan(usd[2])


def test_waiting_saves_what_the_trend_says():
    saved = scaling.waiting_saves_usd(usd=1e6, log_per_month=math.log(0.98), months=12.0)
    assert saved == pytest.approx(1e6 * (1 - 0.98**12))
    assert scaling.waiting_saves_usd(usd=1e6, log_per_month=0.01, months=1.0) < 0
    drop = scaling.break_even_drop(usd=1e6, usd_per_day=1000.0, days=30.0)
    assert drop == pytest.approx(0.03)
