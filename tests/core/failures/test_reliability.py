"""Failures and checkpoints: [Y74] against the loss it minimises."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.failures.reliability import young_interval_s


@given(checkpoint=st.floats(1, 600), mttf=st.floats(1e5, 1e8), other=st.floats(0.2, 5))
def test_no_other_interval_loses_less_to_first_order(checkpoint, mttf, other):
    """Time lost per second: C/T for checkpoints, T/(2M) for work that a failure repeats."""
    best = float(young_interval_s(checkpoint_s=checkpoint, mean_time_to_failure_s=mttf))

    def lost(interval):
        return checkpoint / interval + interval / (2 * mttf)

    assert lost(best) <= lost(best * other) * (1 + 1e-12)
    assert lost(best) == pytest.approx(math.sqrt(2 * checkpoint / mttf))
