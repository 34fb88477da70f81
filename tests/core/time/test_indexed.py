"""Tests of gradients of rows that are read many times by index."""

from dataclasses import replace

import numpy as np
import pytest

from core.time.indexed import bias_gradient_s
from tests.made_up.jobs import IDEAL, LLAMA_8B, MIXTRAL_8X7B, layout, workload

BIASED = replace(MIXTRAL_8X7B, linear_bias=True)
EFF = replace(IDEAL, duplicate_s=2e-6)


def seconds(model=BIASED, *, tp=1, **work):
    job = workload(model, indexes_expert_biases=True, **work)
    return float(np.asarray(bias_gradient_s(job, layout(tp=tp), EFF, tokens=4096.0)))


def test_rows_of_one_expert_are_added_one_after_the_other():
    """Two biases; of 4,096 tokens 2 x 4,096 / 8 copies for each of Mixtral's experts."""
    assert seconds(expert_imbalance=1.0) == pytest.approx(2 * 1024 * 2e-6)
    assert seconds(expert_imbalance=3.0) == pytest.approx(2 * 3072 * 2e-6)
    assert seconds(expert_imbalance=8.0) == pytest.approx(2 * 4096 * 2e-6)  # a token takes it once


def test_an_unforced_router_keeps_one_expert_busier_than_the_mean():
    assert seconds(expert_imbalance=np.nan) > seconds(expert_imbalance=1.0)


@pytest.mark.parametrize(
    "job",
    [
        {"model": MIXTRAL_8X7B},
        {"model": replace(LLAMA_8B, linear_bias=True)},
        {"adapters": True},
        {"indexes_expert_biases": False},
    ],
)
def test_nothing_is_added_where_no_bias_is_read_by_index_or_trained(job):
    job = {"indexes_expert_biases": True, "model": BIASED, **job}
    work = workload(job.pop("model"), **job)
    assert float(np.asarray(bias_gradient_s(work, layout(), EFF, tokens=4096.0))) == 0


def test_tensor_parallel_ranks_have_their_share_of_the_rows():
    assert seconds(tp=4, expert_imbalance=1.0) == pytest.approx(seconds(expert_imbalance=1.0) / 4)
