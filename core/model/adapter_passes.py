"""Passes over memory that low-rank adapters make around their own small matmuls.

An adapted linear layer takes an input of `in` elements and gives `out` elements; beside the base's
matmul it runs x -> A -> B -> scale -> add. Bytes are counted operator by operator as each
implementation writes them, for one token; the rank is small, so what lies between A and B is not
counted.

fp32   PEFT where adapters are fp32 beside a 16-bit base (huggingface/peft@003369494:
       tuners/lora/layer.py, Linear.forward; since pull request 1706, 2024-05), under autocast:
       forward   input to fp32 2+4; autocast back to 16 bits 4+2; A reads 2   = 14 of each input
                 B writes 2; scale 2+2; sum 2+2+2                             = 12 of each output
       backward  A's gradient reads 2; input's gradient 2; the two casts 2+4, 4+2; added to that
                 of the base 2+2+2                                            = 22 of each input
                 scale 2+2; B's gradient reads 2; that of its input reads 2   =  8 of each output
       kept      the 16-bit copy of that input, which A's gradient reads    =  2 of each input
                 (the fp32 one goes with forward, but outside autocast, where A is fp32:
                 AgileRL/AgileRL pull request 623; LoRA of Llama 3 8B without recompute, measured
                 for docs/accuracy.md, took 0.7 of what both would)
own    adapters in the base's 16 bits, without casts (torchtune@031d89b8a: modules/peft/lora.py,
       LoRALinear.forward; NVIDIA/NeMo@0044d7785: nemo/collections/llm/peft/lora.py, LoRALinear):
       forward 2 and 12, backward 10 and 8; A's input is that of the base
packed as own, of a packed base under autocast, whose output is copied before the sum 2+2
       (huggingface/peft@0000e79db: tuners/lora/bnb.py, Linear4bit.forward): forward 2 and 16
fused  sums in place, in the epilogue of B's matmul (unslothai/unsloth@0050c73e0:
       unsloth/kernels/fast_lora.py, addmm_): forward 2 and 4 (read and write), backward 2 for A's
       gradient and 4 for the sum of each input, 4 for what two matmuls read of each output

Dropout of the input reads and writes it and a mask of a byte, in the adapter's format, forward and
backward: 9 bytes in fp32, 5 in 16 bits; what is kept then is the mask, and a 16-bit input of its
own. "joined": q, k and v are one matrix with one adapter, and so are gate and up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.model import state_space
from core.model.transformer import (
    Transformer,
    attention_output_size,
    attention_share,
    is_mla,
    kv_size,
    matrices_per_mlp,
    num_dense_mlp_layers,
    num_moe_layers,
    query_size,
)
from core.numeric import Numeric

KINDS = ("none", "fused", "own", "packed", "fp32")
_FORWARD_IN, _FORWARD_OUT = np.array([0, 2, 2, 2, 14.0]), np.array([0, 4, 12, 16, 12.0])
_BACKWARD_IN, _BACKWARD_OUT = np.array([0, 6, 10, 10, 22.0]), np.array([0, 4, 8, 8, 8.0])
_KEPT_IN = np.array([0, 0, 0, 0, 2.0])
_DROPOUT, _DROPOUT_KEPT = np.array([0, 0, 5, 5, 9.0]), np.array([0, 0, 3, 3, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterPasses:
    """How a software applies adapters. Numbers or columns."""

    kind: Numeric = 0.0  # index of KINDS
    dropout: Numeric = 0.0  # 1: of each adapter's input
    joined: Numeric = 0.0  # 1: one adapter for matrices with the same input
    on_mlp: Numeric = 1.0  # 0: attention alone is adapted
    on_output: Numeric = 1.0  # 0: nor is its output


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Elements per token of the inputs and outputs of one layer's adapted matrices, mean over
    layers: those that tensor parallelism divides, and those that every rank holds."""

    whole_in: Numeric
    cut_in: Numeric
    whole_out: Numeric
    cut_out: Numeric


