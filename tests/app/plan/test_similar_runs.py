"""The published runs beside a plan are those that moved its forecast, with their weights."""

from dataclasses import replace
from math import exp, log1p

import numpy as np
import pytest

from app.forecast.answer import answer
from app.forecast.nearby.moved import Moved
from app.plan import similar_runs as similar
from core.evidence.measured_runs import MeasuredRuns
from core.evidence.residual import DECIMALS, learned
from core.scenario import Scenario
from hardware.residuals.table import residuals

JOBS = {
    "dense": {"model": "llama3.1-8b", "num_gpus": "64", "gpu": "H100-80GB-SXM"},
    "experts": {"model": "mixtral-8x7b", "num_gpus": "64", "gpu": "H100-80GB-SXM"},
    "adapters": {"model": "llama3.1-8b", "task": "lora", "num_gpus": "8", "gpu": "H100-80GB-SXM"},
}


@pytest.fixture(scope="module", params=JOBS)
def plans(request):
    return answer(Scenario.parse(JOBS[request.param]), top=3).plans


def test_weights_times_residuals_are_the_correction(plans):
    for plan in plans:
        total = sum(run.weight * run.residual for run in plan.nearby.runs)
        assert plan.nearby.runs
        assert abs(round(total, DECIMALS) - log1p(plan.nearby.moved_by_runs)) < 1e-9


def test_the_largest_weight_comes_first(plans):
    for plan in plans:
        weights = [abs(run.weight) for run in similar.similar_runs(plan)]
        assert weights == sorted(weights, reverse=True)


def test_a_run_shows_its_measurement_and_its_forecast(plans):
    for run, shown in zip(plans[0].nearby.runs, similar.similar_runs(plans[0]), strict=True):
        assert (shown.run_id, shown.weight) == (run.run_id, run.weight)
        assert shown.measured > 0
        assert shown.ratio == pytest.approx(exp(run.log_ratio))
        assert shown.source


def test_the_table_counts_the_runs_that_it_leaves_out(plans):
    runs = similar.similar_runs(plans[0])
    assert len(similar.table(runs).rows) == similar.RUNS_SHOWN < len(runs)
    assert f"{len(runs) - similar.RUNS_SHOWN} more runs" in similar.sentence(plans[0], runs)


def test_a_plan_without_similar_runs_says_so(plans):
    alone = replace(plans[0], nearby=None)
    assert similar.similar_runs(alone) == ()
    assert similar.sentence(alone, ()) == "No published run moved this forecast."


def test_a_calibrated_machine_is_moved_by_no_run():
    runs: MeasuredRuns = residuals()
    of = runs.traits.take(np.array([0]))
    said = learned(of, runs)
    own = Moved(of=of, said=said, shift=np.zeros(1), variance_left=np.ones(1))
    assert own.of_row(0, shift=0.0, variance_left=1.0).runs == ()


@pytest.mark.parametrize(
    ("source", "address"),
    [
        (
            "mosaicml/llm-foundry@8c8dd48f scripts",
            "https://github.com/mosaicml/llm-foundry/tree/8c8dd48f",
        ),
        ("marin-community/marin pull request 7981", "https://github.com/marin-community/marin"),
        ("LongLoRA (arXiv 2309.12307) Table 12", "https://arxiv.org/abs/2309.12307"),
        ("Runcast, runs of its own (docs/accuracy.md)", ""),
        ("javascript:alert(1)/x) [a](b)", ""),
    ],
)
def test_a_source_becomes_the_address_that_it_names(source, address):
    assert similar.address(source) == address
