"""Memory traffic of operators that are bound by memory bandwidth.

Bytes are counted operator by operator, unfused, 16 bits an element; `Efficiency.elementwise` is the
share of that count that the fused kernels of a stack still move.
"""

from __future__ import annotations

import numpy as np

from core.model import state_space
from core.model.transformer import (
    Transformer,
    attention_output_size,
    attention_share,
    is_moe,
    kv_size,
    num_dense_mlp_layers,
    num_moe_layers,
    query_size,
)
from core.numeric import Numeric, kept_for_last

BACKWARD_BYTES = 2.0  # backward reads the saved input and the gradient, writes a gradient
A100_BYTES_PER_S = 2.039e12 / 108  # of memory, for each multiprocessor of an A100-80GB
# Unfused attention writes and reads the 16-bit score matrix between its kernels: scores out;
# scale, mask and softmax as one (arXiv:2104.04473, section 4.2), in and out; weights in. Dropout
# (6 bytes more) is left out: published runs are forecast better without it.
SCORE_MATRIX_BYTES = 2.0 * 4
# Tokens of a block where attention runs block by block in plain JAX
# (stanford-crfm/levanter@9263f81e: src/levanter/models/flash_attention.py, BLOCK_SIZE).
ATTENTION_BLOCK = 1024.0
# The bias of an expert's second matrix, where it is added to one expert's rows after another's:
# an outer product in fp32, the sum, a join of the experts and a cast move 28 bytes forward and 36
# backward (NVIDIA/Megatron-LM@d98e8a64d: megatron/core/transformer/moe/experts.py, _apply_bias).
EXPERT_BIAS_BYTES = (28.0 + 36.0) / (1 + BACKWARD_BYTES)
# Kernels that permute tokens move each copy four times forward and four times backward, read and
# written: into the order of experts, into that of this rank's, and back (NVIDIA/Megatron-LM:
# megatron/core/transformer/moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher; moe_utils.py,
# permute and sort_chunks_by_idxs with fused=True). `permuted_bytes_per_token` counts two, backward
# the double of forward.
KERNEL_PERMUTATION = (4 + 4) / (2 * (1 + BACKWARD_BYTES))
# A norm and a rotation of which each operator is a kernel of its own
# (huggingface/transformers@002272831: models/llama/modeling_llama.py, LlamaRMSNorm and
# apply_rotary_pos_emb), bytes of each element forward and backward, less those of one kernel:
# norm      to fp32 2+4, square 4+4, mean 4, times 4+4, to 16 bits 4+2, weight 2+2, less 4;
#           weight 2+2, cast 2+4, times 4+4, of the root 8+4+4, of the square 4+4+4+4, sum 8+4,
#           to 16 bits 4+2, less 8
# rotation  cosine 2+2, half negated 1+1, joined 2+2, sine 2+2, sum 4+2, less 4;
#           two products 4+4, half negated 1+1, two halves in zeros 4+2+2, their sum 4+2, sum 4+2,
#           less 8
EAGER_NORM = (36.0 - 4.0, 68.0 - 8.0)
EAGER_ROTATION = (20.0 - 4.0, 30.0 - 8.0)
# A norm that reads an fp32 copy of its input, bytes of each element beyond those of one kernel in
# 16 bits: cast 2+4, read 2 more; gradient: reads and writes 2 more, cast 4+2. Where nothing else is
# computed again, the norms and the sums before them are (InternLM/InternEvo@91480c5:
# internlm/model/modeling_internlm.py, dropout_selective_checkpoint): cast 2+4, norm 4+2, and the
# sum of one of two norms 4+2.
FP32_NORM = (8.0, 10.0)
REPEATED_NORM = 6.0 + 6.0 + 6.0 / 2
# Kernels of a layer's forward pass (the same file): 7 matrices, attention, an activation and its
# product, 2 sums, 5 copies of queries, keys, values and output; beside them 2 norms of 8 and 2
# rotations of 5, or 2 norms and one rotation of one kernel each.
FUSED_LAUNCHES = 7 + 1 + 2 + 2 + 5 + 2 + 1
EAGER_LAUNCHES = 7 + 1 + 2 + 2 + 5 + 2 * 8 + 2 * 5
# Of one expert of a loop: its mask, its positions, rows, 3 matmuls, activation, product, weights of
# the router, product with them, cast, sum (huggingface/transformers@00d4b3d2: src/transformers/
# models/qwen3_moe/modeling_qwen3_moe.py, Qwen3MoeSparseMoeBlock).
LOOPED_LAUNCHES = 1 + 1 + 1 + 3 + 1 + 1 + 1 + 1 + 1 + 1
# Modules with weights of their own: 2 norms, 4 projections and 3 matrices of a layer; of an expert.
LAYER_MODULES, EXPERT_MODULES = 2 + 4 + 3, 3


