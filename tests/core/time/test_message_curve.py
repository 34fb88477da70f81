"""Times of messages: the line is found, spikes are not believed, measured points are kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import FactError
from core.time import message_curve

SIZES = np.array([8.0 * 4**i for i in range(14)])  # 8 B to 512 MiB


def line(latency=2e-5, rate=5e9):
    return latency + SIZES / rate


def test_latency_and_bandwidth_of_a_line_are_found():
    found = message_curve.fit(size_bytes=SIZES, time_s=line())
    assert found.latency_s == pytest.approx(2e-5, rel=0.01)
    assert found.bytes_per_s == pytest.approx(5e9, rel=1e-6)
    assert found.bytes_per_s_low == pytest.approx(found.bytes_per_s_high, rel=1e-6)
    assert not found.spikes.any()


@given(st.integers(0, 2**31), st.floats(1e-6, 1e-2), st.floats(1e6, 1e11))
def test_the_interval_of_a_noisy_line_is_about_its_bandwidth(seed, latency, rate):
    noise = np.random.default_rng(seed).normal(0, 0.03, len(SIZES))
    found = message_curve.fit(size_bytes=SIZES, time_s=line(latency, rate) * np.exp(noise))
    assert found.bytes_per_s_low <= found.bytes_per_s <= found.bytes_per_s_high
    if (line(latency, rate) >= 6 * latency).sum() >= 3:
        assert found.bytes_per_s == pytest.approx(rate, rel=0.15)


def test_a_spike_is_lowered_and_named():
    times = line()
    times[1] *= 5
    found = message_curve.fit(size_bytes=SIZES, time_s=times)
    assert found.spikes.tolist() == [False, True] + [False] * 12
    assert found.time_s[1] == times[2]
    assert found.latency_s == pytest.approx(2e-5, rel=0.01)


def test_measured_points_are_kept_and_the_rest_lies_between():
    found = message_curve.fit(size_bytes=SIZES[::-1], time_s=line()[::-1])
    np.testing.assert_allclose(message_curve.interpolated_s(found, SIZES), line())
    asked = np.sort(np.random.default_rng(0).uniform(1, 1e9, 200))
    assert (np.diff(message_curve.interpolated_s(found, asked)) >= 0).all()
    assert message_curve.interpolated_s(found, 4 * SIZES[-1]) == pytest.approx(
        4 * SIZES[-1] / 5e9, rel=0.01
    )


def test_the_error_of_a_left_out_point_tells_a_rough_curve_from_a_smooth_one():
    rough = line() * np.where(np.arange(14) % 2, 1.0, 0.8)
    smooth = message_curve.fit(size_bytes=SIZES, time_s=line())
    assert smooth.left_out_error < 0.12
    assert message_curve.fit(size_bytes=SIZES, time_s=rough).left_out_error > smooth.left_out_error


@pytest.mark.parametrize(
    ("sizes", "times"),
    [([1, 2], [1, 2]), ([0, 1, 2], [1, 1, 1]), ([1, 1, 2], [1, 1, 1]), ([1, 2, 3], [1, 0, 1])],
)
def test_what_is_no_curve_is_refused(sizes, times):
    with pytest.raises(FactError):
        message_curve.fit(size_bytes=np.array(sizes, float), time_s=np.array(times, float))
