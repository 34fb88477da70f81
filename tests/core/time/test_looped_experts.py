"""Experts that the host launches one after another, and experts that run on every token."""

from dataclasses import replace

import numpy as np
import pytest

from core.layout.sharding import INDEX
from core.layout.workload import expert_load
from core.time import kernels
from core.time.layer import layer_seconds
from core.time.step import step
from tests.made_up.jobs import CLUSTER, IDEAL, LLAMA_8B, MIXTRAL_8X7B, layout, workload

TAKES_ONE = replace(MIXTRAL_8X7B, experts_per_token=1)
# Only launches take time: 1 ms of them for the forward pass of a dense layer.
HOST_BOUND = replace(IDEAL, host_s=1e-3, expert_host_s=0.0, zero3_host_s=0.0, queue=64.0)


def overhead_s(model=MIXTRAL_8X7B, eff=HOST_BOUND, lay=None, **work):
    job = workload(model, seq_len=1, **work)
    parts = step(job, lay or layout(recompute=0), CLUSTER, eff).parts
    return float(np.sum(parts["overhead"]))


def test_a_loop_launches_twelve_kernels_for_each_expert_of_a_rank():
    """A dense layer launches 20, each three times a step."""
    more = overhead_s(loops_experts=True) - overhead_s()
    assert more == pytest.approx(3 * 32 * 1e-3 * 8 * 12 / 20, rel=1e-3)
    assert float(kernels.looped_launches(MIXTRAL_8X7B, ep=4)) == pytest.approx(2 * 12 / 20)


def test_a_model_without_experts_loops_over_nothing():
    assert overhead_s(LLAMA_8B, loops_experts=True) == overhead_s(LLAMA_8B)


def test_hooks_of_zero3_run_for_each_expert_of_a_loop():
    """Three matrices an expert, beside nine modules of a layer."""
    eff = replace(HOST_BOUND, host_s=0.0, zero3_host_s=1e-3)
    lay = layout(recompute=0, strategy=INDEX["zero3"])
    hooks = overhead_s(eff=eff, lay=lay)
    assert overhead_s(eff=eff, lay=lay, loops_experts=True) == pytest.approx(
        hooks * (1 + 8 * 3 / 9), rel=1e-3
    )


def test_experts_that_all_run_multiply_every_token_where_it_takes_one():
    one = layer_seconds(workload(TAKES_ONE), layout(), CLUSTER, IDEAL)
    every = layer_seconds(workload(TAKES_ONE, runs_every_expert=True), layout(), CLUSTER, IDEAL)
    assert np.max(every.experts_forward / one.experts_forward) == pytest.approx(8)
    assert np.all(every.matmul_forward == one.matmul_forward)


def test_a_model_whose_tokens_take_several_experts_runs_no_others():
    work = workload(MIXTRAL_8X7B, runs_every_expert=True, expert_imbalance=1.0)
    assert np.all(expert_load(work, ep=1) == 1)
    columns = replace(work, model=replace(MIXTRAL_8X7B, experts_per_token=np.array([1, 2])))
    assert expert_load(columns, ep=1).tolist() == [8, 1]
