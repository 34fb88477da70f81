"""Measured matmul shapes: exact where measured, smooth between, the machine's constant far away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.machine import calibration
from core.machine.cluster import as_columns
from core.time import measured_shapes
from core.time.layer import layer_seconds
from tests.made_up.jobs import CLUSTER, SHIPPED, layout, workload

M = np.array([8192.0, 1024.0, 64.0, 4096.0, 8192.0])
N = np.array([8192.0, 4096.0, 8192.0, 14336.0, 1024.0])
K = np.array([8192.0, 4096.0, 8192.0, 4096.0, 28672.0])
RATIO = np.array([0.02, -0.1, -0.4, 0.05, -0.2])


def fitted(log_ratio=RATIO, sigma=1e-4, prior_sigma=0.15, rows=slice(None)):
    return measured_shapes.fit(
        m=M[rows], n=N[rows], k=K[rows], log_ratio=log_ratio[rows],
        sigma=np.full(len(M[rows]), sigma), prior_sigma=prior_sigma,
    )  # fmt: skip


def said(found, m, n, k):
    return found.constant + measured_shapes.log_factor(found.at, found.weights, m=m, n=n, k=k)


def test_a_measured_shape_is_what_was_measured():
    np.testing.assert_allclose(said(fitted(), M, N, K), RATIO, atol=1e-4)


def test_far_from_every_shape_only_the_machine_is_left():
    found = fitted()
    assert said(found, 1e9, 1e9, 1e9) == pytest.approx(found.constant, abs=1e-9)
    assert 0 < found.constant_sigma < 0.15


def test_between_two_shapes_it_is_between_them():
    one = {"m": np.array([1e3, 4e3]), "n": np.array([4e3, 4e3]), "k": np.array([4e3, 4e3])}
    found = measured_shapes.fit(
        **one, log_ratio=np.array([0.0, 0.3]), sigma=np.full(2, 1e-3), prior_sigma=0.15
    )
    assert 0.1 < said(found, 2e3, 4e3, 4e3) < 0.2


def test_a_doubtful_measurement_moves_less():
    sure, doubtful = fitted(sigma=0.01), fitted(sigma=0.5)
    assert np.abs(said(doubtful, M, N, K)).sum() < 0.4 * np.abs(said(sure, M, N, K)).sum()
    assert fitted(np.zeros(5)).constant == 0


@given(st.integers(0, 4), st.floats(0.01, 0.3))
def test_the_left_out_error_is_that_of_a_fit_without_the_shape(out, sigma):
    found = fitted(sigma=sigma)
    rows = np.arange(5) != out
    without = fitted(sigma=sigma, rows=rows)
    error = RATIO[out] - said(without, M[out], N[out], K[out])
    assert found.leave_one_out[out] == pytest.approx(error, abs=1e-9)


def measured(cluster):
    found = fitted()
    return calibration.applied(
        cluster,
        calibration.Calibrated(
            matmul_at=tuple(map(tuple, found.at.tolist())),
            matmul_weights=tuple(found.weights.tolist()),
        ),
    )


def test_a_machine_without_a_calibration_is_as_it_was():
    # By their words: Python 3.13 finds NaN in no two equal.
    assert repr(calibration.applied(CLUSTER, calibration.Calibrated())) == repr(CLUSTER)


def layer(cluster, rows=None):
    return layer_seconds(workload(), rows or layout(), cluster, SHIPPED["generic"])


def test_measured_shapes_change_matmuls_and_nothing_else():
    before, after = layer(CLUSTER), layer(measured(CLUSTER))
    assert float(after.matmul_forward) != pytest.approx(float(before.matmul_forward), rel=0.01)
    assert after.head != before.head
    assert after.attention_forward == before.attention_forward
    assert after.memory_bound_forward == before.memory_bound_forward


def test_machines_with_and_without_shapes_are_columns_of_one_search():
    slower = replace(CLUSTER, ceiling=0.5)
    both = as_columns([CLUSTER, measured(CLUSTER), slower])
    owner = np.array([1, 0, 2, 1])
    together = layer(both.take(owner), layout(num_gpus=np.full(4, 8))).matmul_forward
    alone = [layer(c).matmul_forward for c in (measured(CLUSTER), CLUSTER, slower)]
    np.testing.assert_allclose(together, [*alone, alone[0]], rtol=1e-12)


def test_measured_rates_speed_up_what_they_are_of():
    changed = {"matmul": "matmul_forward", "attention": "attention_forward",
               "memory": "memory_bound_forward"}  # fmt: skip
    for factor, part in changed.items():
        faster = calibration.applied(CLUSTER, calibration.Calibrated(**{factor: 1.25}))
        assert getattr(layer(faster), part) < getattr(layer(CLUSTER), part)
    slower = calibration.applied(CLUSTER, calibration.Calibrated(elementwise=2.0))
    before, after = layer(CLUSTER).memory_bound_forward, layer(slower).memory_bound_forward
    assert after == pytest.approx(2 * before)


def test_a_measurement_and_what_was_assumed_are_joined_by_their_precisions():
    mean, sigma = calibration.posterior(log_ratio=0.3, sigma=1e-9, prior_sigma=0.15)
    assert (mean, sigma) == (pytest.approx(0.3), pytest.approx(0, abs=1e-8))
    mean, sigma = calibration.posterior(log_ratio=0.3, sigma=1e9, prior_sigma=0.15)
    assert (mean, sigma) == (pytest.approx(0, abs=1e-9), pytest.approx(0.15))
