"""The best interval between checkpoints: Lambert's W against mpmath, Young and Daly beside it."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.failures.checkpoint import (
    async_stop_s,
    best_interval_s,
    cluster_bytes_per_s,
    daly_interval_s,
    one_plus_lambert_w0,
    restart_s,
    write_s,
)
from core.failures.reliability import young_interval_s


@given(exponent=st.floats(-12, 2.8))
def test_lambert_w_is_that_of_mpmath(exponent):
    y = 10**exponent
    with mpmath.workdps(60):
        exact = 1 + mpmath.lambertw(-mpmath.exp(-1 - mpmath.mpf(y)))
    # Near the branch point u goes with the root of y, and rounding with it.
    assert one_plus_lambert_w0(y) == pytest.approx(float(exact.real), rel=1e-12 + 1e-15 / y**0.5)


def test_the_ends_of_lambert_w():
    assert one_plus_lambert_w0(0.0) == 0.0
    assert one_plus_lambert_w0(1e4) == pytest.approx(1.0)
    assert one_plus_lambert_w0(1e4) < 1
    column = np.array([0.0, 1e-3, 0.5, 3.0])
    assert one_plus_lambert_w0(column) == pytest.approx([one_plus_lambert_w0(y) for y in column])


@pytest.mark.parametrize(
    ("mean_h", "checkpoint_min", "exact", "young"),
    [(3.093, 1 / 6, 7.75, 7.87), (24 / (256 * 6.5e-3), 5, 89.7, 93.0), (12, 10, 113.4, 120.0),
     (12, 1, 37.3, 38.0), (0.75, 2, 12.1, 13.4), (0.5, 2, 9.66, 10.95), (2000, 1, 489, 490)],
)  # fmt: skip
def test_the_printed_intervals(mean_h, checkpoint_min, exact, young):
    """Minutes; Daly's estimate lies within 1% of the exact one here."""
    rate, seconds = 1 / (mean_h * 3600), checkpoint_min * 60
    found = float(best_interval_s(failures_per_s=rate, checkpoint_s=seconds))
    assert found / 60 == pytest.approx(exact, rel=2e-3)
    first = young_interval_s(checkpoint_s=seconds, mean_time_to_failure_s=1 / rate)
    assert float(first) / 60 == pytest.approx(young, rel=2e-3)
    assert daly_interval_s(failures_per_s=rate, checkpoint_s=seconds) == pytest.approx(
        found, rel=0.01
    )


@given(rate=st.floats(1e-8, 1e-3), checkpoint=st.floats(0.1, 1e4), more=st.floats(1.01, 10))
def test_dearer_checkpoints_are_rarer_and_more_failures_make_them_more_frequent(
    rate, checkpoint, more
):
    base = best_interval_s(failures_per_s=rate, checkpoint_s=checkpoint)
    assert best_interval_s(failures_per_s=rate, checkpoint_s=checkpoint * more) >= base
    assert best_interval_s(failures_per_s=rate * more, checkpoint_s=checkpoint) <= base
    young = young_interval_s(checkpoint_s=checkpoint, mean_time_to_failure_s=1 / rate)
    assert base <= young * (1 + 1e-9)
    assert base <= 1 / rate


def test_no_failure_needs_no_checkpoint_and_a_free_one_is_as_short_as_it_may_be():
    assert best_interval_s(failures_per_s=0.0, checkpoint_s=60.0) == math.inf
    assert daly_interval_s(failures_per_s=0.0, checkpoint_s=60.0) == math.inf
    assert best_interval_s(failures_per_s=1e-4, checkpoint_s=0.0, least_s=30.0) == 30.0
    assert daly_interval_s(failures_per_s=1.0, checkpoint_s=60.0) == 1.0


def test_daly_by_hand():
    """C = M / 2: sqrt(2 C M) = M, C / 2M = 1/4, so M (1 + 1/6 + 1/36) - M / 2 = 25 M / 36."""
    found = daly_interval_s(failures_per_s=1 / 3600, checkpoint_s=1800.0)
    assert found == pytest.approx(2500.0)


def test_the_seconds_of_a_write():
    """GEMINI, SOSP 2023: MT-NLG 530B takes 42 minutes at 20 Gbit/s; 12 bytes a parameter there."""
    assert write_s(size_bytes=530e9 * 12, bytes_per_s=20e9 / 8) / 60 == pytest.approx(42, rel=0.02)


def test_the_bandwidth_grows_with_the_machines_up_to_that_of_the_storage():
    """BLOOM: 2.3 TB in 40 s from 48 machines of 1.2 GB/s; Llama 3: 2 TB/s for 2,048 machines."""

    def rate(machines):
        return cluster_bytes_per_s(
            num_machines=machines, machine_bytes_per_s=1.2e9, storage_bytes_per_s=2e12
        )

    assert write_s(size_bytes=2.3e12, bytes_per_s=rate(48.0)) == pytest.approx(40, rel=0.02)
    np.testing.assert_allclose(rate(np.array([0.125, 1, 100, 2048])), [1.2e9, 1.2e9, 1.2e11, 2e12])


def test_a_checkpoint_behind_training_stops_it_for_no_longer_than_writing_does():
    stop = async_stop_s(blocked_s=6.3, copy_s=2.0, write_s=np.array([1.0, 60.0]))
    np.testing.assert_allclose(stop, [1.0, 8.3])


def test_a_restart_grows_with_the_gpus_that_join_and_the_bytes_that_are_read():
    """MegaScale: under 30 s of initialisation on more than 10,000 GPUs."""
    fixed = {"start_s": 300.0, "join_s_per_gpu": 3e-3}
    assert restart_s(**fixed, num_gpus=10_000.0, load_s=129.0) == pytest.approx(300 + 30 + 129)
