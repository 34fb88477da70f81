"""Workload of a job, as columns: model, batch, number formats, and what the host keeps."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

from core.layout.layouts import Layouts
from core.layout.pipeline import (
    layers_less_on_last_stage,
    layers_of_first_stage_by_cost,
    layers_of_largest_stage,
)
from core.layout.routing import MAX_VIO, natural_load, worst_load
from core.model.adapter_passes import AdapterPasses
from core.model.transformer import Transformer
from core.numeric import Bools, Numeric, kept_for_last

NOWHERE, CPU, NVME = 0.0, 1.0, 2.0  # where states may be offloaded to
# Of the tokens of a tensor-parallel group each rank routes its share; all where experts are
# divided, too; or all always.
SHARE, ALL_IF_DIVIDED, ALL = 0.0, 1.0, 2.0
OFFLOAD = {"none": NOWHERE, "cpu": CPU, "nvme": NVME}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One training job before it is laid out. Each field a number or a column."""

    model: Transformer
    seq_len: Numeric
    global_batch_size: Numeric  # sequences per optimizer step
    matmul_bits: Numeric = 16.0
    quantised_bytes: Numeric = 0.0  # per matmul input element, core/layout/precision.py
    quantised_weight_bytes: Numeric = 0.0  # and per weight and pass, where each pass scales it anew
    # Mean length of packed documents that attention keeps apart; NaN: it covers the sequence
    document_tokens: Numeric = nan
    # Optimizer (core/layout/optimizers.py) and where its states live
    optimizer_state_bytes: Numeric = 8.0
    ends_state_bytes: Numeric = nan  # of embeddings and LM head; NaN: equal to the others
    sets_state_type: Bools = False  # its moments keep their bytes, whatever the weights' type
    orthogonalises: Bools = False
    lists_tensors: Bools = False  # AdamW operator by operator of all tensors, not one fused kernel
    factors_by_operator: Bools = False  # Adafactor without a compiler, one tensor after the other
    gradient_bytes: Numeric = nan  # held per parameter; NaN: the default of the sharding strategy
    offload_optimizer: Numeric = NOWHERE
    paged_optimizer: Bools = False  # states wait on the host and are updated on the device
    offload_params: Numeric = NOWHERE
    offloads_activations: Numeric = 0.0  # share of kept activations that waits on the host
    recomputed_layers: Numeric = 1.0  # share of the layers that full recompute is of
    # What selective recompute repeats where a policy says it: the share of a layer's matmuls
    # (NaN: as the stack), and whether the attention core. Operators bound by memory are.
    repeated_matmuls: Numeric = nan
    repeats_core: Bools = True
    # Share of a layer's activations, without its input, that the policy keeps; NaN: as the stack
    kept_by_policy: Numeric = nan
    # Adapters (core/model/adapters.py)
    adapters: Bools = False  # the base is frozen
    trained_fraction: Numeric = 1.0  # trained parameters over those of the model
    weight_bytes: Numeric = 2.0  # of a frozen weight: 2, or about 0.5 quantised
    # Their passes over memory (core/model/adapter_passes.py)
    adapter_kind: Numeric = 0.0  # index of KINDS
    adapter_dropout: Bools = False
    joined_adapters: Bools = False
    adapters_on_mlp: Bools = True
    adapters_on_output: Bools = True  # of attention
    # Kernels
    unfused_attention: Bools = False  # the score matrix is written out: before FlashAttention
    # Heads that a fused kernel takes are multiples of it on a TPU; others run block by block
    fused_heads_of: Numeric = 1.0
    flash2: Bools = False  # FlashAttention 2 where a newer kernel exists
    compiled: Bools = False  # elementwise operators fused by a compiler
    eager_norms: Bools = False  # norms and rotation run operator by operator
    fuses_gradient_sums: Bools = True  # matmuls add to the sum of micro-batches themselves
    fp32_norms: Bools = False  # norms read an fp32 copy; without recompute they run again, too
    compiled_loss: Bools = False  # the loss, too
    whole_logits: Bools = False  # every tensor-parallel rank holds the whole vocabulary
    logit_bytes: Numeric = nan  # held per logit by its software; NaN: as its stack (efficiency)
    loss_bytes: Numeric = nan  # that a plain loss moves per logit; NaN: as one of few kernels
    cuda_graphs: Numeric = 0.0  # 1: the whole step is one graph; between: parts of it are
    chunked_loss: Bools = False  # logits exist in pieces only
    loss_chunk_tokens: Numeric = nan  # tokens of a piece; NaN: an eighth of the sequence
    loss_chunk_by_width: Bools = False  # pieces whose logits take as much as the hidden states
    # Tensor-wise fp8: sharded weights, and inputs across tensor parallelism, are gathered in 8 bits
    gathers_in_8_bits: Bools = False
    sequence_parallel: Bools = True  # beside tensor parallelism (arXiv:2205.05198)
    async_tp: Bools = True  # tensor-parallel communication overlapped with its matmuls
    stages_by_cost: Bools = False  # layers are dealt by their matrices, with those of the LM head
    splits_projections: Bools = False  # queries, keys, values, gate: each sums its input's gradient
    keeps_narrow_inputs: Bools = False  # of matmuls, in their own 8 or 4 bits
    keeps_gathered_inputs: Bools = False  # of tensor-parallel matmuls, from forward to backward
    overlaps_gradients: Bools = True  # their reduction runs during backward
    reduces_as_held: Bools = False  # DDP of 16-bit weights: in the type of gradient_bytes
    all_reduces_gradients: Bools = False  # ZeRO-1: summed whole on every rank, not scattered
    sums_whole_gradients: Bools = False  # of FSDP: reduced once, after the last micro-batch
    whole_unit_gradients: Bools = False  # of FSDP units that hold frozen weights beside adapters
    frees_gradients: Bools = False  # after each step: none exists when the next loss is computed
    overlaps_weights: Bools = True  # sharded ones are gathered ahead of their layer
    gathers_by_matrix: Bools = False  # one matrix at a time, not a layer
    broadcasts_weights: Bools = False  # ZeRO-1: updated ones are sent by one owner after the other
    reduces_to_owners: Bools = False  # ZeRO-2: gradients, too, one tensor after the other
    software_year: Numeric = 2026.5  # decimal year of the stack's release
    host_slowdown: Numeric = 1.0  # time of kernel launches over the usual
    overlaps_experts: Bools = False  # their all-to-all runs beside computation
    deduplicates: Bools = True  # a token crosses the network once per node, not once per expert
    # Whether each rank of a tensor-parallel group routes all tokens of the group, not its share
    routes_group: Numeric = SHARE
    permutes_by_kernel: Bools = False  # tokens of experts: one kernel for each permutation
    splits_expert_biases: Bools = False  # added to the rows of one expert after the other
    indexes_expert_biases: Bools = False  # a row for each copy of a token, whose gradients add up
    loops_experts: Bools = False  # the host launches one expert's kernels after another's
    runs_every_expert: Bools = False  # on all tokens, where a token takes one expert
    routes_by_masks: Bools = False  # padded experts: matmuls with one-hot masks move the tokens
    worst_buffers: Bools = False  # experts that drop nothing have room for all that may ever come
    # Experts: rows they are padded to over the mean (0: not padded), and the busiest rank's (NaN:
    # as a router leaves them that nothing forces)
    capacity_factor: Numeric = 0.0
    expert_imbalance: Numeric = 1.0
    router_max_vio: Numeric = MAX_VIO  # of such a router: core/layout/routing.py


