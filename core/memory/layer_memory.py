"""Activations that one layer and micro-batch keep, and those of all layers in flight."""

from __future__ import annotations

import numpy as np

from core.layout.layouts import CONTEXT_METHODS, Layouts
from core.layout.workload import (
    Workload,
    adapter_passes,
    all_passes,
    splits_sequence,
)
from core.machine.efficiency import Efficiency
from core.memory.activations import (
    LayerKept,
    kept_bytes,
    layer_kept,
    matmul_inputs_per_token,
)
from core.memory.routed import held_rows
from core.model.adapter_passes import frozen_inputs_per_token, kept_bytes_per_token
from core.model.transformer import attention_share, kv_size
from core.numeric import Numeric


def tokens_per_rank(work: Workload, lay: Layouts) -> Numeric:
    """Tokens of one micro-batch on one rank of a tensor-parallel group."""
    return np.multiply(lay.micro_batch_size, work.seq_len) / lay.cp


def gathered_kv_bytes(work: Workload, lay: Layouts) -> Numeric:
    """Keys and values of the whole sequence and their gradients, of the layer in backward, where
    context parallelism gathers them (Llama 3, arXiv:2407.21783, section 3.3.2)."""
    gathers = np.asarray(lay.context_method) == CONTEXT_METHODS.index("all_gather")
    one = 2.0 * tokens_per_rank(work, lay) * lay.cp * kv_size(work.model) / lay.tp
    attends = np.asarray(attention_share(work.model)) > 0
    return np.where(gathers & attends & (np.asarray(lay.cp) > 1), 2 * one, 0.0)


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
        sequence_parallel=splits_sequence(work, lay),
        recompute=lay.recompute,
        selective_kept=selective_kept(work, eff),
        copies=kept_copies(work, eff),
        kept_scores_of=np.where(work.unfused_attention, work.seq_len, 0.0),
        expert_load=rows,
        routed_copies=routed_copies,
        more=adapter_bytes(work, lay)
        + gathered_inputs_bytes(work, lay)
        - narrowed_bytes(work, lay, rows)
        - frozen_inputs_bytes(work, lay),
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
    keeps = keeps & (splits_sequence(work, lay) > 0)
    others = 1 - 1 / np.asarray(lay.tp, dtype=float)
    whole = 2 * np.multiply(work.model.norms_per_layer, work.model.hidden_size)
    return np.where(keeps, tokens_per_rank(work, lay) * whole * others, 0.0)


def narrowed_bytes(work: Workload, lay: Layouts, expert_load: Numeric) -> Numeric:
    """What one layer keeps less where trained matmuls keep their inputs in their own format: in 8
    bits, or in 4 and half a bit of scales. What attention puts out is kept in both formats."""
    bits = np.where(np.asarray(work.matmul_bits) == 4, 4.5, np.asarray(work.matmul_bits, float))
    narrow = np.asarray(work.keeps_narrow_inputs) & (bits < 16)
    narrow = narrow & ~np.asarray(work.adapters, dtype=bool)
    if not np.any(narrow):
        return 0.0
    outside, inside, attended = matmul_inputs_per_token(work.model, expert_load)
    shards = np.where(splits_sequence(work, lay) > 0, lay.tp, 1)
    less = (16 - bits) * (outside / shards + inside / lay.tp) - bits * attended / lay.tp
    return np.where(narrow, tokens_per_rank(work, lay) * less / 8, 0.0)


def adapter_bytes(work: Workload, lay: Layouts) -> Numeric:
    """What the adapters of one layer keep of one micro-batch; 0 without."""
    passes = adapter_passes(work)
    if passes is None:
        return 0.0
    return tokens_per_rank(work, lay) * kept_bytes_per_token(work.model, passes, tp=lay.tp)


def frozen_inputs_bytes(work: Workload, lay: Layouts) -> Numeric:
    """What a layer of frozen 16-bit weights need not keep of one micro-batch: inputs of its
    matmuls, and the normalised values that its norms' weights would ask for."""
    if not np.any(work.adapters):
        return 0.0
    whole, cut = frozen_inputs_per_token(work.model, all_passes(work))
    norms = np.multiply(work.model.norms_per_layer, work.model.hidden_size)
    whole = whole + np.where(work.eager_norms, norms, 0.0)
    shards = np.where(splits_sequence(work, lay) > 0, lay.tp, 1)
    held = 2 * tokens_per_rank(work, lay) * (whole / shards + cut / lay.tp)
    return np.where(np.asarray(work.adapters) & (np.asarray(work.weight_bytes) >= 2), held, 0.0)


def kept_copies(work: Workload, eff: Efficiency) -> Numeric:
    """Kept activations over the operator count: by compiler, frozen base and number format.

    What a compiler keeps of a layer with 4-bit matmuls is their inputs, in 4 bits and half a bit of
    scales (arXiv:2509.25149).
    """
    packed = np.asarray(work.weight_bytes) < 2
    base = np.where(packed, eff.quantised_kept, eff.frozen_kept)
    base = np.where(work.adapters, base, 1.0)
    counted = np.asarray(work.keeps_narrow_inputs, dtype=bool)  # by `narrowed_bytes`
    narrow = np.where((np.asarray(work.matmul_bits) == 4) & ~counted, 4.5 / 16, 1.0)
    return eff.activation_copies * np.where(work.compiled, eff.compiled_kept, 1.0) * base * narrow
