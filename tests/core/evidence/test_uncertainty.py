"""Intervals: quantiles of a log-normal, against the standard library's normal."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evidence import uncertainty
from core.evidence.uncertainty import (
    Circumstances,
    memory_sigma,
    memory_terms,
    narrowed,
    of_step,
    p10,
    p90,
    probability_above,
    quadrature,
    throughput_sigma,
    throughput_terms,
    unknown,
)
from core.machine.efficiency import NAMES, Efficiency
from hardware.measured import RUNS_CSV, read_runs

VALUE = st.floats(1e-3, 1e12)
SIGMA = st.floats(0.01, 2)
WIDTH = st.one_of(st.just(0.0), st.floats(1e-3, 2))


@given(p50=VALUE, sigma=SIGMA)
def test_p10_and_p90_are_the_tenths(p50, sigma):
    low, high = float(p10(p50, sigma)), float(p90(p50, sigma))
    assert low < p50 < high
    assert float(probability_above(high, p50=p50, sigma=sigma)) == pytest.approx(0.1)
    assert float(probability_above(low, p50=p50, sigma=sigma)) == pytest.approx(0.9)
    assert low * high == pytest.approx(p50**2)


@given(limit=VALUE, p50=VALUE, sigma=SIGMA)
def test_the_probability_is_that_of_the_normal_distribution(limit, p50, sigma):
    got = float(probability_above(limit, p50=p50, sigma=sigma))
    want = 1 - NormalDist(np.log(p50), sigma).cdf(np.log(limit))
    assert got == pytest.approx(want, abs=1e-9)
    assert 0 <= got <= 1


@given(a=WIDTH, b=WIDTH, c=WIDTH)
def test_independent_causes_widen_and_never_narrow(a, b, c):
    whole = float(quadrature(a, b, c))
    assert whole == pytest.approx((a * a + b * b + c * c) ** 0.5)
    assert whole >= max(a, b, c) * (1 - 1e-12)
    assert whole <= a + b + c + 1e-12


EFF = Efficiency(**{n: 0.1 * (1 + i % 7) for i, n in enumerate(NAMES)})
FLAG = st.sampled_from([0.0, 1.0])
CIRCUMSTANCES = st.builds(
    Circumstances, num_inferred=st.integers(0, 7), num_inferred_of_memory=st.integers(0, 4),
    unknown_stack=FLAG, unmeasured=FLAG, experts=FLAG, adapters=FLAG,
    waits_for_host=st.floats(0, 1), passes_over_memory=st.floats(0, 1),
    at_half_network=st.floats(0, 0.7),
)  # fmt: skip


@given(known=CIRCUMSTANCES)
def test_a_width_is_the_quadrature_of_its_causes(known):
    """Each thing that is not said adds the same variance, whichever it is: none narrows it."""
    variance = (
        EFF.throughput_sigma**2
        + known.num_inferred * EFF.inferred_sigma**2
        + known.unknown_stack * EFF.unknown_stack_sigma**2
        + known.unmeasured * EFF.unmeasured_sigma**2
        + known.experts * EFF.experts_sigma**2
        + known.adapters * EFF.adapters_sigma**2
        + (known.waits_for_host * EFF.host_time_sigma) ** 2
        + (known.passes_over_memory * EFF.bandwidth_sigma) ** 2
        + (known.at_half_network * EFF.half_network_sigma) ** 2
    )
    assert float(throughput_sigma(EFF, known)) == pytest.approx(variance**0.5)
    variance = (
        EFF.memory_sigma**2
        + known.num_inferred_of_memory * EFF.memory_inferred_sigma**2
        + known.unknown_stack * EFF.memory_unknown_stack_sigma**2
    )
    assert float(memory_sigma(EFF, known)) == pytest.approx(variance**0.5)


def test_measured_runs_narrow_the_model_but_not_its_circumstances():
    known = Circumstances(unmeasured=1.0, waits_for_host=0.5, at_half_network=0.3)
    whole, left = (throughput_sigma(e, known) for e in (EFF, narrowed(EFF, 0.25)))
    of_model = EFF.throughput_sigma**2 + (0.5 * EFF.host_time_sigma) ** 2
    assert float(whole**2 - left**2) == pytest.approx(0.75 * of_model)


def test_the_parts_of_a_step_are_shares_of_it():
    parts = {"matmul": np.array([6.0, 2.0]), "overhead": 2.0, "head_loss": 1.0, "optimizer": 1.0}
    found = of_step(Circumstances(adapters=1.0), parts_s=parts, at_half_network=0.1)
    assert found.waits_for_host.tolist() == pytest.approx([0.2, 1 / 3])
    assert found.passes_over_memory.tolist() == pytest.approx([0.2, 1 / 3])
    assert (found.adapters, found.at_half_network) == (1.0, 0.1)


def test_an_unknown_stack_is_no_other_circumstance():
    known = Circumstances(num_inferred=np.array([0.0, 2.0]), experts=np.array([1.0, 0.0]))
    found = unknown(known)
    assert found.unknown_stack.tolist() == [1, 1]
    assert repr(replace(found, unknown_stack=0.0)) == repr(replace(known, unknown_stack=0.0))


def test_every_width_is_a_quantity_of_the_table_and_a_column_gives_what_its_rows_give():
    rows = [Circumstances(num_inferred=n, num_inferred_of_memory=n, experts=e)
            for n in (0.0, 3.0) for e in (0.0, 1.0)]  # fmt: skip
    column = Circumstances(
        **{n: np.array([getattr(r, n) for r in rows]) for n in Circumstances.__slots__}
    )
    for terms, sigma in ((throughput_terms, throughput_sigma), (memory_terms, memory_sigma)):
        assert set(terms(column)) <= {n for n in NAMES if n.endswith("_sigma")}
        assert all(len(t) == len(rows) for t in terms(column).values())
        assert sigma(EFF, column).tolist() == [float(sigma(EFF, r)) for r in rows]


def test_the_largest_run_is_that_of_the_table():
    runs = read_runs(RUNS_CSV)
    fitted = runs.measured.throughput_ok
    assert runs.inputs.num_gpus[fitted].max() == uncertainty.LARGEST_RUN


def test_a_skew_moves_both_ends_down_and_keeps_their_distance():
    plain, skewed = (
        (float(uncertainty.p10(100.0, 0.2, k)), float(uncertainty.p90(100.0, 0.2, k)))
        for k in (0.0, 0.25)
    )
    assert skewed[0] < plain[0]
    assert 100.0 < skewed[1] < plain[1]
    assert skewed[1] / skewed[0] == pytest.approx(plain[1] / plain[0])
