"""Peak memory of the fullest GPU, by part.

[R20] Rajbhandari et al., "ZeRO", arXiv:1910.02054: model states and their sharding.
[K23] Korthikanti et al., arXiv:2205.05198: activations in flight in a pipeline.

The first pipeline stage holds the embedding and the most micro-batches in flight, the last
one the LM head and the logits; the fuller of the two is reported. Where layers do not divide, both
are taken with the layers of the fullest stage, which is at most a tenth more than the worst stage
holds: 61 layers of DeepSeek-V3 on 16 stages 104 GiB for 95, Llama 405B 45 for 42.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.layout.layouts import CONTEXT_METHODS, Layouts, dp
from core.layout.pipeline import microbatches_in_flight, microbatches_on_last_stage
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
    adapter_passes,
    layers_of_fullest_stage,
    more_state_bytes_of_ends,
)
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.activations import LayerKept, kept_bytes, layer_kept
from core.memory.reserve import reserve_of
from core.memory.routed import held_rows
from core.memory.stage_params import StageParams, stage_params
from core.memory.update import step_temporaries
from core.model.adapter_passes import kept_bytes_per_token
from core.model.transformer import attention_share, kv_size
from core.numeric import Bools, Numeric

CHUNK_OF_LOGITS = 1 / 8  # pieces into which a chunked loss divides the sequence
UNIT_GRADIENT_BYTES = 4.0  # of a gathered unit: what its reduction reads in fp32
SECONDARY_SHARDS = 8.0  # ranks of a node that share ZeRO++'s second partition
PARTS = (
    "parameters", "gradients", "optimizer", "activations", "logits", "buffers", "reserve",
)  # fmt: skip


COUNTERS = ("allocated", "reserved", "device")  # of a peak, in the order of their bytes


def tokens_per_rank(work: Workload, lay: Layouts) -> Numeric:
    """Tokens of one micro-batch on one rank of a tensor-parallel group."""
    return np.multiply(lay.micro_batch_size, work.seq_len) / lay.cp


def state_bytes(
    work: Workload, lay: Layouts, params: StageParams, eff: Efficiency, what: str
) -> Numeric:
    """Bytes of parameters, gradients or optimizer on one GPU. [R20, figure 1]

    Where weights are their own master copy, gradients and moments are of their type: fp32, or
    16-bit in stacks that train in 16 bits alone. Less than 2 bytes of gradient are those of
    layers that are updated, and freed, during backward.
    With adapters, frozen weights keep `weight_bytes` each (16 bits at both ends of the model)
    and nothing else; the adapters come on top.
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


def gathered_kv_bytes(work: Workload, lay: Layouts) -> Numeric:
    """Keys and values of the whole sequence and their gradients, of the layer in backward, where
    context parallelism gathers them (Llama 3, arXiv:2407.21783, section 3.3.2)."""
    gathers = np.asarray(lay.context_method) == CONTEXT_METHODS.index("all_gather")
    one = 2.0 * tokens_per_rank(work, lay) * lay.cp * kv_size(work.model) / lay.tp
    attends = np.asarray(attention_share(work.model)) > 0
    return np.where(gathers & attends & (np.asarray(lay.cp) > 1), 2 * one, 0.0)


def stage_bytes(
    work: Workload,
    lay: Layouts,
    eff: Efficiency,
    *,
    first: bool,
    layer: LayerKept | None = None,
) -> dict[str, Numeric]:
    """Bytes by part of the first or the last pipeline stage; `layer`, if known, saves a
    computation."""
    layer = one_layer(work, lay, eff) if layer is None else layer
    params = stage_params(work, lay, first=first)
    alone = np.asarray(lay.pp) == 1
    flight, layers = in_flight(work, lay, first=first)
    kept = kept_of_layers(work, lay, layer, flight * layers)
    logits = np.where(alone if first else True, logits_bytes(work, lay, eff), 0.0)
    again = layer.whole - layer.kept  # of the one layer in backward, computed again
    working = 0.5 * layer.whole + gathered_kv_bytes(work, lay)  # its gradients
    # The loss is done when the backward pass of the last layer begins, which reuses its memory: the
    # larger of the two counts.
    for_again = np.minimum(again, logits)
    for_working = np.minimum(working, logits - for_again)
    activations = kept + again - for_again
    buffers = working - for_working + unsharded_bytes(lay, params, work.trained_fraction)
    live = activations + logits + buffers
    gradients = state_bytes(work, lay, params, eff, "gradients")
    copies = state_copies(lay, params, eff, trained=work.trained_fraction, gradients=gradients)
    # Temporaries of the optimizer step reuse the memory of the backward pass.
    temporaries = step_temporaries(work, lay, params, eff)
    step = np.maximum(temporaries - live, 0.0)
    # Gradients that grow while activations shrink: the fullest moment is the loss, the end of
    # backward or the step.
    of_layer = kept_of_layers(work, lay, layer, np.minimum(1.0, flight * layers))
    end = of_layer + again + working + unsharded_bytes(lay, params, work.trained_fraction)
    fullest = np.maximum(live, gradients + np.maximum(np.minimum(end, live), temporaries))
    late = np.where(makes_gradients_late(work, lay), gradients + live + step - fullest, 0.0)
    return {
        "parameters": state_bytes(work, lay, params, eff, "parameters"),
        "gradients": gradients - late,
        "optimizer": state_bytes(work, lay, params, eff, "optimizer"),
        "activations": activations,
        "logits": logits,
        "buffers": buffers + copies + step + communicators(lay) * eff.communicator_bytes,
    }


