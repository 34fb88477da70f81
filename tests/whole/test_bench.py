"""`make bench` times what a forecast is: alone and in a batch the same figures come out."""

import numpy as np
import pytest

from core.scenario import Scenario
from tests.bench import estimate as bench


@pytest.mark.parametrize("model", ["llama3.1-70b", "deepseek-v3"])
def test_a_layout_alone_and_in_the_batch_has_one_estimate(model):
    case = bench.case(model, rows=2_000)
    speed, memory = case.estimate(case.layouts)
    assert speed.shape == memory.shape == (2_000,)
    assert np.all(speed > 0)
    assert np.all(memory > 2**30)
    for row in (0, 777, 1_999):
        alone = case.estimate(bench.one(case.layouts, row))
        assert float(alone[0]) == pytest.approx(float(speed[row]))
        assert float(alone[1]) == pytest.approx(float(memory[row]))


def test_the_batch_is_of_different_legal_layouts():
    case = bench.case(rows=5_000)
    columns = (case.layouts.tp, case.layouts.pp, case.layouts.num_gpus, case.layouts.strategy,
               case.layouts.micro_batch_size, case.layouts.recompute)  # fmt: skip
    assert len(set(zip(*map(np.ndarray.tolist, columns), strict=True))) > 500


def test_medians_are_of_the_repetitions_after_the_first():
    ticks = iter([0.0, 9.0, 10.0, 11.0, 20.0, 23.0, 30.0, 32.0])
    found = bench.medians(lambda: None, repeats=3, clock=lambda: next(ticks))
    assert found == (9.0, 2.0)


def test_every_search_that_is_timed_finds_plans_and_has_a_target():
    for given, target in bench.SEARCHES.values():
        scenario = Scenario.parse(given)
        assert len(scenario.num_gpus) >= 5
        assert 0 < target <= 5
    smallest = {**bench.SEARCHES["llama3.1-70b, 8 to 1,024 GPUs"][0], "num_gpus": "64"}
    found = bench.answer(bench.resolve_strict(Scenario.parse(smallest)))
    assert found.num_plans
    assert found.counts.evaluated > 0


def test_the_peak_memory_is_that_of_a_process_that_searches():
    mib = bench.peak_mib({"model": "llama3.1-8b", "gpu": "H100-80GB-SXM", "num_gpus": "8"})
    assert 50 < mib < bench.MOST_MIB
