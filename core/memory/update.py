"""Temporaries of the optimizer's step, which reuse the memory of the backward pass."""

from __future__ import annotations

import numpy as np

from core.layout.layouts import Layouts
from core.layout.optimizers import factored_held_bytes
from core.layout.sharding import column
from core.layout.workload import Workload
from core.machine.efficiency import Efficiency
from core.memory.stage_params import StageParams
from core.numeric import Numeric


def step_temporaries(work: Workload, lay: Layouts, params: StageParams, eff: Efficiency) -> Numeric:
    """fp32 copies of 16-bit gradients and the roots of second moments, as the stack makes them
    (`Efficiency.step_bytes`): none where the update is one fused kernel. Those of Adafactor by
    operators are of one tensor, the largest. Adapters are small."""
    sharded = column(lay.strategy, "shards_optimizer") > 0
    updated = params.dense / np.where(sharded, params.dense_shards, 1.0)
    updated = updated + params.experts / np.where(sharded, params.expert_shards, 1.0)
    away = (np.asarray(work.offload_optimizer) > 0) | np.asarray(work.paged_optimizer, dtype=bool)
    held = eff.step_bytes * updated * work.trained_fraction
    if np.any(work.factors_by_operator):
        model = work.model
        matrix = model.hidden_size * np.maximum(model.vocab_size, model.ffn_hidden_size)
        largest = matrix / lay.tp / np.where(sharded, params.dense_shards, 1.0)
        factored = factored_held_bytes(largest=largest, weight_bytes=eff.own_weight_bytes)
        factored = factored * np.where(work.adapters, 0.0, 1.0)
        held = np.where(work.factors_by_operator, factored, held)
    return np.where(away, 0.0, held)
