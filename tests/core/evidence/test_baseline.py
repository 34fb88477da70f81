"""The baseline: medians by hand, back-off in order, and never its own group."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evidence.baseline import out_of_group_mfu

KEYS = ("group", "accelerator", "precision", "architecture", "framework")
# group, accelerator, precision, architecture, framework, MFU
ROWS = [
    ("1", "H100", "bf16", "dense", "nemo", 0.50),
    ("1", "H100", "bf16", "dense", "nemo", 0.52),
    ("2", "H100", "bf16", "dense", "nemo", 0.40),
    ("2", "H100", "bf16", "dense", "nemo", 0.44),
    ("3", "H100", "bf16", "dense", "maxtext", 0.30),
    ("4", "H100", "bf16", "moe", "nemo", 0.20),
    ("5", "H100", "fp8", "dense", "nemo", 0.70),
    ("6", "A100", "bf16", "dense", "nemo", 0.60),
]


def baseline(rows, mfu=None):
    columns = {name: np.array([r[i] for r in rows], dtype=np.str_) for i, name in enumerate(KEYS)}
    return out_of_group_mfu(mfu=np.array([r[5] for r in rows]) if mfu is None else mfu, **columns)


def test_medians_and_back_off_by_hand():
    found = baseline(ROWS)
    assert list(found.dropped) == [0, 0, 0, 0, 1, 2, 3, 4]
    assert found.mfu[0] == found.mfu[1] == pytest.approx(0.42)  # rows of group 2
    assert found.mfu[2] == found.mfu[3] == pytest.approx(0.51)  # rows of group 1
    assert found.mfu[4] == pytest.approx(0.47)  # framework given up: 40 44 50 52
    assert found.mfu[5] == pytest.approx(0.44)  # experts given up: 30 40 44 50 52
    assert found.mfu[6] == pytest.approx(0.42)  # precision given up: 20 30 40 44 50 52
    assert found.mfu[7] == pytest.approx(0.44)  # accelerator given up


def test_a_lone_group_has_nothing_to_learn_from():
    found = baseline(ROWS[:2])
    assert np.isnan(found.mfu).all()
    assert list(found.dropped) == [-1, -1]


def test_a_row_without_a_measurement_is_predicted_and_teaches_nothing():
    mfu = np.array([r[5] for r in ROWS])
    mfu[3] = np.nan
    found = baseline(ROWS, mfu)
    assert found.mfu[3] == pytest.approx(0.51)
    assert found.mfu[0] == pytest.approx(0.40)


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from("1234"), st.sampled_from("AH"), st.sampled_from("bf"),
            st.sampled_from("dm"), st.sampled_from("xyz"), st.floats(0.01, 0.9),
        ),
        min_size=1,
        max_size=30,
    ),
    group=st.sampled_from("1234"),
    factor=st.floats(0.1, 10),
)  # fmt: skip
def test_a_group_never_sees_its_own_measurements(rows, group, factor):
    own = np.array([r[0] == group for r in rows])
    mfu = np.array([r[5] for r in rows])
    one, two = baseline(rows, mfu), baseline(rows, np.where(own, mfu * factor, mfu))
    np.testing.assert_array_equal(one.mfu[own], two.mfu[own])
    np.testing.assert_array_equal(one.dropped[own], two.dropped[own])
