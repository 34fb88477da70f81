"""Compute-optimal models: what the papers print, and that the best point is the best."""

from __future__ import annotations

import numpy as np
import pytest

from core.money import compute_optimal as laws
from core.money.compute_optimal import BESIROGLU, HOFFMANN, Law

CHINCHILLA_FLOPS = 5.76e23  # [H22, table 3]: Gopher's budget


def test_chinchilla_is_its_own_budget():
    """70B parameters on 1.4T tokens."""
    flops = laws.training_flops(parameters=70e9, tokens=1.4e12)
    assert flops == pytest.approx(CHINCHILLA_FLOPS, rel=0.03)


def test_the_replication_finds_chinchilla_and_the_original_constants_do_not():
    """[B24]: about 20 tokens a parameter; [H22, figure 4]: approach 3 has 40B for this budget."""
    ours = {law: float(laws.best_parameters(law, flops=CHINCHILLA_FLOPS)) for law in laws.LAWS}
    assert ours[BESIROGLU] == pytest.approx(70e9, rel=0.05)
    assert ours[HOFFMANN] == pytest.approx(40e9, rel=0.02)
    ratio = laws.best_tokens(BESIROGLU, flops=CHINCHILLA_FLOPS) / ours[BESIROGLU]
    assert 17 < ratio < 21


@pytest.mark.parametrize(("law", "exponent"), [(BESIROGLU, 0.5126), (HOFFMANN, 0.4565)])
def test_the_exponent_of_the_best_size_is_the_printed_one(law, exponent):
    """[B24, table 1]: a = beta / (alpha + beta)."""
    ten = laws.best_parameters(law, flops=1e24) / laws.best_parameters(law, flops=1e23)
    assert np.log10(ten) == pytest.approx(exponent, abs=2e-4)


def test_rounded_constants_are_another_model():
    """[H22, equation 10] prints 0.34 and 0.28: a fifth less than its own source has."""
    rounded = Law(name="", source="", e=1.69, a=406.4, b=410.7, alpha=0.34, beta=0.28)
    ratio = laws.best_parameters(rounded, flops=5.76e23) / laws.best_parameters(
        HOFFMANN, flops=5.76e23
    )
    assert ratio == pytest.approx(0.80, abs=0.01)


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("flops", [1e20, 5.76e23, 1e26])
def test_no_other_size_of_the_same_compute_has_less_loss(law, flops):
    best = float(laws.best_parameters(law, flops=flops))
    sizes = best * np.exp(np.linspace(-1, 1, 2001))
    losses = laws.loss(law, parameters=sizes, tokens=flops / 6 / sizes)
    assert sizes[np.argmin(losses)] == pytest.approx(best, rel=1e-3)
    tokens = laws.best_tokens(law, flops=flops)
    assert laws.training_flops(parameters=best, tokens=tokens) == pytest.approx(flops)


def test_more_compute_is_less_loss_down_to_the_floor():
    flops = np.logspace(18, 40, 50)
    for law in laws.LAWS:
        losses = laws.loss(
            law,
            parameters=laws.best_parameters(law, flops=flops),
            tokens=laws.best_tokens(law, flops=flops),
        )
        assert (np.diff(losses) < 0).all()
        assert law.e < losses[-1] < law.e + 0.01


def test_twenty_tokens_a_parameter_cost_the_square_of_the_size():
    one, ten = (
        laws.usd_at_tokens_per_parameter(
            parameters=n, tokens_per_parameter=20.0, flops_per_usd=5e17
        )
        for n in (7e9, 70e9)
    )
    assert ten == pytest.approx(100 * one) == pytest.approx(6 * 70e9 * 1.4e12 / 5e17)