def splits_sequence(work: Workload, lay: Layouts) -> Numeric:
    """Return 1 where ranks of tensor parallelism share the tokens outside of matmuls, else 0."""
    return np.where(work.sequence_parallel, lay.sequence_parallel, 0.0)


def layers_of_fullest_stage(work: Workload, *, pp: Numeric) -> Numeric:
    """Layers of the pipeline stage that has most, as the software deals them."""
    model = work.model
    evenly = layers_of_largest_stage(num_layers=model.num_layers, pp=pp)
    if not np.any(work.stages_by_cost):
        return evenly
    by_cost = layers_of_first_stage_by_cost(
        num_layers=model.num_layers, pp=pp, head_layers=_head_in_layers(model)
    )
    return np.where(work.stages_by_cost, by_cost, evenly)


def layers_fewer_on_last_stage(work: Workload, *, pp: Numeric) -> Numeric:
    """Layers that the last stage, which runs the LM head, has fewer than the fullest."""
    evenly = layers_less_on_last_stage(num_layers=work.model.num_layers, pp=pp)
    if not np.any(work.stages_by_cost):
        return evenly
    head = _head_in_layers(work.model)
    left = np.maximum(np.add(work.model.num_layers, head) / pp - head, 0.0)
    return np.where(work.stages_by_cost, layers_of_fullest_stage(work, pp=pp) - left, evenly)