def in_flight(work: Workload, lay: Layouts, *, first: bool) -> tuple[Numeric, Numeric]:
    """Micro-batches whose activations the first or the last stage holds at its peak, and the
    layers of the largest stage (core/layout/pipeline.py)."""
    held = microbatches_in_flight if first else microbatches_on_last_stage
    flight = held(
        pp=lay.pp,
        virtual_stages=lay.virtual_stages,
        num_microbatches=np.maximum(lay.num_microbatches, 1.0),
        schedule=lay.schedule,
    )
    return flight, layers_of_fullest_stage(work, pp=lay.pp)


def kept_of_layers(work: Workload, lay: Layouts, layer: LayerKept, layers: Numeric) -> Numeric:
    """Activations that the layers and micro-batches in flight keep for backward."""
    return kept_bytes(
        layer,
        recompute=lay.recompute,
        layers_in_flight=layers,
        offloaded=work.offloads_activations,
    )


def one_layer(work: Workload, lay: Layouts, eff: Efficiency) -> LayerKept:
    """Activations of one layer and one micro-batch."""
    rows, routed_copies = held_rows(work, lay, eff)
    return layer_kept(
        work.model,
        tokens=tokens_per_rank(work, lay),
        tp=lay.tp,
        sequence_parallel=lay.sequence_parallel,
        recompute=lay.recompute,
        selective_kept=selective_kept(work, eff),
        copies=kept_copies(work, eff),
        kept_scores_of=np.where(work.unfused_attention, work.seq_len, 0.0),
        expert_load=rows,
        routed_copies=routed_copies,
        of_adapters=adapter_bytes(work, lay) + gathered_inputs_bytes(work, lay),
        recomputed_layers=work.recomputed_layers,
    )


def selective_kept(work: Workload, eff: Efficiency) -> Numeric:
    """Share of a layer's activations, without its input, that selective recompute keeps: as its
    policy says, else as the stack."""
    said = np.asarray(work.kept_by_policy)
    return np.where(np.isnan(said), eff.selective_kept, said)


def gathered_inputs_bytes(work: Workload, lay: Layouts) -> Numeric:
    """Outputs of the norms of one layer that each rank of a tensor-parallel group keeps whole, over
    its share of them: sequence parallelism gathers them for the matmuls, and not once more for
    their gradients. Fused with the matmul, the gather leaves no whole tensor behind."""
    keeps = np.asarray(work.keeps_gathered_inputs) & ~np.asarray(work.async_tp, dtype=bool)
    keeps = keeps & (np.asarray(lay.sequence_parallel) > 0)
    others = 1 - 1 / np.asarray(lay.tp, dtype=float)
    whole = 2 * np.multiply(work.model.norms_per_layer, work.model.hidden_size)
    return np.where(keeps, tokens_per_rank(work, lay) * whole * others, 0.0)


def adapter_bytes(work: Workload, lay: Layouts) -> Numeric:
    """What the adapters of one layer keep of one micro-batch; 0 without."""
    passes = adapter_passes(work)
    if passes is None:
        return 0.0
    return tokens_per_rank(work, lay) * kept_bytes_per_token(work.model, passes, tp=lay.tp)


def kept_copies(work: Workload, eff: Efficiency) -> Numeric:
    """Kept activations over the operator count: by compiler, frozen base and number format.

    4-bit matmuls keep their inputs in 4 bits and half a bit of scales (arXiv:2509.25149).
    """
    packed = np.asarray(work.weight_bytes) < 2
    base = np.where(packed, eff.quantised_kept, eff.frozen_kept)
    base = np.where(work.adapters, base, 1.0)
    narrow = np.where(np.asarray(work.matmul_bits) == 4, 4.5 / 16, 1.0)
    return eff.activation_copies * np.where(work.compiled, eff.compiled_kept, 1.0) * base * narrow


def logits_bytes(work: Workload, lay: Layouts, eff: Efficiency) -> Numeric:
    """Logits of one micro-batch, their copies and gradient, divided by tensor parallelism."""
    own = np.asarray(work.logit_bytes)
    per_logit = np.where(np.isnan(own), eff.held_logits_bytes, own)
    per_logit = per_logit * np.where(work.compiled_loss, eff.compiled_logits, 1.0)
    tokens = tokens_per_rank(work, lay)
    pieces = np.where(work.chunked_loss, chunk_of_logits(work, tokens), 1.0)
    parts = np.where(work.whole_logits, 1.0, lay.tp)
    return per_logit * pieces * np.multiply(tokens, work.model.vocab_size) / parts


