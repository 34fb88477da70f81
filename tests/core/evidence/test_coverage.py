"""Binomial bounds against closed forms and a printed table; verdicts of classes."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evidence.coverage import NOMINAL, TAIL, binomial_interval, verdict


@pytest.mark.parametrize("n", [1, 3, 10, 40, 500])
def test_none_and_all_have_closed_forms(n):
    """(0, 1 - a^(1/n)) and its mirror, for one side of level a."""
    edge = 1 - TAIL ** (1 / n)
    assert binomial_interval(0, n) == pytest.approx((0, edge), abs=1e-9)
    assert binomial_interval(n, n) == pytest.approx((1 - edge, 1), abs=1e-9)


def test_a_printed_interval():
    """90% limits of 10 in 20, as tables of the binomial print them."""
    assert binomial_interval(10, 20) == pytest.approx((0.302, 0.698), abs=1e-3)


def at_most(k, n, p):
    return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_bound_is_where_chance_gives_so_few_or_so_many_one_time_in_twenty(of):
    inside, n = of
    low, high = binomial_interval(inside, n)
    assert low <= inside / n <= high
    if inside < n:
        assert at_most(inside, n, high) == pytest.approx(TAIL, abs=1e-6)
    if inside > 0:
        assert 1 - at_most(inside - 1, n, low) == pytest.approx(TAIL, abs=1e-6)


@given(st.integers(1, 39).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_small_class_is_too_narrow_where_the_exact_test_says_so(of):
    inside, n = of
    high = binomial_interval(inside, n)[1]
    found = verdict(n=n, coverage=inside / n, high=high)
    assert (found == "too narrow") == (at_most(inside, n, NOMINAL) < TAIL)
    assert found != "too wide"


@pytest.mark.parametrize(
    ("coverage", "says"),
    [(0.71, "too narrow"), (0.73, "honest"), (0.87, "honest"), (0.89, "too wide")],
)
def test_a_large_class_is_held_to_the_band(coverage, says):
    assert verdict(n=40, coverage=coverage, high=1.0) == says