def _head_in_layers(model: Transformer) -> Numeric:
    """Matrices of the LM head over those of a layer as nanotron counts them: as if no queries
    shared keys and every MLP had a gate."""
    attention = 4 * np.multiply(model.num_attention_heads, model.head_dim)
    return np.divide(model.vocab_size, attention + 3 * np.asarray(model.ffn_hidden_size))


def adapter_passes(work: Workload) -> AdapterPasses | None:
    """How adapters are applied; None where no job has any whose passes are known."""
    return all_passes(work) if np.any(work.adapter_kind) else None


def all_passes(work: Workload) -> AdapterPasses:
    """How adapters are applied, and to what, of every job."""
    return AdapterPasses(
        kind=work.adapter_kind,
        dropout=np.asarray(work.adapter_dropout, dtype=float),
        joined=np.asarray(work.joined_adapters, dtype=float),
        on_mlp=np.asarray(work.adapters_on_mlp, dtype=float),
        on_output=np.asarray(work.adapters_on_output, dtype=float),
    )


def more_state_bytes_of_ends(work: Workload) -> Numeric:
    """Optimizer bytes of a parameter of embedding or LM head over those of other parameters.
    Adapters train neither of them."""
    more = np.subtract(work.ends_state_bytes, work.optimizer_state_bytes)
    return np.where(np.isnan(more) | work.adapters, 0.0, more)


@kept_for_last
def expert_load(work: Workload, *, ep: Numeric) -> Numeric:
    """Rows of the busiest rank's experts over the mean. A rank that holds them all only sees
    their sum, so imbalance counts with expert parallelism only.

    Llama 4 of transformers multiplies every token by every expert and adds zeros
    (huggingface/transformers@000c33fd: src/transformers/models/llama4/modeling_llama4.py)."""
    spread = np.asarray(work.expert_imbalance)
    if np.any(np.isnan(spread)):
        natural = natural_load(
            num_experts=work.model.num_experts,
            experts_per_token=work.model.experts_per_token,
            ep=ep,
            max_vio=work.router_max_vio,
        )
        spread = np.where(np.isnan(spread), natural, spread)
    spread = np.where(np.asarray(ep) > 1, spread, 1.0)
    load = np.where(np.asarray(work.capacity_factor) > 0, work.capacity_factor, spread)
    if not np.any(work.runs_every_expert):
        return load
    takes_one = np.asarray(work.model.experts_per_token) == 1
    return np.where(takes_one & work.runs_every_expert, work.model.num_experts, load)


def buffered_load(work: Workload, *, ep: Numeric) -> Numeric:
    """Rows of a rank's expert buffers over the mean: those that come, or all that ever may."""
    load = expert_load(work, ep=ep)
    if not np.any(work.worst_buffers):
        return load
    worst = worst_load(
        num_experts=work.model.num_experts, experts_per_token=work.model.experts_per_token, ep=ep
    )
    dropless = np.asarray(work.worst_buffers) & (np.asarray(work.capacity_factor) <= 0)
    return np.where(dropless, np.maximum(worst, load), load)


@kept_for_last
def group_routing(work: Workload, *, tp: Numeric, etp: Numeric) -> tuple[Numeric, Numeric]:
    """How many ranks of a tensor-parallel group route one token of it, one or all `tp`; and how
    often experts compute it for that: as often, unless these ranks divide the experts.

    torchtitan replicates what goes to divided experts (`ALL_IF_DIVIDED`; pytorch/torchtitan to
    2026-04: torchtitan/models/llama4/infra/parallelize.py, apply_moe_ep_tp, "input Replicate,
    output Partial"); Halo shares no tokens out (`ALL`; whitecircle/halo:
    agent-docs/optimization/halo-vs-stock-trl.md, "TP shards attention, not expert tokens").
    """
    kind, divided = np.asarray(work.routes_group), np.asarray(etp) > 1
    ranks = np.where((kind == ALL) | ((kind == ALL_IF_DIVIDED) & divided), tp, 1.0)
    return ranks, np.where(divided, 1.0, ranks)


def sums_routed_gradients(work: Workload, *, etp: Numeric) -> Bools:
    """Whether ranks that divide experts sum the gradients of what went to them once for every copy
    of a token (pytorch/torchtitan until 2026-04: torchtitan/distributed/expert_parallel.py,
    ExpertTensorParallel._token_dispatch, grad_placements Partial)."""
    return (np.asarray(work.routes_group) == ALL_IF_DIVIDED) & (np.asarray(etp) > 1)
