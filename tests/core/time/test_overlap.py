"""Overlap: what is hidden is never free of what it shares the GPU with, and never more than all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.time.overlap import exposed_s, hidden_s

SECONDS = st.one_of(st.just(0.0), st.floats(1e-9, 1e3))
SHARE = st.floats(0, 1)


def exposed_beside(*, slowdown, **hiding):
    """Seconds that communication adds to the computation beside it."""
    hidden = hidden_s(**hiding)
    return exposed_s(communication_s=hiding["communication_s"], hidden_s=hidden, slowdown=slowdown)


@given(communication=SECONDS, computation=SECONDS, always=SHARE, window=SHARE, slowdown=SHARE)
def test_bounds(communication, computation, always, window, slowdown):
    """max(a, b) <= a + exposed <= a + b (1 + slowdown)."""
    exposed = float(
        exposed_beside(
            communication_s=communication, computation_s=computation, always_exposed=always,
            window=window, slowdown=slowdown,
        )
    )  # fmt: skip
    together = computation + exposed
    assert together >= max(computation, communication) * (1 - 1e-9) - 1e-9
    assert together <= (computation + communication * (1 + slowdown)) * (1 + 1e-9) + 1e-9
    assert exposed >= always * communication * (1 - 1e-9) - 1e-9


@given(
    communication=SECONDS, more=SECONDS, computation=SECONDS, always=SHARE, window=SHARE,
    slowdown=SHARE,
)  # fmt: skip
def test_more_communication_never_takes_less(
    communication, more, computation, always, window, slowdown
):
    rest = {
        "computation_s": computation, "always_exposed": always, "window": window,
        "slowdown": slowdown,
    }  # fmt: skip
    here = float(exposed_beside(communication_s=communication, **rest))
    there = float(exposed_beside(communication_s=communication + more, **rest))
    assert there >= here * (1 - 1e-9) - 1e-9


@given(communication=SECONDS, computation=SECONDS, faster=SHARE, always=SHARE, window=SHARE,
       slowdown=SHARE)  # fmt: skip
def test_faster_computation_never_makes_both_together_slower(
    communication, computation, faster, always, window, slowdown
):
    def together(seconds):
        return seconds + float(
            exposed_beside(
                communication_s=communication, computation_s=seconds, always_exposed=always,
                window=window, slowdown=slowdown,
            )
        )  # fmt: skip

    assert together(computation * faster) <= together(computation) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    ("always", "window", "slowdown", "want"),
    [
        (0.0, 1.0, 0.0, 0.0),  # all hidden, nothing paid
        (1.0, 1.0, 0.0, 4.0),  # nothing may hide
        (0.0, 0.0, 0.5, 4.0),  # nowhere to hide
        (0.0, 1.0, 0.25, 1.0),  # hidden, a quarter paid
        (0.5, 1.0, 0.0, 2.0),
        (0.0, 0.2, 0.0, 2.0),  # 2 of 10 seconds can hide 2 of 4
    ],
)
def test_cases_by_hand(always, window, slowdown, want):
    got = exposed_beside(
        communication_s=4.0, computation_s=10.0, always_exposed=always, window=window,
        slowdown=slowdown,
    )  # fmt: skip
    assert float(got) == pytest.approx(want)


@given(communication=SECONDS, computation=SECONDS)
def test_the_limits_are_the_longer_of_both_and_their_sum(communication, computation):
    """Two streams that do not disturb one another, and two that share everything."""

    def together(**how):
        hiding = {"communication_s": communication, "computation_s": computation}
        return computation + float(exposed_beside(**hiding, **how))

    free = together(always_exposed=0.0, window=1.0, slowdown=0.0)
    assert free == pytest.approx(max(communication, computation))
    for how in (
        {"always_exposed": 0.0, "window": 1.0, "slowdown": 1.0},  # hidden time is paid in full
        {"always_exposed": 1.0, "window": 1.0, "slowdown": 0.0},
        {"always_exposed": 0.0, "window": 0.0, "slowdown": 0.0},
    ):
        assert together(**how) == pytest.approx(communication + computation)


@pytest.mark.parametrize("slowdown", [0.0, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("communication", [1.0, 4.0, 10.0, 25.0])
def test_two_rates_are_those_of_a_simulation_in_small_ticks(communication, slowdown):
    """While both run each second of overlap costs `slowdown` of a second more; alone, nothing."""
    computation, tick = 10.0, 1e-3
    left = {"communication": communication, "computation": computation}
    now = 0.0
    while any(x > tick / 2 for x in left.values()):
        busy = [k for k, x in left.items() if x > tick / 2]
        for k in busy:
            left[k] -= tick
        now += tick * (1 + slowdown if len(busy) == 2 else 1)
    got = computation + float(
        exposed_beside(
            communication_s=communication, computation_s=computation, always_exposed=0.0,
            window=1.0, slowdown=slowdown,
        )
    )  # fmt: skip
    assert got == pytest.approx(now, rel=1e-3)
