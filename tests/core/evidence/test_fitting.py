"""The fitting engine on rows that were made with known parameters."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.evidence.fitting import NOISE, Priors, fit, fit_widths, huber_weight
from core.numeric import Z_90

TRUE = np.array([0.7, 0.3, 0.5])
VAGUE = Priors(
    value=np.array([0.5, 0.5, 0.3]), sigma=np.array([1.0, 1.0, 1.0]), low=np.full(3, 0.01),
    high=np.full(3, 2.0),
)  # fmt: skip
NUM_SOURCES = 12


def rows(seed, n=240):
    """Work of three kinds, each done at a rate of its own; in most rows one kind dominates."""
    return 10 ** np.random.default_rng(seed).uniform(-1.5, 0.5, (n, 3))


def model_of(work):
    """The logarithm of the seconds of all three together."""

    def model(trials):
        return np.log((work[None] / trials[:, None, :]).sum(axis=2))

    return model


def made_up(seed, *, noise=0.03, effects=0.0, outliers=0.0, n=240):
    """(model, measured, source): noise, an effect of each source, some rows twice as slow."""
    rng = np.random.default_rng(seed + 1000)
    work, source = rows(seed, n), np.arange(n) % NUM_SOURCES
    measured = model_of(work)(TRUE[None])[0] + rng.normal(0, noise, n)
    measured = measured + rng.normal(0, effects, NUM_SOURCES)[source] if effects else measured
    bad = rng.random(n) < outliers
    return model_of(work), measured + np.where(bad, np.log(2.0), 0.0), source


def fitted(model, measured, source, priors=VAGUE, weight=None, **how):
    weight = np.ones(len(measured)) if weight is None else weight
    return fit(model, measured=measured, weight=weight, source=source, priors=priors, **how)


def least_squares(model, measured):
    """The same minimum of plain squares, by brute repetition; no outlier is forgiven."""
    value = VAGUE.value.copy()
    for _ in range(60):
        base = model(value[None])[0]
        jacobian = np.stack(
            [(model((value + 1e-6 * e)[None])[0] - base) / 1e-6 for e in np.eye(3)], axis=1
        )
        value = value + 0.5 * np.linalg.lstsq(jacobian, measured - base, rcond=None)[0]
        value = np.clip(value, VAGUE.low, VAGUE.high)
    return value


@pytest.mark.parametrize("seed", range(5))
def test_known_parameters_are_found_again(seed):
    found = fitted(*made_up(seed))
    assert found.value == pytest.approx(TRUE, rel=0.03)
    assert np.all(found.sigma > 0)
    assert np.all(found.sigma < VAGUE.sigma / 10)


def test_rows_without_noise_give_the_parameters_themselves():
    found = fitted(*made_up(3, noise=0.0), tolerance=1e-9)
    # Priors and source effects pull a little, by their weight against 240 rows of 6%.
    assert found.value == pytest.approx(TRUE, rel=0.005)


@pytest.mark.parametrize("seed", range(5))
def test_one_row_in_ten_that_is_twice_as_slow_hardly_moves_them(seed):
    model, measured, source = made_up(seed, outliers=0.1)
    robust = np.abs(fitted(model, measured, source).value / TRUE - 1)
    plain = np.abs(least_squares(model, measured) / TRUE - 1)
    assert robust.max() < 0.06
    assert robust.mean() < 0.5 * plain.mean()


@pytest.mark.parametrize("seed", range(5))
def test_what_one_large_source_measures_differently_stays_with_it(seed):
    """It holds six rows of ten and reads 10% slow: counted like the others it would be right."""
    model, measured, source = made_up(seed)
    source = np.where(np.arange(len(source)) % 10 < 6, 0, source)
    biased = measured + 0.1 * (source == 0)
    apart = np.abs(fitted(model, biased, source).value / TRUE - 1).mean()
    alike = np.abs(fitted(model, biased, np.zeros_like(source)).value / TRUE - 1).mean()
    assert alike > 0.05
    assert apart < 0.5 * alike


@pytest.mark.parametrize("seed", range(3))
def test_a_source_of_which_less_is_believed_pulls_more(seed):
    """A narrow width of effects leaves no room for what the large source reads differently."""
    model, measured, source = made_up(seed)
    source = np.where(np.arange(len(source)) % 10 < 6, 0, source)
    biased = measured + 0.1 * (source == 0)
    off = [
        np.abs(
            fitted(model, biased, source, replace(VAGUE, source_sigma=s)).value / TRUE - 1
        ).mean()
        for s in (0.001, 0.03, 0.3)
    ]
    assert off[0] > 1.5 * off[1] > off[2]


def test_many_sources_with_effects_are_averaged():
    found = fitted(*made_up(7, effects=VAGUE.source_sigma))
    assert found.value == pytest.approx(TRUE, rel=0.06)


@pytest.mark.parametrize("seed", range(3))
def test_no_value_leaves_its_bounds_and_the_others_adapt(seed):
    model, measured, source = made_up(seed)
    tight = replace(VAGUE, low=np.array([0.01, 0.4, 0.01]), high=np.array([0.6, 2.0, 2.0]))
    found = fitted(model, measured, source, tight)
    assert np.all((found.value >= tight.low) & (found.value <= tight.high))
    assert found.value[1] == 0.4  # on the bound nearest to the truth
    assert found.value[0] != VAGUE.value[0]
    assert tight.low[2] < found.value[2] < tight.high[2]


def test_a_prior_outside_its_bounds_starts_on_them():
    model, measured, source = made_up(0)
    outside = replace(VAGUE, value=np.array([5.0, 0.5, 0.3]))
    assert np.all(fitted(model, measured, source, outside, max_iterations=1).value <= VAGUE.high)


def test_a_parameter_that_no_row_speaks_of_stays_at_its_prior():
    work = rows(0)
    work[:, 2] = 0.0
    measured = model_of(work)(TRUE[None])[0]
    found = fitted(model_of(work), measured, np.arange(len(measured)) % NUM_SOURCES)
    assert found.value[2] == pytest.approx(VAGUE.value[2], rel=1e-6)
    assert found.sigma[2] == pytest.approx(VAGUE.sigma[2], rel=1e-6)
    assert found.value[:2] == pytest.approx(TRUE[:2], rel=0.01)


def test_a_firm_prior_outweighs_few_rows_and_many_rows_outweigh_a_loose_one():
    model, measured, source = made_up(0)
    firm = replace(VAGUE, sigma=np.full(3, 1e-4))
    assert fitted(model, measured, source, firm).value == pytest.approx(VAGUE.value, rel=0.02)
    moved = [
        np.abs(fitted(model, measured, source, replace(VAGUE, sigma=np.full(3, s))).value - TRUE)
        for s in (0.01, 0.1, 1.0)
    ]
    assert moved[0].sum() > moved[1].sum() > 0.9 * moved[2].sum()


def test_without_a_single_row_the_priors_are_the_answer():
    model, measured, source = made_up(0)
    found = fitted(model, measured, source, weight=np.zeros(len(measured)))
    assert found.value.tolist() == VAGUE.value.tolist()
    assert found.sigma == pytest.approx(VAGUE.sigma)


@settings(max_examples=15)
@given(seed=st.integers(0, 2**16), share=st.floats(0.05, 0.9))
def test_a_row_of_weight_0_cannot_change_the_result(seed, share):
    """Whatever was measured there: this is what makes a fold blind."""
    model, measured, source = made_up(1)
    rng = np.random.default_rng(seed)
    left_out = rng.random(len(measured)) < share
    weight = np.where(left_out, 0.0, 1.0)
    scrambled = np.where(left_out, rng.normal(0, 5, len(measured)), measured)
    here, there = (fitted(model, m, source, weight=weight) for m in (measured, scrambled))
    assert here.value.tolist() == there.value.tolist()
    assert here.sigma.tolist() == there.sigma.tolist()
    # And it does count where it has a weight.
    assert fitted(model, scrambled, source).value.tolist() != here.value.tolist()


def test_a_row_of_weight_2_is_two_rows():
    model, measured, source = made_up(2, n=60)
    work = rows(2, 60)
    twice = fitted(model_of(np.concatenate([work, work])), np.tile(measured, 2), np.tile(source, 2))
    assert fitted(model, measured, source, weight=np.full(60, 2.0)).value == pytest.approx(
        twice.value, rel=1e-9
    )


def test_the_same_rows_give_the_same_bits():
    first, second = (fitted(*made_up(5, outliers=0.05, effects=0.03)) for _ in range(2))
    assert first.value.tolist() == second.value.tolist()
    assert (first.objective, first.iterations) == (second.objective, second.iterations)


def test_the_order_of_rows_and_the_names_of_sources_do_not_matter():
    model, measured, source = made_up(4, outliers=0.05, effects=0.03)
    order = np.random.default_rng(0).permutation(len(measured))
    shuffled = fitted(model_of(rows(4)[order]), measured[order], (NUM_SOURCES - 1 - source)[order])
    assert shuffled.value == pytest.approx(fitted(model, measured, source).value, rel=1e-6)


def test_no_iteration_worsens_the_objective():
    model, measured, source = made_up(6, outliers=0.1, effects=0.05)
    scores = [
        fitted(model, measured, source, max_iterations=i, tolerance=0.0).objective
        for i in range(1, 8)
    ]
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(scores))
    assert scores[-1] < scores[0]


def test_the_posterior_width_is_that_of_refits():
    """Against the scatter of fits of 60 draws that are as noisy as the engine believes."""
    draws = [fitted(*made_up(s, noise=NOISE, effects=VAGUE.source_sigma)) for s in range(60)]
    scatter = np.std([d.value for d in draws], axis=0)
    assert np.mean([d.sigma for d in draws], axis=0) == pytest.approx(scatter, rel=0.35)


@given(residual=st.floats(-3, 3))
def test_a_residual_counts_fully_up_to_the_noise_and_then_by_its_inverse(residual):
    got = float(huber_weight(np.array([residual]))[0])
    assert 0 < got <= 1
    assert got * max(abs(residual), NOISE) == pytest.approx(NOISE)


class TestWidths:
    """Widths of made-up residuals: every row has noise, some have more for a named reason."""

    N = 4000

    def made_up(self, seed, widths):
        rng = np.random.default_rng(seed)
        terms = np.stack([np.ones(self.N), rng.random(self.N) < 0.4, rng.random(self.N) < 0.3], 1)
        sigma = np.sqrt((terms**2) @ np.square(widths))
        return rng.normal(0, 1, self.N) * sigma, terms.astype(float), sigma

    def widths(self, residual, terms, weight=None, low=0.0, high=1.0):
        k = terms.shape[1]
        weight = np.ones(len(residual)) if weight is None else weight
        found, skew = fit_widths(
            residual, terms, weight, low=np.full(k, low), high=np.full(k, high)
        )
        assert skew == 0
        return found

    @pytest.mark.parametrize("seed", range(3))
    def test_widths_are_found_again_and_cover_80_percent_of_every_class(self, seed):
        true = np.array([0.08, 0.15, 0.3])
        residual, terms, _ = self.made_up(seed, true)
        found = self.widths(residual, terms)
        assert found == pytest.approx(true, rel=0.15)
        inside = np.abs(residual) <= Z_90 * np.sqrt((terms**2) @ found**2)
        assert inside.mean() == pytest.approx(0.8, abs=0.02)
        for name in range(1, 3):
            for on in (0, 1):
                assert inside[terms[:, name] == on].mean() == pytest.approx(0.8, abs=0.04)

    def test_heavy_tails_do_not_inflate_the_interval(self):
        rng = np.random.default_rng(5)
        residual = 0.1 * rng.standard_t(2.5, self.N)
        terms = np.ones((self.N, 1))
        (found,) = self.widths(residual, terms)
        assert (np.abs(residual) <= Z_90 * found).mean() == pytest.approx(0.8, abs=0.05)
        assert found < residual.std()

    def test_a_cause_that_widens_nothing_gets_next_to_nothing(self):
        residual, terms, _ = self.made_up(1, np.array([0.1, 0.0, 0.3]))
        assert self.widths(residual, terms)[1] < 0.05

    def test_a_skew_is_found_again_and_balances_the_tails(self):
        residual, terms, _ = self.made_up(4, np.array([0.1, 0.15, 0.2]))
        residual = np.where(residual < 0, 1.3 * residual, 0.7 * residual)
        bounds = {"low": np.zeros(3), "high": np.ones(3)}
        widths, skew = fit_widths(residual, terms, np.ones(self.N), **bounds, most_skew=0.6)
        assert skew == pytest.approx(0.3, abs=0.04)
        assert widths == pytest.approx([0.1, 0.15, 0.2], rel=0.15)
        reach = Z_90 * np.sqrt((terms**2) @ widths**2)
        assert np.mean(residual < -reach * (1 + skew)) == pytest.approx(0.1, abs=0.02)
        assert np.mean(residual > reach * (1 - skew)) == pytest.approx(0.1, abs=0.02)
        _, least = fit_widths(-residual, terms, np.ones(self.N), **bounds, most_skew=0.6)
        assert least == 0  # only towards slower

    def test_widths_stay_within_their_bounds(self):
        residual, terms, _ = self.made_up(2, np.array([0.1, 0.2, 0.3]))
        found = self.widths(residual, terms, low=0.05, high=0.15)
        assert np.all((found >= 0.05) & (found <= 0.15))
        assert found[2] == pytest.approx(0.15)

    def test_a_row_of_weight_0_has_no_say(self):
        residual, terms, _ = self.made_up(3, np.array([0.1, 0.2, 0.3]))
        weight = (np.arange(self.N) % 3 > 0).astype(float)
        scrambled = np.where(weight == 0, 50.0, residual)
        here = self.widths(residual, terms, weight)
        assert self.widths(scrambled, terms, weight).tolist() == here.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_parameters_that_move_no_row_together_share_a_trial_and_give_the_same_fit(seed):
    """Two families, each with a rate of its own beside the common one: two trials, not three."""
    work, source = rows(seed)[:, :2], np.arange(240) % NUM_SOURCES
    second = np.arange(240) % 2 == 1

    def model(trials):
        rate = np.where(second, trials[:, 2:], trials[:, 1:2])
        counted.append(len(trials))
        return np.log(work[:, 0] / trials[:, :1] + work[:, 1] / rate)

    counted = []
    measured = model(TRUE[None])[0] + np.random.default_rng(seed).normal(0, 0.03, 240)
    alone = fitted(model, measured, source)
    one_by_one, counted = sum(counted), []
    acts_on = np.array([np.ones(240, dtype=bool), ~second, second])
    found = fitted(model, measured, source, acts_on=acts_on)
    assert found.value.tolist() == alone.value.tolist()
    assert found.sigma.tolist() == alone.sigma.tolist()
    assert sum(counted) == one_by_one - 1 - found.iterations  # it saves a trial of each step
