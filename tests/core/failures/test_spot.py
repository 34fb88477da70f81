"""Spot machines in closed form: limits, printed figures, and against the play of core/policies."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ScenarioError
from core.failures.availability import drawn
from core.failures.goodput import Job, expected_s
from core.failures.policies import play
from core.failures.spot import (
    SpotJob,
    also_preempted,
    band_hazards_per_s,
    break_even_preemptions_per_s,
    fleet_preemptions_per_s,
    hazard_per_s,
    kept_share,
    shares,
)

HOUR, DAY = 3600.0, 86400.0
MONTH = 30 * DAY


def job(up_h, outage_h, interval_h, checkpoint_min, restart_min, wait_h=math.inf):
    return SpotJob(
        preemptions_per_s=1 / (up_h * HOUR),
        outage_s=outage_h * HOUR,
        interval_s=interval_h * HOUR,
        checkpoint_s=checkpoint_min * 60,
        restart_s=restart_min * 60,
        fall_back_after_s=wait_h * HOUR,
    )


def usd_per_useful_hour(case):
    """At $1 an hour on spot and $3 on demand."""
    of = shares(case)
    return (of.spot + 3 * of.on_demand) / of.useful


# --- hazards and fleets --------------------------------------------------------------------------


def test_a_hazard_interrupts_its_fraction_within_its_period():
    for fraction in (0.0, 0.05, 0.2, 0.99):
        rate = hazard_per_s(interrupted_fraction=fraction, period_s=MONTH)
        assert 1 - math.exp(-rate * MONTH) == pytest.approx(fraction)
    assert hazard_per_s(interrupted_fraction=1.0, period_s=MONTH) == math.inf
    column = hazard_per_s(interrupted_fraction=np.array([0.1, 0.2]), period_s=MONTH)
    assert column == pytest.approx([-math.log(0.9) / MONTH, -math.log(0.8) / MONTH])


def test_a_band_open_above_has_no_high_end():
    low, middle, high = band_hazards_per_s(low_fraction=0.2, high_fraction=1.0, period_s=MONTH)
    assert low == pytest.approx(-math.log(0.8) / MONTH)
    assert middle == pytest.approx(-math.log(0.4) / MONTH)
    assert high == math.inf


@pytest.mark.parametrize("fraction", [-0.1, 5.0, math.nan])
def test_a_percentage_is_no_fraction(fraction):
    with pytest.raises(ScenarioError, match="between 0 and 1, not a percentage"):
        hazard_per_s(interrupted_fraction=fraction, period_s=MONTH)
    with pytest.raises(ScenarioError, match="not above its high end"):
        band_hazards_per_s(low_fraction=0.2, high_fraction=0.1, period_s=MONTH)


def test_a_fleet_is_between_one_instance_and_all_of_them():
    def rate(common):
        return fleet_preemptions_per_s(
            num_instances=np.array([1, 16]), preemptions_per_s=1e-5, common_fraction=common
        )

    assert rate(1.0) == pytest.approx([1e-5, 1e-5])  # taken together: as one
    assert rate(0.0) == pytest.approx([1e-5, 16e-5])  # each on its own
    assert rate(0.945) == pytest.approx([1e-5, 1e-5 * (0.945 + 0.055 * 16)])


def test_a_fleet_with_a_shock_is_what_drawing_its_shocks_gives():
    """First preemption of 16 instances: one shock clock and 16 own ones, drawn."""
    random, c, n = np.random.default_rng(5), 0.945, 16
    own = random.exponential(1 / (1 - c), (200_000, n)).min(axis=1)
    first = np.minimum(random.exponential(1 / c, 200_000), own)
    rate = fleet_preemptions_per_s(num_instances=n, preemptions_per_s=1.0, common_fraction=c)
    assert 1 / first.mean() == pytest.approx(rate, rel=0.01)


# --- the alternating renewal ---------------------------------------------------------------------


def test_figures_worked_out_before_this_code_was_written():
    """Rate of useful work and dollars of a useful hour at $1 spot, $3 on-demand, by other code that
    moves back to spot without the time of a checkpoint: hence the tolerance of the mixed ones."""
    printed = [
        (job(8, 2, 0.25, 1, 8), 0.72538, 1.1029, 1e-4),
        (job(8, 2, 0.25, 1, 8, 0.25), 0.88018, 1.5105, 4e-3),
        (job(2, 2, 0.2, 1, 8, 0.5), 0.74507, 2.2390, 6e-3),
    ]
    for case, useful, usd, rel in printed:
        assert shares(case).useful == pytest.approx(useful, rel=rel)
        assert usd_per_useful_hour(case) == pytest.approx(usd, rel=rel)


@pytest.mark.parametrize(
    "case",
    [
        job(8, 2, 0.25, 1, 8),
        job(2, 0.5, 0.2, 2, 3),
        job(8, 2, 0.25, 1, 8, 0.25),
        job(2, 2, 0.2, 1, 8, 0.5),
        job(2.4, 1, 0.25, 3, 6, 0),
        job(1, 0.3, 0.1, 1, 2, 0),
    ],
)
def test_long_runs_of_the_play_agree_within_half_a_percent(case):
    """40,000 cycles in all. What is drawn is scaled to the means it was meant to have by comparing
    with the closed form at the rates of the trace itself."""
    up_s, down_s = 1 / case.preemptions_per_s, case.outage_s
    length_s = 50_000 * (up_s + down_s)
    trace = drawn(up_mean_s=up_s, down_mean_s=down_s, up_cv=1.0, length_s=length_s, seed=11)
    waits = math.isinf(case.fall_back_after_s)
    played = play(
        "spot_only" if waits else "switch",
        work_s=0.3 * length_s / 10,
        interval_s=case.interval_s,
        checkpoint_s=case.checkpoint_s,
        restart_s=case.restart_s,
        traces=[trace],
        starts_s=np.linspace(0, length_s, 20, endpoint=False),
        fall_back_after_s=0.0 if waits else case.fall_back_after_s,
    )
    time, work = played.total_s.sum(), 20 * 0.03 * length_s
    paid = played.spot_s.sum() + 3 * played.on_demand_s.sum()
    expected = shares(case)
    assert work / time == pytest.approx(expected.useful, rel=0.005)
    assert paid / work == pytest.approx(usd_per_useful_hour(case), rel=0.005)
    assert played.spot_s.sum() / time == pytest.approx(expected.spot, abs=0.004)
    assert played.on_demand_s.sum() / time == pytest.approx(expected.on_demand, abs=0.004)
    assert played.waiting_s.sum() / time == pytest.approx(expected.waiting, abs=0.004)


@pytest.mark.parametrize("zones", [1, 2, 4])
def test_also_preempted_agrees_with_the_play(zones):
    """Spot only in independent zones, exponential, without machine failures."""
    up_s, down_s, restart_s = 5 * HOUR, 4 * HOUR, 480.0
    traces = [
        drawn(up_mean_s=up_s, down_mean_s=down_s, up_cv=1.0, length_s=2e8, seed=3 + zone)
        for zone in range(zones)
    ]
    work = {"work_s": 4e6, "interval_s": 1800.0, "checkpoint_s": 60.0}
    first, starts = traces[0].starts_s, 24
    played = play(
        "spot_only", **work, restart_s=restart_s, traces=traces,
        starts_s=first[:: first.size // starts][:starts],
    )  # fmt: skip
    failing = Job(**work, failures_per_s=0.0, reload_s=restart_s)
    every, paid = also_preempted(
        failing, preemptions_per_s=1 / up_s, outage_s=down_s, gang_start_s=0.0, zones=zones
    )
    assert played.total_s.mean() == pytest.approx(expected_s(every), rel=0.01)
    assert played.spot_s.mean() == pytest.approx(expected_s(paid), rel=0.01)


def test_also_preempted_without_preemptions_is_the_job():
    failing = Job(
        work_s=1e5, interval_s=1e3, checkpoint_s=10.0, failures_per_s=1e-5, down_s=300.0,
        wait_s=600.0, reload_s=200.0,
    )  # fmt: skip
    for job in also_preempted(
        failing, preemptions_per_s=0.0, outage_s=3600.0, gang_start_s=0.0, zones=np.array([1, 3])
    ):
        assert expected_s(job) == pytest.approx([expected_s(failing)] * 2)


rates = st.floats(0, 1e-3)
jobs = st.builds(
    SpotJob,
    preemptions_per_s=rates,
    outage_s=st.floats(0, 1e6),
    interval_s=st.floats(1, 1e5),
    checkpoint_s=st.floats(0, 3600),
    restart_s=st.floats(0, 3600),
    fall_back_after_s=st.one_of(st.floats(0, 1e6), st.just(math.inf)),
)


@given(case=jobs)
def test_the_shares_are_shares(case):
    s = shares(case)
    assert s.spot + s.on_demand + s.waiting == pytest.approx(1, abs=1e-9)
    assert min(s.useful, s.spot, s.on_demand, s.waiting) >= -1e-12
    assert s.useful <= (s.spot + s.on_demand) * (1 + 1e-9)


@pytest.mark.parametrize("rate", [0.0, 1e-5, math.inf])
@pytest.mark.parametrize("outage", [0.0, 3600.0, math.inf])
@pytest.mark.parametrize("wait", [0.0, 600.0, math.inf])
@pytest.mark.parametrize("cost", [0.0, 60.0])
def test_no_end_of_the_ranges_is_not_a_number(rate, outage, wait, cost):
    case = SpotJob(
        preemptions_per_s=rate, outage_s=outage, interval_s=900.0, checkpoint_s=cost,
        restart_s=cost, fall_back_after_s=wait,
    )  # fmt: skip
    s = shares(case)
    assert all(0 <= x <= 1 for x in (s.useful, s.spot, s.on_demand, s.waiting))
    if rate == 0:
        assert s.useful == pytest.approx(900 / (900 + cost))
        assert s.spot == 1


def test_columns_are_what_their_rows_are():
    up_h = np.array([1.0, 8.0, 100.0])
    many = shares(job(up_h, 2, 0.25, 1, 8, 0.5))
    for i, hours in enumerate(up_h):
        one = shares(job(float(hours), 2, 0.25, 1, 8, 0.5))
        assert many.useful[i] == pytest.approx(one.useful)
        assert many.on_demand[i] == pytest.approx(one.on_demand)


# --- the break-even ------------------------------------------------------------------------------


def even(spot, on_demand, interval_s=900.0, **more):
    given = {"checkpoint_s": 60.0, "restart_s": 480.0, **more}
    return break_even_preemptions_per_s(
        spot_usd_per_hour=spot, on_demand_usd_per_hour=on_demand, interval_s=interval_s, **given
    )


@given(ratio=st.floats(0.02, 0.98), interval=st.floats(60, 7200))
def test_at_the_break_even_a_useful_hour_costs_the_same(ratio, interval):
    rate = even(3 * ratio, 3.0, interval)
    case = SpotJob(
        preemptions_per_s=rate, outage_s=1234.0, interval_s=interval, checkpoint_s=60.0,
        restart_s=480.0,
    )  # fmt: skip
    spot_usd = 3 * ratio / kept_share(case)
    assert spot_usd == pytest.approx(3.0 * (interval + 60) / interval, rel=1e-6)


def test_the_ends_of_the_break_even_mean_always_and_never():
    assert even(0.0, 3.0) == math.inf
    assert even(3.0, 3.0) == 0.0
    assert even(4.0, 3.0) == 0.0
    assert even(1.0, 0.0) == 0.0
    assert even(1.0, 3.0, checkpoint_s=0.0, restart_s=0.0, interval_s=1e-6) == math.inf
    column = even(np.array([0.0, 1.0, 3.0]), 3.0)
    assert column[0] == math.inf
    assert 0 < column[1] < math.inf
    assert column[2] == 0.0


def test_the_best_interval_at_each_rate_pays_longer_than_one_that_is_given():
    best = even(1.0, 3.0, None)
    fixed = [even(1.0, 3.0, interval_s=x) for x in (300.0, 900.0, 3600.0)]
    # A given one is on on-demand, too, where its checkpoints are for nothing.
    assert best > fixed[2]
    assert even(1.0, 3.0, 900.0) > even(2.0, 3.0, 900.0)
    assert best < even(0.5, 3.0, None)
