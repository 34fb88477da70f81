"""How much longer than forecast work takes, against draws and the speeds that it comes from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evidence import uncertainty
from core.failures.time_factor import factor_at, factor_cumulants, through_quantiles, time_factor
from core.numeric import Z_90

WIDTHS, SKEWS = st.floats(1e-4, 0.8), st.floats(0.0, 0.6)


@given(sigma=WIDTHS, skew=SKEWS)
def test_its_quantiles_are_those_of_the_speed(sigma, skew):
    """A speed at its P10 takes the P90 of the time."""
    low, high = (f(1.0, sigma, skew) for f in (uncertainty.p10, uncertainty.p90))
    at = [factor_at(z, sigma, skew) for z in (-Z_90, 0.0, Z_90)]
    assert at == pytest.approx([1 / high, 1.0, 1 / low], rel=1e-7)


@given(sigma=WIDTHS)
def test_without_skew_it_is_log_normal(sigma):
    scale, width = time_factor(sigma, 0.0)
    assert (scale, width) == pytest.approx((1.0, sigma), rel=1e-6)


def test_its_cumulants_are_those_of_draws_and_rise_with_the_skew():
    z = np.random.default_rng(0).standard_normal(400_000)
    means = []
    for skew in (0.0, 0.2, 0.4):
        drawn = factor_at(z, 0.25, skew)
        mean, variance, third = factor_cumulants(0.25, skew)
        assert mean == pytest.approx(drawn.mean(), rel=2e-3)
        assert variance == pytest.approx(drawn.var(), rel=0.03)
        assert third == pytest.approx(((drawn - drawn.mean()) ** 3).mean(), rel=0.2)
        means.append(mean)
    assert means == sorted(means)


def test_what_is_certain_takes_as_long_as_forecast():
    assert [float(x) for x in factor_cumulants(0.0, 0.22)] == [1.0, 0.0, 0.0]
    assert factor_at(Z_90, 0.0, 0.22) == 1.0


@given(slower=st.floats(0.001, 2.0), faster=st.floats(0.001, 0.9))
def test_it_goes_through_any_two_quantiles(slower, faster):
    """As far on both sides, or further towards faster, too."""
    for above in (slower, faster):
        scale, width = through_quantiles(above, faster)
        at = [1 + scale * np.expm1(z * width) for z in (-Z_90, Z_90)]
        assert at == pytest.approx([1 - faster, 1 + above], rel=1e-5)
