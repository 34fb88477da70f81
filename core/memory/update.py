"""Temporaries of the optimizer's step, which reuse the memory of the backward pass."""

from __future__ import annotations

import numpy as np

from core.layout.layouts import Layouts
from core.layout.optimizers import factored_held_bytes
from core.layout.sharding import column
from core.layout.workload import Workload
from core.machine.efficiency import Efficiency
from core.memory.stage_params import StageParams
from core.numeric import Bools, Numeric


def step_temporaries(work: Workload, lay: Layouts, params: StageParams, eff: Efficiency) -> Numeric:
    """fp32 copies of 16-bit gradients and the roots of second moments, as the stack makes them
    (`Efficiency.step_bytes`) or its AdamW does: none where the update is one fused kernel. Those of
    Adafactor by operators are of one tensor, the largest. Adapters are small."""
    sharded = column(lay.strategy, "shards_optimizer") > 0
    updated = params.held(sharded).all
    away = (np.asarray(work.offload_optimizer) > 0) | np.asarray(work.paged_optimizer, dtype=bool)
    held = np.maximum(eff.step_bytes, _roots_bytes(work, lay, eff)) * updated
    held = held * work.trained_fraction
    if np.any(work.factors_by_operator):
        model = work.model
        matrix = model.hidden_size * np.maximum(model.vocab_size, model.ffn_hidden_size)
        largest = matrix / lay.tp / np.where(sharded, params.dense_shards, 1.0)
        factored = factored_held_bytes(largest=largest, weight_bytes=eff.own_weight_bytes)
        factored = factored * np.where(work.adapters, 0.0, 1.0)
        held = np.where(work.factors_by_operator, factored, held)
    return np.where(away, 0.0, held)


def _roots_bytes(work: Workload, lay: Layouts, eff: Efficiency) -> Numeric:
    """Of each parameter, the root of its second moment where AdamW makes those of all tensors at
    once (pytorch/pytorch: torch/optim/adamw.py, _multi_tensor_adamw, exp_avg_sq_sqrt). Shards of
    ZeRO are updated by DeepSpeed's fused kernel."""
    torch_updates = lists_tensors(work, lay)
    follows = ~np.asarray(work.sets_state_type, dtype=bool)
    width = np.where(follows, np.minimum(np.asarray(eff.own_weight_bytes) / 4, 1.0), 1.0)
    return np.where(torch_updates, np.asarray(work.optimizer_state_bytes) / 2 * width, 0.0)


def lists_tensors(work: Workload, lay: Layouts) -> Bools:
    """Whether AdamW runs operator by operator: where PyTorch updates weights that are their own
    master copies."""
    own = column(lay.strategy, "parameter_bytes") == 4
    return np.asarray(work.lists_tensors, dtype=bool) & own
