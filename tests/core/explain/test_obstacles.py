"""Why one layout cannot be used: every broken rule, and the bytes that are missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.explain.explain import columns_of, evaluate
from core.explain.obstacles import figures, obstacles, shortage
from core.layout.layouts import RULES, Choices
from core.memory.memory import peak_bytes
from tests.made_up.cases import job, layout
from tests.made_up.jobs import CLUSTER, LLAMA_8B, LLAMA_70B, MIXTRAL_8X7B, SHIPPED, workload

WORK = workload(LLAMA_8B, global_batch_size=512.0)
# Rules about names alone.
NO_FIGURES = ("offload_params", "offload_optimizer", "shard_group", "launch_file")


def broken(one, num_gpus=64, work=WORK, choices=None):
    found = obstacles(work, columns_of([one], [num_gpus]), 0, choices or Choices())
    return {o.reason: dict(o.figures) for o in found}


def test_a_legal_layout_has_no_obstacle():
    assert broken(layout()) == {}


def test_every_rule_that_weighs_numbers_tells_them():
    rows = columns_of([layout()], [64])
    assert {r for r in RULES if not figures(r, WORK, rows)} <= {*NO_FIGURES}


@pytest.mark.parametrize(
    ("changes", "reason", "weighed"),
    [
        ({"tp": 3, "dp_shard": 64 / 3}, "heads", {"tp": 3, "attention heads": 32}),
        ({"tp": 3, "dp_shard": 64 / 3}, "gpu_count", {"tp x pp x cp": 3, "GPUs": 64}),
        ({"tp": 16, "dp_shard": 4}, None, {}),
        ({"pp": 64, "dp_shard": 1, "sharding": "ddp", "num_microbatches": 512}, "layers",
         {"pp x virtual stages": 64, "layers": 32}),
        ({"cp": 32, "dp_shard": 2, "num_microbatches": 256}, None, {}),
        ({"micro_batch_size": 16, "num_microbatches": 1}, "batch",
         {"dp x micro-batch": 1024, "sequences of a global batch": 512}),
        ({"pp": 4, "dp_shard": 16, "sharding": "zero3", "num_microbatches": 32},
         "pipeline_sharding", {"pp": 4}),
        ({"ep": 8}, "no_experts", {"ep": 8, "etp": 1, "experts": 0}),
        ({"pp": 4, "dp_shard": 16, "virtual_stages": 2, "schedule": "interleaved",
          "micro_batch_size": 16, "num_microbatches": 2}, "interleaving",
         {"pp": 4, "micro-batches": 2}),
        ({"sharding": "hsdp"}, "hybrid", {"replicas": 1, "shards": 64}),
    ],
)  # fmt: skip
def test_a_broken_rule_is_told_with_what_it_weighs(changes, reason, weighed):
    found = broken(layout(**changes))
    if reason is None:
        assert found == {}
    else:
        assert found[reason] == weighed


def test_experts_are_counted():
    found = broken(layout(ep=16), work=replace(WORK, model=MIXTRAL_8X7B))
    assert found["experts"] == {"ep x etp": 16, "experts": 8, "ranks of a stage": 64}


def test_a_shortage_is_the_peak_less_what_can_be_planned_with():
    work = workload(LLAMA_70B, global_batch_size=512.0)
    eff = SHIPPED["generic"]
    rows = columns_of([layout(sharding="ddp", recompute="none"), layout()], [64, 64])
    found = evaluate(job(LLAMA_70B, seq_len=4096.0), rows)
    lacks = shortage(found, 0)
    peak = {k: v[0] for k, v in peak_bytes(work, rows, CLUSTER, eff).items()}
    assert lacks.need_bytes == pytest.approx(sum(peak.values()))
    assert lacks.over_bytes == pytest.approx(sum(peak.values()) - float(found.usable_bytes[0]))
    assert lacks.largest_part == max(peak, key=peak.get)
    assert lacks.largest_bytes == peak[lacks.largest_part]
    assert found.usable_bytes[0] == pytest.approx(CLUSTER.memory_bytes * np.exp(-0.0841621233))
    assert shortage(found, 1) is None
