"""What waits on the host: its bytes are those that the device no longer holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.layout.workload import CPU, NVME
from core.memory.memory import live_bytes
from core.memory.offload import LEVELS, host_bytes, least_host_s, work_on
from core.model.transformer import total_params
from core.time.step import step
from tests.made_up.jobs import CLUSTER, IDEAL, LLAMA_8B, jobs, layout, workload

PARAMS = float(total_params(LLAMA_8B))


@pytest.mark.parametrize(
    ("strategy", "level", "bytes_per_param"),
    [
        ("zero1", LEVELS[1], 12),  # arXiv:2101.06840, section 4.1: master weights and two moments
        ("zero3", LEVELS[1], 12),
        ("zero3", LEVELS[2], 16),  # 16-bit weights and gradients follow
        ("fsdp2", LEVELS[2], 16),  # fp32 weights, gradients and moments
        ("zero3", LEVELS[0], 0),
    ],
)
def test_eight_gpus_share_what_waits_on_their_host(strategy, level, bytes_per_param):
    lay = layout(strategy=strategy, offload_optimizer=level[0], offload_params=level[1])
    found = host_bytes(workload(), lay, IDEAL)
    assert float(found) == pytest.approx(bytes_per_param * PARAMS / 8)


@given(job=jobs(), level=st.sampled_from(LEVELS))
def test_what_the_device_loses_the_host_has(job, level):
    work, lay, _, eff = job
    here = replace(work, offload_optimizer=0.0, offload_params=0.0, paged_optimizer=False)
    lay = replace(lay, pp=np.float64(1), virtual_stages=np.float64(1))  # one end, so one sum
    away = replace(lay, offload_optimizer=level[0], offload_params=level[1])
    states = ("parameters", "gradients", "optimizer")
    before, after = live_bytes(here, lay, eff), live_bytes(work_on(here, away), away, eff)
    lost = sum(float(before[p]) - float(after[p]) for p in states)
    if level[1] and not lost:  # a strategy that does not fetch weights keeps them
        return
    assert float(host_bytes(here, away, eff)) >= lost * (1 - 1e-12)


def test_a_workload_keeps_what_it_says_itself():
    work = workload(offload_optimizer=NVME)
    assert work_on(work, layout()) is work
    both = work_on(work, layout(offload_optimizer=CPU, offload_params=CPU))
    assert (float(both.offload_optimizer), float(both.offload_params)) == (NVME, CPU)


def test_the_host_s_update_is_part_of_the_step():
    work, lay = workload(), layout(strategy="zero3", offload_optimizer=CPU)
    update = float(least_host_s(work, lay, IDEAL))
    took = step(work_on(work, lay), lay, CLUSTER, IDEAL)
    assert 0 < update <= float(took.parts["optimizer"])
    assert float(least_host_s(work, layout(strategy="zero3"), IDEAL)) == 0


def test_the_host_updates_less_where_all_is_in_16_bits():
    """18 bytes a parameter with two 16-bit moments, 38 in fp32 (core/layout/optimizers.py). Never
    more than the step takes, or a search would leave out layouts that are faster."""
    lay = layout(strategy="fsdp2", offload_optimizer=CPU)
    work = workload(optimizer_state_bytes=4.0, sets_state_type=True)
    eff = replace(IDEAL, own_weight_bytes=2.0)
    update = float(least_host_s(work, lay, eff))
    assert update == pytest.approx(float(least_host_s(workload(), lay, IDEAL)) * 18 / 38)
    took = step(work_on(work, lay), lay, CLUSTER, eff)
    assert update <= float(took.parts["optimizer"]) * (1 + 1e-12)


def test_of_a_pipeline_the_fuller_end_counts():
    """The first stage with a large table of positions, the last with a second copy of a tied
    head: 12 bytes for each parameter of theirs over the ranks that share them."""
    h, layers = 4096.0, 32.0
    sizes = {}
    for name, more in (
        ("positions", {"num_positions": 1e6, "tied_embeddings": False}),
        ("tied", {"num_positions": 0.0, "tied_embeddings": True}),
    ):
        model = replace(LLAMA_8B, **more)
        lay = layout(strategy="zero1", pp=2.0, dp_shard=4.0, offload_optimizer=CPU)
        sizes[name] = float(host_bytes(workload(model=model), lay, IDEAL)) / 12 * 4
    per_stage = (PARAMS - 2 * 128256 * h - h) / 2  # layers, without embedding, head, final norm
    assert per_stage * 2 / layers == pytest.approx(218_112_000, rel=1e-6)
    assert sizes["positions"] == pytest.approx(per_stage + (128256 + 1e6) * h)
    assert sizes["tied"] == pytest.approx(per_stage + 128256 * h + h)
