"""Measured runs move the forecasts that are like them, and no others."""

import numpy as np

from core.evidence.measured_runs import SCALES, MeasuredRuns, Traits
from core.evidence.residual import DECIMALS, learned, sentence, weighted_runs


def traits(stacks, accelerator="H100", apart=0.0):
    n = len(stacks)
    numbers = np.tile(np.array(list(SCALES.values())), (n, 1))
    numbers[:, 0] *= 1 + apart
    word = {"family": "torch", "accelerator": accelerator, "number_format": "fp8", "task": "sft"}
    columns = {name: np.full(n, text) for name, text in word.items()}
    return Traits(**columns, stack=np.array(stacks), experts=np.zeros(n, bool), numbers=numbers)


def runs(log_ratio, publication="", own=False, stack="titan", apart=0.0):
    n = len(log_ratio)
    return MeasuredRuns(
        run_id=np.array([f"run {i}" for i in range(n)]),
        traits=traits([stack] * n, apart=apart),
        publication=np.full(n, publication),
        log_ratio=np.array(log_ratio),
        own=np.full(n, own),
    )


def shift(target, of, **whose):
    return float(learned(target, of, **{k: np.array([v]) for k, v in whose.items()}).shift[0])


def test_runs_move_what_is_like_them_and_nothing_else():
    four = runs([0.1] * 4, publication="p")
    same, strange = shift(traits(["titan"]), four), shift(traits(["other"], "TPU", 9.0), four)
    away = shift(traits(["titan"], apart=1.5), four)
    assert 0.06 < same < 0.1
    assert 0 < away < same
    assert strange == 0
    left = learned(traits(["titan", "other"], apart=0.0), four).variance_left
    assert left[0] < 0.5 < left[1]


def test_a_run_moves_no_forecast_of_itself():
    one = runs([0.3])
    assert shift(traits(["titan"]), one, run_id="another") > 0.1
    assert shift(traits(["titan"]), one, run_id="run 0") == 0


def test_own_runs_count_as_published_for_others_only():
    target = traits(["titan"])
    own = runs([0.2], publication="p", own=True)
    published = shift(target, runs([0.2], publication="p"), publication="q")
    assert shift(target, own, publication="q") == published > 0
    assert shift(target, own, publication="p") == shift(target, own) == 0
    wrong = shift(target, runs([0.9]))
    assert wrong < 0.4  # a published row may be wrong


def test_many_alike_runs_of_one_publication_count_less_than_of_several():
    many = runs([0.1] * 4, publication="p")
    several = MeasuredRuns(
        **{n: getattr(many, n) for n in ("run_id", "traits", "log_ratio", "own")},
        publication=np.array(["p", "q", "r", "s"]),
    )
    assert shift(traits(["titan"]), several) > shift(traits(["titan"]), many) + 0.005


def test_the_sentence_names_what_moved_it():
    four = runs([0.1] * 4, publication="p")
    found = learned(traits(["titan"]), four)
    assert sentence(found, four, 0).startswith("Moved +7% by 4 measured runs of titan on H100;")


def test_weights_times_residuals_are_the_shift():
    several = runs([0.1, -0.2, 0.9, 0.05], publication="p", apart=0.3)
    target = traits(["titan"])
    said = learned(target, several)
    found = weighted_runs(said, target, several, 0)
    total = sum(run.weight * run.residual for run in found)
    assert abs(round(total, DECIMALS) - said.shift[0]) < 1e-9
    assert {run.run_id for run in found} == set(several.run_id)
    assert max(run.residual for run in found) == 0.4 < max(run.log_ratio for run in found)
    assert min(run.distance for run in found) == said.distance[0]


def test_a_forecast_that_is_not_moved_has_no_runs():
    target, four = traits(["other"], "TPU", 9.0), runs([0.1] * 4, publication="p")
    assert weighted_runs(learned(target, four), target, four, 0) == ()
