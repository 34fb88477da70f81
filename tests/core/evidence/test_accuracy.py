"""Error metrics against cases worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evidence.accuracy import (
    memory_classes,
    repeat_weights,
    scored,
    scored_by,
    scored_oom,
    scored_pairs,
    scored_pairs_by,
    weighted_quantile,
)

NO = np.array([False] * 5)
# Errors 0.1, 0.2, 0.5, 0.0 and, in the last row, 1.0.
PREDICTED = np.array([90.0, 120.0, 50.0, 100.0, 200.0])
MEASURED = np.full(5, 100.0)


def score(**changes):
    given = {"predicted": PREDICTED, "measured": MEASURED, "refused": NO, **changes}
    return scored(**given)


def test_the_five_metrics_of_five_rows():
    a = score(low=PREDICTED * 0.8, high=PREDICTED * 1.2)
    assert a.n == 5
    assert a.median_ape == pytest.approx(0.2)
    assert a.mean_ape == pytest.approx(1.8 / 5)
    assert a.p90_ape == pytest.approx(0.8)  # between 0.5 and 1.0, at 0.6
    assert a.within_20 == pytest.approx(3 / 5)
    assert a.coverage_80 == pytest.approx(3 / 5)  # 72-108, 96-144 and 80-120 hold 100
    assert a.bias == pytest.approx(0.0)


def test_rows_without_a_measurement_or_a_forecast_are_not_scored():
    predicted, measured, refused = PREDICTED.copy(), MEASURED.copy(), NO.copy()
    predicted[0], measured[1], refused[4] = math.nan, math.nan, True
    a = score(predicted=predicted, measured=measured, refused=refused)
    assert (a.n, a.refused) == (2, 1)
    assert a.mean_ape == pytest.approx(0.25)
    assert a.coverage_80 is None


def test_no_row_is_no_metric():
    family = np.array(list("abcde"))
    a = score(measured=MEASURED * np.nan, low=MEASURED * 0, high=MEASURED, family=family)
    assert a.n == 0
    assert a.median_ape is a.mean_ape is a.p90_ape is a.within_20 is a.coverage_80 is None
    assert a.family_median_ape is a.coverage_low is a.weighted_median_ape is None


def test_repeats_of_a_family_count_once():
    family = np.array(["a", "a", "a", "b", "b"])
    a = score(family=family)
    assert a.family_median_ape == pytest.approx((0.2 + 0.5) / 2)


def test_repeats_of_a_configuration_have_one_vote():
    """Errors 0.1, 0.2, 0.5 of one configuration, 0.0 and 1.0 of two others."""
    configuration = np.array(["a", "a", "a", "b", "c"])
    a = score(configuration=configuration, low=PREDICTED * 0.8, high=PREDICTED * 1.2)
    assert a.configurations == 3
    assert a.weighted_median_ape == pytest.approx(0.2)  # 0.0: 1, 0.1: 4/3, 0.2: 5/3 of 3
    assert a.weighted_mean_ape == pytest.approx((0.8 / 3 + 0.0 + 1.0) / 3)
    assert a.weighted_p90_ape == pytest.approx(1.0)
    assert a.weighted_within_20 == pytest.approx((2 / 3 + 1) / 3)
    assert a.weighted_coverage_80 == pytest.approx((2 / 3 + 1) / 3)


def test_a_repeat_that_is_not_scored_takes_no_vote():
    measured = MEASURED.copy()
    measured[0] = math.nan
    a = score(measured=measured, configuration=np.array(["a", "a", "b", "c", "d"]))
    assert a.configurations == 4
    assert a.weighted_mean_ape == pytest.approx(a.mean_ape)


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=20),
    st.integers(1, 5),
    st.sampled_from([0.1, 0.5, 0.9]),
)
def test_printing_every_row_again_moves_no_weighted_metric(values, times, share):
    once = np.array(values)
    again = np.repeat(once, times)
    labels = np.repeat(np.arange(len(once)).astype(str), times)
    found = weighted_quantile(again, repeat_weights(labels), share)
    assert found == weighted_quantile(once, np.ones(len(once)), share)
    assert min(values) <= found <= max(values)


def test_coverage_has_exact_bounds():
    a = score(low=MEASURED, high=MEASURED)
    assert a.coverage_80 == 1
    assert a.coverage_low == pytest.approx(0.05 ** (1 / 5))
    assert a.coverage_high == 1


def test_parts_hold_every_row_once_the_largest_first():
    labels = np.array(["x", "y", "y", "y", "x"])
    parts = scored_by(labels, predicted=PREDICTED, measured=MEASURED, refused=NO)
    assert list(parts) == ["y", "x"]
    assert parts["x"].mean_ape == pytest.approx(0.55)
    assert parts["y"].mean_ape == pytest.approx(0.7 / 3)


def test_a_label_whose_rows_ask_for_nothing_is_left_out():
    labels = np.array(["x", "x", "y", "y", "y"])
    measured = np.where(labels == "x", np.nan, MEASURED)
    assert list(scored_by(labels, predicted=PREDICTED, measured=measured, refused=NO)) == ["y"]


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=40), st.floats(1e-3, 1e3), st.randoms())
def test_the_unit_and_the_order_of_rows_do_not_matter(values, unit, random):
    p = np.array(values)
    m = p * np.array([random.uniform(0.2, 5) for _ in values])
    order = list(range(len(p)))
    random.shuffle(order)
    none = np.zeros(len(p), dtype=bool)
    one = scored(predicted=p, measured=m, refused=none)
    two = scored(predicted=p[order] * unit, measured=m[order] * unit, refused=none)
    for name in ("median_ape", "mean_ape", "p90_ape"):
        assert getattr(two, name) == pytest.approx(getattr(one, name), rel=1e-6, abs=1e-9)


def test_out_of_memory_scores():
    a = scored_oom(
        probability_oom=np.array([0.9, 0.4, 0.1, 0.6, 0.5]),
        oom=np.array([1.0, 1.0, 0.0, 0.0, np.nan]),
        refused=NO,
    )
    assert (a.n_oom, a.n_fit) == (2, 2)
    assert a.mean_probability_of_oom == pytest.approx(0.65)
    assert a.mean_probability_of_fit == pytest.approx(0.35)
    assert a.oom_found == a.false_alarms == 0.5
    assert a.brier == pytest.approx((0.01 + 0.36 + 0.01 + 0.36) / 4)
    assert a.classes_of_oom == {"fits": 0, "tight": 2, "does not fit": 0}
    assert a.classes_of_fit == {"fits": 0, "tight": 2, "does not fit": 0}


def test_the_bounds_of_the_memory_classes_belong_to_the_safer_class():
    found = memory_classes(np.array([0.0, 0.05, 0.0501, 0.9, 0.9001, 1.0]))
    assert found == {"fits": 2, "tight": 2, "does not fit": 2}


def test_pairs_score_the_change_not_the_level():
    predicted = np.array([1.1, 0.9, 1.5, 1.0])
    measured = np.array([1.0, 0.8, 0.75, 1.01])
    a = scored_pairs(predicted_ratio=predicted, measured_ratio=measured, refused=NO[:4])
    assert a.n == 4
    assert a.mean_ape == pytest.approx((0.1 + 0.125 + 1.0 + 0.01 / 1.01) / 4)
    assert a.direction_right == 0.5  # 1.0 and 1.01 did not move; 0.9 is right, 1.5 is wrong
    assert a.no_change_median_ape == pytest.approx((0.01 / 1.01 + 0.25) / 2)
    assert a.n_changed == 2  # 0.8 and 0.75
    assert a.changed_direction_right == 0.5
    no_change = np.sort(np.abs(np.log(measured)))
    assert a.no_change_median_log_error == pytest.approx(no_change[1:3].mean())
    log_errors = np.sort(np.abs(np.log(predicted / measured)))
    assert a.median_log_error == pytest.approx(log_errors[1:3].mean())


def test_a_refused_pair_is_counted_in_its_knob():
    parts = scored_pairs_by(
        np.array(["tp", "tp", "pp"]),
        predicted_ratio=np.array([1.0, np.nan, 2.0]),
        measured_ratio=np.array([1.0, 2.0, 1.0]),
        refused=np.array([False, True, False]),
    )
    assert (parts["tp"].n, parts["tp"].refused) == (1, 1)
    assert parts["pp"].median_ape == pytest.approx(1.0)


def test_a_forecast_of_no_change_has_no_direction():
    a = scored_pairs(
        predicted_ratio=np.array([1.0, 1.0]), measured_ratio=np.array([0.9, 1.1]), refused=NO[:2]
    )
    assert a.direction_right == 0
