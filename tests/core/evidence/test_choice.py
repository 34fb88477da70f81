"""Choices by forecast: regret by hand, and a curse that is found and mended where there is one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evidence.choice import (
    MEASURES,
    choices,
    chosen_correction,
    corrections,
    estimates,
    shrink,
)


def chosen(forecast, measured, *, group=None, configuration=None, publication=None):
    n = len(forecast)
    return choices(
        log_forecast=np.log(np.array(forecast, dtype=float)),
        log_measured=np.log(np.array(measured, dtype=float)),
        group=np.array(group or ["g"] * n),
        configuration=np.array(configuration or [f"c{i:06}" for i in range(n)]),
        publication=np.array(publication or ["p"] * n),
    )


def groups(*, truth_sigma, error_sigma, spread=0.0, number=4000, size=5, seed=1):
    """Made-up groups: forecasts that err by `error_sigma`, truths that they do not see."""
    rng = np.random.default_rng(seed)
    seen = rng.normal(0, truth_sigma, (number, size))
    forecast = seen + rng.normal(0, error_sigma, seen.shape)
    measured = seen + rng.normal(0, spread, seen.shape)
    names = [f"g{i:04}" for i in np.repeat(np.arange(number), size)]
    publications = [f"p{i % 7}" for i in np.repeat(np.arange(number), size)]
    return chosen(np.exp(forecast.ravel()), np.exp(measured.ravel()), group=names,
                  publication=publications)  # fmt: skip


def test_regret_and_shortfall_by_hand():
    found = chosen([120, 110, 80], [90, 100, 80])
    assert found.regret == pytest.approx([0.9])
    assert (found.chosen[0], found.best[0], found.size[0]) == ("c000000", "c000001", 3)
    logs = np.log([120 / 90, 110 / 100, 1])
    assert found.shortfall == pytest.approx(logs[:1])
    assert found.own == pytest.approx([logs[0] - logs.mean()])
    assert found.lead == pytest.approx([np.log(120) - np.log([120, 110, 80]).mean()])


def test_equal_forecasts_are_as_good_as_they_are_on_average():
    assert chosen([100, 100, 80], [100, 80, 70]).regret == pytest.approx([0.9])


def test_repeats_count_once_and_small_groups_not_at_all():
    twice = chosen([120, 120, 110, 80], [81, 100, 100, 80], configuration=list("aabc"))
    assert twice.regret == pytest.approx([0.9])  # the geometric mean of 81 and 100
    assert len(chosen([120, 120, 110], [81, 100, 100], configuration=list("aab"))) == 0
    assert len(chosen([120, np.nan, 110], [81, 100, 100])) == 0
    assert estimates(chosen([120, 110], [100, 100])) == {}


def test_noise_in_the_forecast_is_a_curse_and_what_it_leaves_out_is_none():
    """The shrink is the noise's share of the variance of the forecasts; [SW06], normal case."""
    noisy = groups(truth_sigma=0.1, error_sigma=0.05)
    found = estimates(noisy)
    assert found["shrink"].value == pytest.approx(0.05**2 / (0.1**2 + 0.05**2), abs=0.01)
    best_of_5 = 1.16296  # expected maximum of five standard normals
    expected = best_of_5 * 0.05**2 / np.hypot(0.1, 0.05)
    assert np.log1p(found["own_bias"].value) == pytest.approx(expected, rel=0.05)
    assert abs(found["own_bias_corrected"].value) < 0.001
    blind = estimates(groups(truth_sigma=0.1, error_sigma=0.0, spread=0.1))
    assert abs(blind["own_bias"].value) < 0.003
    assert abs(blind["shrink"].value) < 0.02


def test_what_a_whole_group_is_off_by_is_no_curse():
    found = chosen([120, 110, 80], [60, 55, 40])
    assert found.shortfall == pytest.approx([np.log(2)])
    assert found.own == pytest.approx([0])
    assert estimates(found)["bias"].value == pytest.approx(1)


def test_a_publication_is_corrected_by_the_others_alone():
    found = groups(truth_sigma=0.1, error_sigma=0.1, number=14)
    mine = found.publication == "p0"
    others = float(shrink(own=found.own[~mine], lead=found.lead[~mine]))
    assert corrections(found)[mine] == pytest.approx(-np.clip(others, 0, 1) * found.lead[mine])


def test_an_interval_holds_its_figure_and_is_the_same_twice():
    found = groups(truth_sigma=0.1, error_sigma=0.05, number=60)
    once = estimates(found)
    assert tuple(once) == MEASURES
    assert once == estimates(found)
    assert all(e.low <= e.value <= e.high for e in once.values())
    assert once["shrink"].low < once["shrink"].high


@given(st.lists(st.floats(-2, 0), min_size=1, max_size=20), st.floats(-1, 2), st.integers(0, 100))
def test_the_correction_only_lowers_and_never_below_the_mean(alternatives, share, place):
    every = np.array(alternatives)
    best = every[place % len(every)]
    add = float(chosen_correction(log_chosen=best, log_alternatives=every, shrink=share))
    assert add <= 0
    assert best + add >= min(best, every.mean()) - 1e-12


def test_the_correction_takes_columns_and_gaps():
    columns = np.array([[0.0, -0.4, np.nan], [-0.1, -0.1, -0.1]])
    add = chosen_correction(log_chosen=columns[:, 0], log_alternatives=columns, shrink=0.25)
    assert add == pytest.approx([-0.05, 0.0])
