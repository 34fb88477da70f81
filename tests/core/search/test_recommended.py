"""The recommended row is that of looking at every row, and an impossible gate is named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.search.recommended import CLOSE, NEAR, NEARLY_AS_FAST, late_by, recommended

ROWS = st.lists(
    st.tuples(
        st.sampled_from([100.0, 101.0, 104.9, 106.0, 130.0, np.inf]),
        st.sampled_from([10.0, 10.2, 10.4, 20.0]),
        st.sampled_from([0.0, 10.0, 111.0]),
        st.sampled_from([0.0, 0.0, 0.03, 0.2]),
        st.sampled_from([0.0, 0.0, 1.0]),
    ),
    min_size=1,
    max_size=10,
)


def looked_at(rows, by):
    """The row by the words of the module, one step after another."""
    first, second = (1, 0) if by == "time" else (0, 1)
    ends = [n for n, r in enumerate(rows) if np.isfinite(r[0])]
    if not ends:
        return None
    for gate in (3, 4):
        passed = [n for n in ends if rows[n][gate] == 0]
        least = min(rows[n][gate] for n in ends)
        ends = passed or [n for n in ends if rows[n][gate] <= least + CLOSE]
    best = min(rows[n][first] for n in ends)
    near = [n for n in ends if rows[n][first] <= best * NEAR]
    fastest = min(rows[n][second] for n in near)
    tied = [n for n in near if rows[n][second] <= fastest * NEARLY_AS_FAST]
    return min(tied, key=lambda n: (rows[n][2], rows[n][first], rows[n][second], n))


@given(rows=ROWS, by=st.sampled_from(["usd", "time"]))
def test_gates_then_cost_then_time_then_simplicity(rows, by):
    usd, hours, complexity, memory, supply = (np.array(c) for c in zip(*rows, strict=True))
    found = recommended(
        usd=usd, hours=hours, complexity=complexity, by=by,
        gates={"memory": memory, "supply": supply},
    )  # fmt: skip
    if (row := looked_at(rows, by)) is not None:
        assert found.row == row
        assert ("supply" in found.empty) == (supply[found.row] > 0)


@pytest.mark.parametrize(
    ("chances", "row"),
    [
        ([0.89, 0.91, 1.0], 1),  # the cheapest that is sure enough
        ([0.3, 0.6, 0.64], 1),  # none is: the cheapest of those that are nearly as sure as any
        ([0.0, 0.0, 0.0], 2),  # hopeless: the least late
    ],
)
def test_a_deadline_is_held_with_confidence_or_missed_by_the_least(chances, row):
    hours = np.array([400.0, 300.0, 200.0])
    late = late_by(chances=np.array(chances), hours=hours, deadline_hours=100.0, confidence=0.9)
    found = recommended(
        usd=np.array([1.0, 2.0, 3.0]), hours=hours, complexity=np.zeros(3), by="usd",
        gates={"deadline": late},
    )  # fmt: skip
    assert found.row == row
    assert found.empty == (() if max(chances) > 0.9 else ("deadline",))


@pytest.mark.parametrize("by", ["usd", "time"])
def test_a_shortfall_that_is_not_known_passes_no_gate(by):
    """Nothing has a price: what a budget allows is not known of any row."""
    nan = np.full(2, np.nan)
    found = recommended(
        usd=nan, hours=np.array([2.0, 1.0]), complexity=np.zeros(2), gates={"budget": nan}, by=by
    )
    assert (found.row, found.empty, found.failed) == (1, ("budget",), ("budget",))
