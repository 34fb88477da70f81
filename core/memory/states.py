"""Model states on one GPU, their copies, and what is gathered of sharded ones.

[R20] Rajbhandari et al., "ZeRO", arXiv:1910.02054: model states and their sharding.
[Z23] Zhao et al., "PyTorch FSDP", arXiv:2304.11277: units that are gathered.
"""

from __future__ import annotations

import numpy as np

from core.layout.layouts import Layouts, dp
from core.layout.sharding import (
    ADAMW_STATE_BYTES,
    INDEX,
    column,
    held_gradient_bytes,
    may_sum_whole,
    whole_gradient_bytes,
)
from core.layout.workload import (
    Workload,
    more_state_bytes_of_ends,
)
from core.machine.efficiency import Efficiency
from core.memory.stage_params import StageParams
from core.numeric import Bools, Numeric

UNIT_GRADIENT_BYTES = 4.0  # of a gathered unit: what its reduction reads in fp32
SECONDARY_SHARDS = 8.0  # ranks of a node that share ZeRO++'s second partition


def state_bytes(
    work: Workload, lay: Layouts, params: StageParams, eff: Efficiency, what: str
) -> Numeric:
    """Bytes of parameters, gradients or optimizer on one GPU. [R20, figure 1]

    Where weights are their own master copy, gradients and moments are of their type: fp32, or
    16-bit in stacks that train in 16 bits alone. Less than 2 bytes of gradient are those of
    layers that are updated, and freed, during backward.
    With adapters, frozen weights keep `weight_bytes` each (16 bits at both ends of the model)
    and nothing else, but where `frozen_gradient_bytes` says so; the adapters come on top.
    """
    names = {"parameters": "parameter", "gradients": "gradient", "optimizer": "optimizer"}
    per_param = column(lay.strategy, f"{names[what]}_bytes")
    sharded = column(lay.strategy, f"shards_{what}") > 0
    of_gpu = params.held(sharded)
    held, ends = of_gpu.all, of_gpu.ends
    trained = work.trained_fraction
    own = column(lay.strategy, "parameter_bytes") == 4
    frozen: Numeric = 0.0
    if what == "parameters":
        per_param = np.where(own, eff.own_weight_bytes, per_param)
        frozen = (held - ends) * work.weight_bytes + ends * 2.0
        frozen = np.where(work.adapters, frozen, 0.0)
    if what == "gradients":
        given = np.asarray(work.gradient_bytes)
        per_param = held_gradient_bytes(strategy=lay.strategy, gradient_bytes=given)
        per_param = np.where(own, np.where(given < 2, given, eff.own_weight_bytes), per_param)
    if what == "optimizer":  # the column of the table is for AdamW: replace its moments
        follows = own & ~np.asarray(work.sets_state_type, dtype=bool)
        width = np.where(follows, np.minimum(eff.own_weight_bytes / 4, 1.0), 1.0)
        per_param = per_param - ADAMW_STATE_BYTES + work.optimizer_state_bytes * width
    total = held * trained * per_param + frozen
    if what == "gradients" and np.any(work.sums_whole_gradients):
        each = whole_gradient_bytes(
            strategy=lay.strategy, gradient_bytes=given, weight_bytes=eff.own_weight_bytes
        )
        whole = (params.dense + params.experts) * trained * each
        total = np.where(sums_whole_gradients(work, lay), whole, total)
    if what == "gradients" and np.any(work.whole_unit_gradients):
        total = total + frozen_gradient_bytes(work, lay, params, held)
    if what == "optimizer":
        total = total + ends * more_state_bytes_of_ends(work)
    if what == "optimizer":
        away = (np.asarray(work.offload_optimizer) > 0) | np.asarray(work.paged_optimizer)
        return np.where(away, 0.0, total)
    # Strategies that gather weights can fetch them from the host instead, and send the gradients
    # back.
    return np.where((np.asarray(work.offload_params) > 0) & sharded, 0.0, total)


def sums_whole_gradients(work: Workload, lay: Layouts) -> Bools:
    """Whether a stack that may do so holds whole gradients: not with one micro-batch, where no sum
    waits; in a pipeline `unsharded_bytes` has them; never of weights that wait on the host."""
    waits = (np.asarray(lay.num_microbatches) > 1) & (np.asarray(lay.pp) == 1)
    here = (np.asarray(work.offload_params) == 0) & (np.asarray(lay.offload_params) == 0)
    return np.asarray(work.sums_whole_gradients) & may_sum_whole(lay.strategy) & waits & here


