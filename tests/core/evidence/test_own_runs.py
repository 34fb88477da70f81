"""A measurement moves a forecast as far as it says something about it, and narrows it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ScenarioError
from core.evidence.measured_runs import SCALES, Traits
from core.evidence.own_runs import LEAST_LEFT, OwnRuns, check_measured, said_by_own
from hardware.residuals.table import residuals

ratios = st.floats(-1.2, 1.2).filter(lambda r: abs(r) > 0.01)


def traits(number=1, accelerator="H100", stack="titan", **apart):
    """Equal runs, some of whose traits are apart by a number of their scales."""
    words = {"family": "torch", "number_format": "fp8", "task": "pretrain"}
    row = [3.0 + apart.get(name, 0.0) * scale for name, scale in SCALES.items()]
    return Traits(
        **{k: np.full(number, v) for k, v in words.items()},
        accelerator=np.full(number, accelerator),
        stack=np.full(number, stack),
        experts=np.zeros(number, bool),
        numbers=np.tile(np.array(row), (number, 1)),
    )


def measured(*log_left, open_layout=False, publication="", of=None):
    n = len(log_left)
    return OwnRuns(
        run_id=np.array([f"run {i}" for i in range(n)]),
        publication=np.full(n, publication),
        traits=traits(n) if of is None else of,
        log_left=np.array(log_left),
        open_layout=np.full(n, open_layout),
    )


def said(runs, of=None, **whose):
    whose = {k: np.array([v]) for k, v in whose.items()}
    shift, left = said_by_own(of or traits(), runs, **whose)
    return float(shift[0]), float(left[0])


@given(ratios)
def test_the_measured_configuration_itself_is_forecast_as_measured(log_left):
    shift, left = said(measured(log_left))
    assert shift == pytest.approx(log_left, rel=0.05)
    assert left == LEAST_LEFT


@given(ratios)
def test_the_less_alike_the_less_it_moves(log_left):
    nearer_first = [
        said(measured(log_left)),
        said(measured(log_left), traits(num_gpus=2.0)),
        said(measured(log_left, open_layout=True)),
        said(measured(log_left), traits(tp=0.35)),
        said(measured(log_left), traits(accelerator="B200", tp=0.35)),
        said(measured(log_left), traits(micro_batch_tokens=1.0)),
        said(measured(log_left), traits(stack="other")),
    ]
    moved = [shift / log_left for shift, _ in nearer_first]
    assert moved == sorted(moved, reverse=True)
    assert len(set(moved)) == len(moved)
    assert all(0 <= share < 1 for share in moved)
    left = [remains for _, remains in nearer_first]
    assert left == sorted(left)
    assert (moved[-1], left[-1]) == (0.0, 1.0)


def test_several_runs_say_more_than_one_and_their_mean_is_what_counts():
    one, two = said(measured(0.3, open_layout=True)), said(measured(0.3, 0.3, open_layout=True))
    assert two[0] > one[0] + 0.02
    assert two[1] < one[1]
    assert said(measured(0.3, -0.3))[0] == pytest.approx(0.0, abs=1e-6)


def test_a_run_says_nothing_about_itself_nor_about_another_user():
    mine = measured(0.3, publication="p")
    assert said(mine, publication="p")[0] == said(mine)[0] > 0.2
    assert said(mine, publication="q") == said(mine, run_id="run 0") == (0.0, 1.0)
    assert said(measured(), None) == (0.0, 1.0)


def test_columns_are_the_rows_one_by_one():
    runs = measured(0.3, -0.1, of=traits().joined(traits(tp=0.5)))
    rows = [traits(tp=0.2), traits(accelerator="B200"), traits(stack="other")]
    together = said_by_own(rows[0].joined(rows[1]).joined(rows[2]), runs)
    for n, of in enumerate(rows):
        assert (float(together[0][n]), float(together[1][n])) == said(runs, of)


def test_on_published_runs_each_further_run_of_a_machine_brings_the_forecast_nearer():
    """The errors of the model at the shipped runs, each publication as if one user had run it."""
    runs = residuals()
    t = runs.traits
    names = zip(runs.publication, t.stack, t.accelerator, t.number_format, t.task, strict=True)
    _, machine = np.unique(["|".join(n) for n in names], return_inverse=True)
    rng = np.random.default_rng(0)
    error = {few: [] for few in (0, 1, 2, 4)}
    for row in rng.permutation(len(runs)):
        others = np.flatnonzero((machine == machine[row]) & (np.arange(len(runs)) != row))
        if len(others) < 4:
            continue
        chosen = rng.permutation(others)
        of = t.take(np.array([row]))
        for few, errors in error.items():
            some = runs.take(chosen[:few])
            own = measured(*some.log_ratio, of=some.traits)
            errors.append(abs(runs.log_ratio[row] - said(own, of)[0]))
    mean = [float(np.mean(errors)) for errors in error.values()]
    assert len(error[0]) > 500
    assert mean == sorted(mean, reverse=True)
    assert mean[1] < 0.95 * mean[0]
    assert mean[3] < 0.82 * mean[0]


def test_a_speed_beyond_the_fastest_peak_is_refused():
    """Llama 3.1 8B needs about 52 GFLOPs a token: fp8 on an H100 allows 38,000 tokens/s."""
    given = {"flops_per_token": 52e9, "fastest_flops_per_s": 1979e12}
    check_measured(tokens_per_s_per_gpu=15_000, **given)
    with pytest.raises(ScenarioError, match=r"anchor_tokens_per_s_per_gpu=800,000 is 21 times"):
        check_measured(tokens_per_s_per_gpu=800_000, **given)
