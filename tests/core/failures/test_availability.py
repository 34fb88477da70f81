"""Traces of spot capacity: what they say on average, drawn ones, and which are none."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.failures.availability import Capacity, Trace, TraceError, drawn, statistics

HOUR, DAY = 3600.0, 86400.0


def trace(*spells, length):
    starts, ends = np.array(spells, dtype=float).reshape(-1, 2).T
    return Trace(starts_s=starts, ends_s=ends, length_s=float(length))


# --- statistics ----------------------------------------------------------------------------------


def test_a_small_trace_by_hand():
    s = statistics(trace((10, 30), (50, 90), length=100))
    assert (s.up_mean_s, s.down_mean_s, s.available_fraction) == (30.0, 20.0, 0.6)
    assert s.up_cv == pytest.approx(10 / 30)
    assert s.preemptions_per_day == pytest.approx(2 / 60 * DAY)
    assert s.num_spells == 2


def test_a_spell_over_the_end_is_one():
    s = statistics(trace((0, 10), (30, 40), (80, 100), length=100))
    assert s.num_spells == 2
    assert s.up_mean_s == 20.0  # of 10 and of 20 + 10
    assert s.down_mean_s == 30.0
    assert s.up_cv == pytest.approx(0.5)


def test_traces_without_a_preemption_have_no_nan():
    always, never = statistics(trace((0, 50), length=50)), statistics(trace(length=50))
    assert (always.up_mean_s, always.down_mean_s, always.available_fraction) == (math.inf, 0, 1)
    assert (always.preemptions_per_day, always.up_cv, always.num_spells) == (0, 0, 1)
    assert (never.up_mean_s, never.down_mean_s, never.available_fraction) == (0, math.inf, 0)
    one = statistics(trace((5, 25), length=50))
    assert (one.up_mean_s, one.down_mean_s, one.up_cv) == (20, 30, 0)


# --- drawn ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 4.0])
def test_a_drawn_trace_has_the_averages_that_were_asked_for(cv):
    s = statistics(
        drawn(up_mean_s=2.4 * HOUR, down_mean_s=HOUR, up_cv=cv, length_s=20_000 * DAY, seed=4)
    )
    assert s.up_mean_s == pytest.approx(2.4 * HOUR, rel=0.03)
    assert s.down_mean_s == pytest.approx(HOUR, rel=0.02)
    assert s.up_cv == pytest.approx(cv, rel=0.03, abs=0.01)
    assert s.preemptions_per_day == pytest.approx(10, rel=0.03)


def test_the_two_phases_have_balanced_means():
    """Half of the uptime is of short spells, half of long ones: the third moment of two phases at
    CV 2 is 6 (p / m1^3 + (1 - p) / m2^3), p = (1 + sqrt(3/5)) / 2, m = 2 p, 2 (1 - p)."""
    t = drawn(up_mean_s=1.0, down_mean_s=1.0, up_cv=2.0, length_s=2e6, seed=9)
    ups = t.ends_s - t.starts_s
    p = (1 + math.sqrt(3 / 5)) / 2
    third = 6 * (p / (2 * p) ** 3 + (1 - p) / (2 * (1 - p)) ** 3)
    assert np.mean(ups**3) == pytest.approx(third, rel=0.05)


def test_a_seed_is_a_trace_and_another_is_another():
    def times(seed):
        return drawn(up_mean_s=1e4, down_mean_s=5e3, up_cv=2, length_s=30 * DAY, seed=seed).starts_s

    assert times(1).tolist() == times(1).tolist()
    assert times(1).tolist() != times(2).tolist()


def test_capacity_without_outages_is_always_up():
    s = statistics(drawn(up_mean_s=1e4, down_mean_s=0, up_cv=1, length_s=DAY, seed=0))
    assert s.available_fraction == 1


@given(
    up=st.floats(60, 1e6), down=st.floats(0, 1e6), cv=st.floats(0, 5), seed=st.integers(0, 2**32)
)
def test_every_drawn_trace_is_one(up, down, cv, seed):
    t = drawn(up_mean_s=up, down_mean_s=down, up_cv=cv, length_s=1e6, seed=seed)
    s = statistics(t)  # Trace checked its order already
    assert 0 <= s.available_fraction <= 1
    assert not math.isnan(s.up_mean_s + s.up_cv + s.preemptions_per_day)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"up_mean_s": 0.0}, "up_mean_s is 0: a drawn trace needs a number above 0"),
        ({"length_s": math.inf}, "length_s is inf"),
        ({"up_cv": -1.0}, "up_cv is -1: a drawn trace needs a number at least 0"),
        ({"down_mean_s": math.nan}, "down_mean_s is nan"),
    ],
)
def test_averages_that_no_trace_has(given, says):
    fine = {"up_mean_s": 1e4, "down_mean_s": 1e3, "up_cv": 1.0, "length_s": DAY}
    with pytest.raises(TraceError) as e:
        drawn(**{**fine, **given}, seed=0)
    assert says in str(e.value)


# --- what is no trace ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spells", "length", "says"),
    [
        ([(0, 10), (5, 20)], 100, "do not overlap"),
        ([(20, 30), (0, 10)], 100, "in order"),
        ([(10, 10)], 100, "ends after it starts"),
        ([(-5, 10)], 100, "between 0 and its length"),
        ([(0, 200)], 100, "between 0 and its length"),
        ([(0, math.nan)], 100, "finite"),
        ([(0, 10)], 0, "above 0"),
        ([(0, 10)], math.inf, "above 0"),
    ],
)
def test_what_is_no_trace(spells, length, says):
    with pytest.raises(TraceError, match=says):
        trace(*spells, length=length)
    with pytest.raises(TraceError, match="as many starts as ends"):
        Trace(starts_s=np.zeros(2), ends_s=np.ones(1), length_s=10.0)


# --- asked at a time -----------------------------------------------------------------------------


def test_capacity_is_that_of_the_circle():
    zone = trace((0, 10), (30, 40), (80, 100), length=100)
    up, wait = Capacity([zone]).at(np.array([0.0, 5, 10, 29, 30, 85, 100, 195, 230]))
    assert up.tolist() == [10, 5, 0, 0, 10, 25, 10, 15, 10]
    assert wait.tolist() == [0, 0, 20, 1, 0, 0, 0, 0, 0]


def test_the_first_zone_that_is_up_is_taken_and_the_next_one_waited_for():
    a, b = trace((0, 10), (50, 60), length=100), trace((5, 30), (40, 70), length=80)
    up, wait = Capacity([a, b]).at(np.array([0.0, 7, 12, 33, 55, 79]))
    assert up.tolist() == [10, 3, 18, 0, 5, 0]
    assert wait.tolist() == [0, 0, 0, 7, 0, 6]


def test_always_never_and_at_once_again():
    at = np.array([0.0, 7, 50])
    up, wait = Capacity([trace((0, 10), length=10)]).at(at)
    assert up.tolist() == [math.inf] * 3
    up, wait = Capacity([trace(length=10)]).at(at)
    assert up.tolist() == [0, 0, 0]
    assert wait.tolist() == [math.inf] * 3
    up, wait = Capacity([trace((0, 20), (20, 30), length=60)]).at(np.array([0.0, 20, 30]))
    assert up.tolist() == [20, 10, 0]
    assert wait.tolist() == [0, 0, 30]


def test_rounding_does_not_make_a_spell_of_nothing():
    t = drawn(up_mean_s=7e3, down_mean_s=3e3, up_cv=2, length_s=1e8 / 3, seed=2)
    capacity = Capacity([t])
    laps = np.arange(5)[:, None] * t.length_s
    up, wait = capacity.at((t.ends_s[:-1] + laps).ravel())
    assert (up == 0).all()
    assert (wait > 1e-3).all()
    up, wait = capacity.at((t.starts_s + laps).ravel())
    assert (wait == 0).all()