def frozen_gradient_bytes(
    work: Workload, lay: Layouts, params: StageParams, held: Numeric
) -> Numeric:
    """Gradients, never filled, of frozen 16-bit weights in a flat parameter with adapters: it has
    one gradient for all of it, sharded or whole as the others are (pytorch/pytorch:
    torch/distributed/fsdp/_flat_param.py, prepare_gradient_for_backward)."""
    whole = sums_whole_gradients(work, lay)
    weights = np.where(whole, params.dense + params.experts, held)
    applies = np.asarray(work.whole_unit_gradients) & np.asarray(work.adapters)
    return np.where(applies & may_sum_whole(lay.strategy), 2.0 * weights, 0.0)


def makes_gradients_late(work: Workload, lay: Layouts) -> Bools:
    """Whether gradients only come to be in the backward pass of a step: where a stack frees them
    after each step (torch.optim.Optimizer.zero_grad, set_to_none=True), one micro-batch makes a
    step, and no bucket or flat buffer outlives it. Of sharded ones published peaks do not say so:
    with them forecasts of publications that a fit had not seen get worse."""
    strategy = np.asarray(lay.strategy)
    alone = (strategy == INDEX["ddp"]) & (np.asarray(dp(lay)) <= 1)
    once = (np.asarray(lay.num_microbatches) <= 1) & (np.asarray(lay.pp) == 1)
    return np.asarray(work.frees_gradients) & once & alone


def unsharded_bytes(lay: Layouts, params: StageParams, trained: Numeric) -> Numeric:
    """Weights gathered at one time: the largest unit with its gradients, and the next layer (FSDP1
    may prefetch two). A pipeline keeps the whole stage gathered between micro-batches, as
    torchtitan does; without resharding the weights stay from forward to backward. [Z23]"""
    whole_stage = params.dense + params.experts
    ahead = np.where(np.asarray(lay.strategy) == INDEX["fsdp1"], 2.0, 1.0)
    gradients = np.multiply(UNIT_GRADIENT_BYTES, trained)
    by_unit = params.largest_unit * (2.0 + gradients) + ahead * 2.0 * params.one_layer
    stays = whole_stage * 2.0 + params.largest_unit * gradients
    alone = np.where(np.asarray(lay.reshard) > 0, by_unit, stays)
    gathered = np.where(np.asarray(lay.pp) == 1, alone, whole_stage * (2.0 + gradients))
    return np.where(column(lay.strategy, "shards_parameters") > 0, gathered, 0.0)


def state_copies(
    lay: Layouts, params: StageParams, eff: Efficiency, *, trained: Numeric, gradients: Numeric
) -> Numeric:
    """Copies in addition to the states: ZeRO++'s second partition inside the node, the 16-bit
    weights that autocast keeps of fp32 ones, and the buckets of replicated gradients."""
    whole_stage = params.dense + params.experts
    in_node = np.minimum(params.dense_shards, np.maximum(SECONDARY_SHARDS / lay.tp, 1.0))
    secondary = column(lay.strategy, "secondary_bytes") * whole_stage / in_node
    whole = column(lay.strategy, "shards_parameters") == 0
    own = column(lay.strategy, "parameter_bytes") == 4
    cast = np.clip(np.subtract(eff.own_weight_bytes, 2.0), 0.0, 2.0) * whole_stage * trained
    replicated = (np.asarray(lay.strategy) == INDEX["ddp"]) & (np.asarray(dp(lay)) > 1)
    buckets = np.where(replicated, eff.bucket_copies * gradients, 0.0)
    return secondary + np.where(whole & own, cast, 0.0) + buckets


def communicators(lay: Layouts) -> Numeric:
    """Process groups of more than one rank, each with buffers of its own."""
    groups: Numeric = np.where(np.asarray(dp(lay)) > 1, 1.0, 0.0)
    for degree in (lay.tp, lay.pp, lay.cp, lay.ep):
        groups = groups + (np.asarray(degree) > 1)
    return groups