def widths(model: Transformer, passes: AdapterPasses) -> Widths:
    """The adapted matrices: q, k, v and output, latent attention at its outer widths; and those of
    MLPs, of the experts that a token goes to, and of state-space and linear-attention layers."""
    h = np.asarray(model.hidden_size, dtype=float)
    attention = attention_share(model)
    queries = query_size(model) * np.where(model.attention_gate, 2.0, 1.0)
    inputs = np.where(passes.joined, 1.0, np.where(is_mla(model), 2.0, 3.0))
    gates = matrices_per_mlp(model) - 1
    dense, experts, inner = _mlps(model)
    mlps = (dense + experts) * passes.on_mlp
    whole_in = attention * inputs * h + mlps * np.where(passes.joined, 1.0, gates) * h
    cut_in = attention * attention_output_size(model) * passes.on_output + passes.on_mlp * inner
    cut_out = attention * (queries + kv_size(model)) + passes.on_mlp * gates * inner
    for n, k, share in state_space.matmuls(model, tp=1.0):
        cut_in = cut_in + passes.on_mlp * share * np.asarray(k)
        cut_out = cut_out + passes.on_mlp * share * np.asarray(n)
    whole_out = (attention * passes.on_output + mlps) * h
    return Widths(whole_in=whole_in, cut_in=cut_in, whole_out=whole_out, cut_out=cut_out)


def _mlps(model: Transformer) -> tuple[Numeric, Numeric, Numeric]:
    """Dense MLPs and experts that a token goes to, mean over layers, and their inner elements."""
    layers = np.maximum(model.num_layers, 1.0)
    dense = num_dense_mlp_layers(model) / layers
    experts = np.add(model.experts_per_token, model.num_shared_experts)
    experts = experts * num_moe_layers(model) / layers
    return dense, experts, dense * model.ffn_hidden_size + experts * model.moe_ffn_hidden_size


def moved_bytes_per_token(
    model: Transformer, passes: AdapterPasses, *, tp: Numeric
) -> tuple[Numeric, Numeric]:
    """Bytes per layer and token that adapters move forward and backward."""
    w = widths(model, passes)
    of_in, of_out = w.whole_in + w.cut_in / tp, w.whole_out + w.cut_out / tp
    kind = np.asarray(passes.kind, dtype=int)
    dropped = _DROPOUT[kind] * passes.dropout
    return (
        (_FORWARD_IN[kind] + dropped) * of_in + _FORWARD_OUT[kind] * of_out,
        (_BACKWARD_IN[kind] + dropped) * of_in + _BACKWARD_OUT[kind] * of_out,
    )


def kept_bytes_per_token(model: Transformer, passes: AdapterPasses, *, tp: Numeric) -> Numeric:
    """Bytes per layer and token that adapters keep for backward beside what the base keeps."""
    w = widths(model, passes)
    kind = np.asarray(passes.kind, dtype=int)
    return (_KEPT_IN[kind] + _DROPOUT_KEPT[kind] * passes.dropout) * (w.whole_in + w.cut_in / tp)


def frozen_inputs_per_token(model: Transformer, passes: AdapterPasses) -> tuple[Numeric, Numeric]:
    """16-bit elements per layer and token that trained matmuls keep and frozen ones do not, whole
    and cut by tensor parallelism: outputs of norms and activated values, but for those that
    adapters keep as their own input. What attention put out stays for attention itself."""
    h, layers = np.asarray(model.hidden_size, dtype=float), np.maximum(model.num_layers, 1.0)
    blocks = num_dense_mlp_layers(model) / layers + num_moe_layers(model) / layers
    inner = _mlps(model)[2]
    copied = _KEPT_IN[np.asarray(passes.kind, dtype=int)] > 0
    of_mlp = np.where(copied, 1.0, 1 - np.asarray(passes.on_mlp))
    return (
        h * (np.where(copied, attention_share(model), 0.0) + of_mlp * blocks),
        of_mlp * inner,
    )
