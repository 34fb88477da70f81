"""Order of plans: limits before price before preference."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.search.ranking import counts_to_try, order, within

NAN = float("nan")
ROWS = st.lists(
    st.tuples(
        st.one_of(st.floats(1, 1e6), st.just(NAN)), st.floats(1, 1e6), st.booleans(), st.booleans()
    ),
    max_size=30,
)


def ordered(rows, by):
    usd, hours, meets, doubted = (np.array([r[i] for r in rows]) for i in range(4))
    return order(
        usd=usd.astype(float), hours=hours.astype(float), meets_limits=meets.astype(bool),
        faults=doubted.astype(np.intp), by=by,
    )  # fmt: skip


# Too late, dear but in time, cheap but in doubt.
@example(
    rows=[(1.0, 9.0, False, False), (99.0, 1.0, True, False), (1.0, 1.0, True, True)], by="usd"
)
@given(rows=ROWS, by=st.sampled_from(["usd", "time"]))
def test_the_order_is_a_sort_by_limits_price_known_doubt_and_preference(rows, by):
    got = [rows[i] for i in ordered(rows, by)]
    assert len(got) == len(rows)

    def key(row):
        usd, hours, meets, doubted = row
        price = np.inf if np.isnan(usd) else usd
        first, second = (hours, price) if by == "time" else (price, hours)
        return (not meets, bool(np.isnan(usd)), doubted, first, second)

    assert [key(r) for r in got] == sorted(key(r) for r in rows)


def test_equal_plans_keep_the_order_in_which_they_came():
    rows = [(1.0, 1.0, True, False)] * 5
    assert ordered(rows, "usd").tolist() == [0, 1, 2, 3, 4]


@given(values=st.lists(st.one_of(st.floats(0, 10), st.just(NAN))), limit=st.floats(0, 10))
def test_an_unknown_value_keeps_no_limit_and_no_limit_is_kept_by_all(values, limit):
    column = np.array(values, dtype=float)
    assert within(column, None).all()
    assert within(column, limit).tolist() == [v <= limit for v in values]


@given(
    per_instance=st.integers(1, 72),
    flops=st.floats(1e18, 1e27),
    longest=st.floats(1e4, 1e8),
    share=st.floats(0.01, 1),
)
def test_counts_are_whole_instances_that_could_end_in_time(per_instance, flops, longest, share):
    target = longest * share
    counts, too_few = counts_to_try(
        gpus_per_instance=per_instance, flops_of_run=flops, peak_flops_per_s=1e15,
        longest_s=longest, target_s=target,
    )  # fmt: skip
    assert all(c % per_instance == 0 and c <= 131_072 for c in counts)
    assert all(b == 2 * a for a, b in pairwise(counts))
    assert all(flops / (c * 1e15) <= longest * (1 + 1e-12) for c in counts)
    largest = per_instance * 2 ** (too_few + len(counts) - 1)
    enough = flops / (largest * 1e15 * 0.25) <= target * (1 + 1e-12)
    assert enough or 2 * largest > 131_072
    assert 2 * largest > 1024


@pytest.mark.parametrize("per_instance", [1, 4, 8, 72])
def test_a_small_run_may_still_use_a_thousand_gpus(per_instance):
    counts, too_few = counts_to_try(
        gpus_per_instance=per_instance, flops_of_run=1e15, peak_flops_per_s=1e15,
        longest_s=1e7, target_s=1e6,
    )  # fmt: skip
    assert too_few == 0
    assert counts[0] == per_instance
    assert 512 < counts[-1] <= 1024