def chunk_of_logits(work: Workload, tokens: Numeric) -> Numeric:
    """Share of the logits that exists at one time in a loss in pieces: of `loss_chunk_tokens`
    tokens, or as many pieces as the vocabulary is wider than the model (linkedin/Liger-Kernel:
    src/liger_kernel/ops/fused_linear_cross_entropy.py, inc_factor), else an eighth."""
    each = np.asarray(work.loss_chunk_tokens) / np.maximum(tokens, 1.0)
    share = np.where(np.isnan(each), CHUNK_OF_LOGITS, np.minimum(each, 1.0))
    pieces = np.ceil(np.divide(work.model.vocab_size, work.model.hidden_size))
    return np.where(work.loss_chunk_by_width, 1 / np.maximum(pieces, 1.0), share)


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


def live_bytes(work: Workload, lay: Layouts, eff: Efficiency) -> dict[str, Numeric]:
    """Bytes by part of the fuller end of the pipeline, without `reserve`, which depends on the
    device."""
    layer = one_layer(work, lay, eff)
    ends = [stage_bytes(work, lay, eff, first=first, layer=layer) for first in (True, False)]
    totals = [sum(np.asarray(v, dtype=float) for v in e.values()) for e in ends]
    fuller = np.asarray(totals[0]) >= np.asarray(totals[1])
    return {k: np.where(fuller, ends[0][k], ends[1][k]) for k in ends[0]}


def settled_bytes(lay: Layouts, eff: Efficiency, parts: Mapping[str, Numeric]) -> Numeric:
    """Bytes that are allocated once and never move, so that the allocator wastes nothing on them:
    weights, optimizer states, the flat gradients of ZeRO-1 (Megatron-LM,
    megatron/core/distributed/param_and_grad_buffer.py), and buffers of communicators, which are
    not the allocator's. Of the parts `parts`; a packed base is unpacked anew for each matmul."""
    flat = np.where(np.asarray(lay.strategy) == INDEX["zero1"], parts["gradients"], 0.0)
    buffers = communicators(lay) * eff.communicator_bytes
    return np.asarray(parts["parameters"]) + parts["optimizer"] + flat + buffers


def unwasted_bytes(lay: Layouts, eff: Efficiency, parts: Mapping[str, Numeric]) -> Numeric:
    """Bytes by which live memory may be taken as smaller, so that `reserve_bytes` of it leaves
    `settled_bytes` out and the sum of both stays the same."""
    share = eff.fragmentation / (1 + np.asarray(eff.fragmentation))
    return settled_bytes(lay, eff, parts) * share


def unreported_bytes(
    lay: Layouts, cluster: Cluster, eff: Efficiency, *, reserve: Numeric
) -> Numeric:
    """Memory that is missing from the peak that a stack prints: the counters of the allocator
    include neither the context nor the buffers of communicators, and those of allocated bytes not
    what the allocator keeps in reserve either. `reserve`: that part of the peak."""
    context = reserve_of(cluster, eff, live=0.0)
    buffers = communicators(lay) * eff.communicator_bytes
    hidden = (1 - np.asarray(eff.reserve_reported)) * (context + buffers)
    return hidden + (1 - np.asarray(eff.fragmentation_reported)) * (np.asarray(reserve) - context)


def counted_bytes(
    lay: Layouts, cluster: Cluster, eff: Efficiency, *, peak: Numeric, reserve: Numeric
) -> dict[str, Numeric]:
    """The peak as three counters read it: bytes that tensors hold (max_memory_allocated of
    PyTorch), those that its allocator holds (max_memory_reserved), and those of the device, context
    and communicators included (nvidia-smi), which decide whether it runs out. `reserve`: that part
    of the peak."""
    found: dict[str, Numeric] = {"device": peak}
    for name, spare in (("allocated", 0.0), ("reserved", 1.0)):
        counter = replace(eff, reserve_reported=0.0, fragmentation_reported=spare)
        found[name] = peak - unreported_bytes(lay, cluster, counter, reserve=reserve)
    return {name: found[name] for name in COUNTERS}


def peak_bytes(
    work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency
) -> dict[str, NDArray[np.float64]]:
    """Peak bytes by part (`PARTS`), columns of one length."""
    parts = live_bytes(work, lay, eff)
    live: Numeric = sum(np.asarray(v, dtype=float) for v in parts.values())
    live = live - settled_bytes(lay, eff, parts)
    parts["reserve"] = reserve_of(cluster, eff, live=live)
    shape = np.broadcast(*parts.values()).shape
    return {k: np.broadcast_to(v, shape).astype(float) for k, v in parts.items()}