def onchip_factor(
    *, memory_bytes_per_s: Numeric, multiprocessors: Numeric, onchip: Numeric
) -> Numeric:
    """Time of an elementwise operator over that of its memory traffic alone.

    Issue slots and special functions come with multiprocessors, not with memory, so that faster
    memory alone gains less than its rate. NaN multiprocessors: as an A100.

    >>> float(onchip_factor(memory_bytes_per_s=2.039e12, multiprocessors=108, onchip=0.25))
    1.25
    """
    each = np.divide(memory_bytes_per_s, multiprocessors) / A100_BYTES_PER_S
    return 1 + np.asarray(onchip) * np.where(np.isnan(each), 1.0, each)


@kept_for_last
def outside_tp_bytes_per_token(model: Transformer) -> Numeric:
    """Forward bytes of norms (read, write) and residual sums (2 reads, write), per layer."""
    h = model.hidden_size
    return np.multiply(model.norms_per_layer, h) * (2 * 2 + 3 * 2)


@kept_for_last
def inside_tp_bytes_per_token(model: Transformer) -> Numeric:
    """Forward bytes of rotary embedding and activation function, mean over layers. Models with
    learned positions or ALiBi rotate nothing."""
    turned = np.where(np.logical_or(model.alibi, np.asarray(model.num_positions) > 0), 0.0, 1.0)
    rotary = turned * 2 * 2 * (query_size(model) + kv_size(model) / 2)
    tensors = np.where(model.gated_mlp, 3.0, 2.0)
    dense = 2 * tensors * model.ffn_hidden_size
    per_expert = 2 * tensors * np.asarray(model.moe_ffn_hidden_size)
    active = np.add(model.experts_per_token, model.num_shared_experts)
    experts = np.where(is_moe(model), active * per_expert, 0.0)
    layers = np.maximum(model.num_layers, 1.0)
    mlp = (num_dense_mlp_layers(model) * dense + num_moe_layers(model) * experts) / layers
    return (rotary + 2 * attention_output_size(model)) * attention_share(model) + mlp


@kept_for_last
def activated_bytes_per_token(model: Transformer) -> Numeric:
    """Of `inside_tp_bytes_per_token`: forward bytes of the activation functions of routed experts,
    mean over layers."""
    tensors = np.where(model.gated_mlp, 3.0, 2.0)
    each = 2 * tensors * np.asarray(model.moe_ffn_hidden_size)
    share = num_moe_layers(model) / np.maximum(model.num_layers, 1.0)
    return np.multiply(model.experts_per_token, each) * share


@kept_for_last
def expert_bias_bytes_per_token(model: Transformer) -> Numeric:
    """Forward bytes of biases that are added expert by expert, mean over layers."""
    moved = EXPERT_BIAS_BYTES * np.multiply(model.experts_per_token, model.hidden_size)
    share = num_moe_layers(model) / np.maximum(model.num_layers, 1.0)
    return np.where(model.linear_bias, moved * share, 0.0)


@kept_for_last
def permuted_bytes_per_token(model: Transformer) -> Numeric:
    """Forward bytes of routing, mean over layers: every token is copied once per expert that
    takes it, there and back, read and written."""
    moved = 4 * 2 * np.multiply(model.experts_per_token, model.hidden_size)
    return moved * num_moe_layers(model) / np.maximum(model.num_layers, 1.0)


