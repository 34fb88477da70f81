"""A measurement moves a forecast as far as it says something about it, and narrows it."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.accuracy.predict import predict
from core.errors import ScenarioError
from core.evidence.anchor import NOISE_SIGMA, anchored, check_measured, correlation
from hardware.measured import MODELS_CSV, RUNS_CSV, read_models, read_runs

SAME = {
    "same_accelerator": True,
    "same_model": True,
    "same_layout": True,
    "same_num_gpus": True,
}
ratios = st.floats(0.3, 3.0)
sigmas = st.floats(0.05, 0.6)
flags = st.fixed_dictionaries(dict.fromkeys(SAME, st.booleans()))


def shifted(measured, sigma_shared=0.18, sigma_own=0.0, **known):
    given = {**SAME, **known}
    return anchored(
        predicted_anchor=1000.0, measured=measured, sigma_shared=sigma_shared,
        sigma_own=sigma_own, **given,
    )  # fmt: skip


def test_without_a_measurement_nothing_moves():
    shift, sigma = shifted(None, sigma_shared=0.3, sigma_own=0.4)
    assert (float(shift), float(sigma)) == (0.0, pytest.approx(0.5))


@given(ratios)
def test_the_measured_configuration_itself_is_forecast_as_measured(ratio):
    """A second measurement differs from the first by twice the scatter: root 2 of 0.027."""
    shift, sigma = shifted(1000.0 * ratio)
    assert float(shift) == pytest.approx(math.log(ratio), rel=0.03, abs=1e-12)
    assert float(sigma) == pytest.approx(math.sqrt(2) * NOISE_SIGMA, rel=0.02)


@given(ratios, sigmas, st.floats(0.0, 0.5), flags)
def test_a_measurement_never_overshoots_nor_widens(ratio, shared, own, known):
    shift, sigma = shifted(1000.0 * ratio, shared, own, **known)
    assert abs(float(shift)) <= abs(math.log(ratio)) + 1e-12
    assert float(shift) * math.log(ratio) >= -1e-12
    assert 0 < float(sigma) <= math.hypot(shared, own) + 1e-12


@given(ratios.filter(lambda r: abs(math.log(r)) > 0.01))
def test_the_less_alike_the_less_it_moves(ratio):
    nearer_first = [
        {},
        {"same_num_gpus": False},
        {"same_layout": False},
        {"same_accelerator": False},
        {"same_accelerator": False, "same_model": False},
    ]
    found = [shifted(1000.0 * ratio, **known) for known in nearer_first]
    moved = [abs(float(shift)) for shift, _ in found]
    widths = [float(sigma) for _, sigma in found]
    assert moved == sorted(moved, reverse=True)
    assert len(set(moved)) == len(moved)
    assert widths == sorted(widths)


def test_columns_are_the_rows_one_by_one():
    accelerators, own = np.array([True, False, True]), np.array([0.0, 0.15, 0.07])
    shift, sigma = anchored(
        predicted_anchor=1000.0, measured=1200.0, sigma_shared=0.18, sigma_own=own,
        same_accelerator=accelerators, same_model=True, same_layout=False, same_num_gpus=True,
    )  # fmt: skip
    for n in range(3):
        one = shifted(
            1200.0, 0.18, own[n], same_accelerator=bool(accelerators[n]), same_layout=False
        )
        assert (shift[n], sigma[n]) == (pytest.approx(float(one[0])), pytest.approx(float(one[1])))


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_it_is_the_conditional_normal_distribution(seed):
    """Against a regression over simulated pairs of errors that scatter and correlate so."""
    rng, n, near = np.random.default_rng(seed), 100_000, 0.6
    true_sd = math.sqrt(0.18**2 - NOISE_SIGMA**2)
    a = rng.standard_normal(n)
    b = near * a + math.sqrt(1 - near**2) * rng.standard_normal(n)
    seen = true_sd * a + NOISE_SIGMA * rng.standard_normal(n)
    target = true_sd * b + NOISE_SIGMA * rng.standard_normal(n)
    slope = float(seen @ target / (seen @ seen))
    shift, sigma = shifted(1000.0 * math.e, same_layout=False)
    assert float(shift) == pytest.approx(slope, abs=0.015)
    assert float(sigma) == pytest.approx(float(np.std(target - slope * seen)), rel=0.015)


def test_a_run_forecasts_its_neighbours_better_than_nothing_does():
    """On published runs: anchored on one of a source, the others come out closer."""
    runs, models = read_runs(Path(RUNS_CSV)), read_models(Path(MODELS_CSV)).facts
    forecast, inputs = predict(runs.inputs, models), runs.inputs
    error = np.log(runs.measured.tokens_per_s_per_gpu / forecast.tokens_per_s_per_gpu_p50)
    usable = np.isfinite(error) & runs.measured.throughput_ok
    names = [
        inputs.source, inputs.framework, inputs.accelerator, inputs.model_key, inputs.precision,
        inputs.seq_len.astype(str),
    ]  # fmt: skip
    group = np.array(["|".join(cells) for cells in zip(*names, strict=True)])
    before, after = [], []
    for name in np.unique(group[usable]):
        first, *rest = np.flatnonzero((group == name) & usable)
        if not rest:
            continue
        shift, _ = shifted(1000.0 * math.exp(error[first]), same_layout=False)
        before.append(np.median(np.abs(error[rest])))
        after.append(np.median(np.abs(error[rest] - float(shift))))
    assert len(before) > 20
    assert np.median(after) < 0.85 * np.median(before)


def test_correlations_are_ordered():
    table = [
        (float(correlation(same_accelerator=a, same_model=m, same_layout=True, same_num_gpus=True)))
        for a, m in ((True, True), (True, False), (False, True), (False, False))
    ]
    assert table == sorted(table, reverse=True)
    assert table[0] == 1.0


def test_a_speed_beyond_the_fastest_peak_is_refused():
    """Llama 3.1 8B needs about 52 GFLOPs a token: fp8 on an H100 allows 38,000 tokens/s."""
    given = {"flops_per_token": 52e9, "fastest_flops_per_s": 1979e12}
    check_measured(tokens_per_s_per_gpu=15_000, **given)
    with pytest.raises(ScenarioError, match=r"anchor_tokens_per_s_per_gpu=800,000 is 21 times"):
        check_measured(tokens_per_s_per_gpu=800_000, **given)
