"""Rates, spares, gangs and slow nodes, against draws and published counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.failures.failures import (
    elastic_wait_s,
    exhausted_probability,
    gang_start_s,
    job_failures_per_s,
    mean_wait_s,
    straggler_slowdown,
)
from core.units import DAY_S
from hardware.reliability import published

RANDOM = 7


def test_the_count_of_llama_3():
    """419 unexpected interruptions of 16,384 GPUs in 54 days: the rate in the table gives them."""
    rate = next(f.value for f in published("failures_per_node_day") if "Llama 3" in f.scope)
    per_s = job_failures_per_s(num_gpus=16_384.0, failures_per_node_day=rate)
    assert per_s * 54 * DAY_S == pytest.approx(419, rel=1e-3)


def test_rates_add():
    both = job_failures_per_s(num_gpus=64.0, failures_per_node_day=0.01, job_failures_per_day=0.5)
    assert both * DAY_S == pytest.approx(8 * 0.01 + 0.5)


def test_spares_run_out_as_in_a_drawn_workshop():
    """Failures at random, each repaired after a fixed time: how often is no spare there?"""
    random, rate, repair, spares = np.random.default_rng(RANDOM), 1 / 3600, 5000.0, 3
    at = np.cumsum(random.exponential(1 / rate, 200_000))
    out = np.arange(at.size) - np.searchsorted(at, at - repair)
    found = exhausted_probability(failures_per_s=rate, repair_s=repair, spares=spares)
    assert found == pytest.approx((out >= spares).mean(), abs=0.005)


def test_an_elastic_job_loses_the_share_of_the_machine_that_is_away():
    """Steps played one by one: seven of eight machines until the eighth is back, then a restart."""
    step_s, wait_s, rejoin_s = 10.0, 6000.0, 200.0
    steps, at = 0.0, 0.0
    while at < wait_s:  # a step of eight machines' batch takes seven of them 8/7 as long
        at += step_s * 8 / 7
        steps += 1
    lost = at + rejoin_s - steps * step_s
    found = elastic_wait_s(wait_s=wait_s, num_nodes=8, min_nodes=7, rejoin_s=rejoin_s)
    assert found == pytest.approx(lost, rel=0.01)
    assert elastic_wait_s(wait_s=wait_s, num_nodes=8, min_nodes=8, rejoin_s=rejoin_s) == wait_s
    assert elastic_wait_s(wait_s=60.0, num_nodes=8, min_nodes=1, rejoin_s=rejoin_s) == 60.0


@given(load=st.floats(0.0, 50.0), spares=st.integers(0, 20))
def test_a_spare_more_never_hurts(load, spares):
    fewer, more = (
        exhausted_probability(failures_per_s=load, repair_s=1.0, spares=n)
        for n in (spares, spares + 1)
    )
    assert 0 <= more <= fewer <= 1
    assert exhausted_probability(failures_per_s=load, repair_s=1.0, spares=0) == 1.0
    assert mean_wait_s(replacement_s=10.0, exhausted_probability=fewer) <= 10.0


@pytest.mark.parametrize("nodes", [1, 2, 7, 128, 5000])
def test_the_last_of_a_gang(nodes):
    exact = sum(1 / k for k in range(1, nodes + 1))
    assert gang_start_s(num_nodes=float(nodes), mean_start_s=60.0) == pytest.approx(60 * exact)


def test_one_slow_node_slows_all():
    def slowdown(nodes, probability):
        return straggler_slowdown(num_nodes=nodes, slow_probability=probability, slow_fraction=0.1)

    assert slowdown(100.0, 0.0) == 1.0
    assert slowdown(100.0, 1.0) == pytest.approx(1.1)
    random = np.random.default_rng(RANDOM)
    drawn = 1 + 0.1 * (random.random((50_000, 64)) < 0.01).any(axis=1)
    assert slowdown(64.0, 0.01) == pytest.approx(drawn.mean(), abs=1e-3)
    column = np.array([1.0, 64.0])
    assert slowdown(column, 0.01) == pytest.approx([slowdown(n, 0.01) for n in column])