@kept_for_last
def quantised_elements_per_token(model: Transformer) -> Numeric:
    """Elements of matmul inputs that a low-precision recipe casts, forward, per layer."""
    active = np.add(model.experts_per_token, model.num_shared_experts)
    layers = np.maximum(model.num_layers, 1.0)
    experts = active * np.add(model.hidden_size, model.moe_ffn_hidden_size)
    dense = np.add(model.hidden_size, model.ffn_hidden_size)
    mlp = (num_dense_mlp_layers(model) * dense + num_moe_layers(model) * experts) / layers
    mixer = np.add(model.hidden_size, attention_output_size(model)) * attention_share(model)
    for _, k, share in state_space.matmuls(model, tp=1.0):
        mixer = mixer + np.multiply(k, share)
    return mixer + mlp


def eager_bytes_per_token(
    model: Transformer, *, outside: Numeric, tp: Numeric
) -> tuple[Numeric, Numeric]:
    """Bytes, forward and backward, that norms and rotation move beyond the count above where they
    run operator by operator, per layer. `outside` ranks divide the norms.

    An MLP without a gate stands for LayerNorm, of which PyTorch has one kernel, and for learned
    positions.
    """
    norms = np.multiply(model.norms_per_layer, model.hidden_size) / outside
    turned = (query_size(model) + kv_size(model) / 2) * attention_share(model) / tp
    return (
        np.where(model.gated_mlp, EAGER_NORM[0] * norms + EAGER_ROTATION[0] * turned, 0.0),
        np.where(model.gated_mlp, EAGER_NORM[1] * norms + EAGER_ROTATION[1] * turned, 0.0),
    )


def fp32_norm_bytes_per_token(
    model: Transformer, *, outside: Numeric, again: Numeric
) -> tuple[Numeric, Numeric]:
    """Bytes, forward and backward, that norms of an fp32 copy move beyond the count above, per
    layer. `outside` ranks divide them; `again`: the share that is computed once more."""
    norms = np.multiply(model.norms_per_layer, model.hidden_size) / outside
    back = FP32_NORM[1] + np.multiply(again, REPEATED_NORM)
    return FP32_NORM[0] * norms, back * norms


def launches(model: Transformer, *, eager: Numeric) -> Numeric:
    """Kernels that a layer launches over those of one whose norms and rotation are one kernel each.
    Models without a gate have LayerNorm and learned positions, as in `eager_bytes_per_token`."""
    each = EAGER_LAUNCHES / FUSED_LAUNCHES
    return np.where(np.logical_and(eager, model.gated_mlp), each, 1.0)


def looped_launches(model: Transformer, *, ep: Numeric) -> Numeric:
    """Kernels that a loop over the experts of a rank launches, over those of a dense layer, mean
    over layers."""
    return _looped_experts(model, ep=ep) * (LOOPED_LAUNCHES / FUSED_LAUNCHES)


def looped_modules(model: Transformer, *, ep: Numeric) -> Numeric:
    """Modules of experts, each by itself, over those of a dense layer, mean over layers."""
    return _looped_experts(model, ep=ep) * (EXPERT_MODULES / LAYER_MODULES)


def _looped_experts(model: Transformer, *, ep: Numeric) -> Numeric:
    return (
        np.divide(model.num_experts, ep) * num_moe_layers(model) / np.maximum(model.num_layers, 1)
    )


def score_blocks_bytes_per_token(model: Transformer, seq_len: Numeric) -> Numeric:
    """Forward bytes per layer and token of attention block by block, each operator a kernel of its
    own: the scores of blocks up to the diagonal, which is moved whole."""
    blocks = (1 + np.minimum(ATTENTION_BLOCK / np.asarray(seq_len, dtype=float), 1.0)) / 2
    return blocks * score_matrix_bytes_per_token(model, seq_len)


def score_matrix_bytes_per_token(model: Transformer, seq_len: Numeric) -> Numeric:
    """Forward bytes of unfused attention per layer and token; the masked half is moved too."""
    scores = SCORE_MATRIX_BYTES * np.multiply(model.num_attention_heads, seq_len)
    return scores * attention_share(model)
