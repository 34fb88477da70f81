"""Optimizers: a table of the state that each keeps per trained parameter, and its extra work.

[K15] Kingma and Ba, "Adam", arXiv:1412.6980. [D22] Dettmers et al., "8-bit Optimizers via
      Block-wise Quantization", arXiv:2110.02861. [S18] Shazeer and Stern, "Adafactor",
      arXiv:1804.04235, section 3: row and column statistics. [J24] Jordan et al., "Muon", 2024,
      kellerjordan.github.io/posts/muon: five Newton-Schulz iterations on each hidden matrix;
      AdamW for embeddings, LM head and norms, as also Liu et al., "Muon is Scalable",
      arXiv:2502.16982, section 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.errors import unknown_name
from core.model import state_space
from core.model.transformer import (
    Transformer,
    attention_output_size,
    is_mla,
    kv_size,
    matrices_per_mlp,
    num_attention_layers,
    num_dense_mlp_layers,
    num_moe_layers,
    query_size,
)
from core.numeric import Bools, Numeric, kept_for_last


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """Bytes of state per parameter, in addition to the fp32 master weight that the strategy
    keeps."""

    name: str
    state_bytes: float
    orthogonalises: bool = False
    factors: bool = False  # second moments of a matrix by its rows and columns
    ends_state_bytes: float | None = None  # of embeddings and LM head; None: equal to the others
    sets_state_type: bool = False  # moments keep their bytes, whatever the type of the weights


OPTIMIZERS = {
    o.name: o
    for o in (
        Optimizer(name="adamw", state_bytes=8.0),  # two fp32 moments [K15]
        Optimizer(name="adamw_8bit", state_bytes=2 * (1 + 4 / 2048)),  # blocks of 2,048 [D22]
        Optimizer(name="adamw_bf16", state_bytes=4.0, sets_state_type=True),  # two 16-bit moments
        # A row and a column of each matrix [S18].
        Optimizer(name="adafactor", state_bytes=0.01, factors=True),
        # One momentum of a hidden matrix, AdamW's two moments elsewhere [J24].
        Optimizer(name="muon", state_bytes=4.0, orthogonalises=True, ends_state_bytes=8.0),
        Optimizer(name="sgd", state_bytes=4.0),  # one momentum
    )
}

# Read the gradient for clipping and for the update and zero it (12), read and write the fp32
# weight (8), write its 16-bit copy (2); the states are read and written on top. Where all is in 16
# bits, 6 and 4, and there is no copy.
STEP_BYTES_WITHOUT_STATE, STEP_BYTES_OF_16_BITS = 22.0, 10.0
# Adafactor without a compiler (huggingface/transformers@005edacb: src/transformers/optimization.py,
# Adafactor.step), bytes of each parameter, operator by operator in fp32: norm of the weight 4,
# gradient squared 4+4, plus epsilon 4+4, means of rows and of columns 4+4, product of both 4, times
# the gradient 4+4+4, norm 4, clipped 4+4, times the rate 4+4, negated 4+4, added 4+4+4. The norm of
# the gradients and their clipping come first: 4 and 4+4. In 16 bits 2 and 2+2, and gradient and
# weight are copied to fp32 2+4 each, the weight back 4+2.
FACTORED_BYTES, FACTORED_BYTES_OF_16_BITS = 84.0 + 12.0, 84.0 + 6.0 + 18.0
# What it holds of the one tensor under way: the update before and after an operator that makes a
# new one, and in 16 bits the two copies.
FACTORED_HELD, FACTORED_HELD_OF_16_BITS = 8.0, 16.0
# AdamW operator by operator (pytorch/pytorch: torch/optim/adamw.py, _multi_tensor_adamw), what it
# reads and writes of a parameter beyond the 7 passes of one fused kernel: 2 + 3 + 2 + 3 to decay
# weight and moments, the root of the second moment 2, divided 2, plus epsilon 2, into the weight 4.
LISTED_PASSES = 20.0 - 7.0
NEWTON_SCHULZ_STEPS = 5.0


def optimizer(name: str) -> Optimizer:
    """One row by name; an unknown name is an error."""
    if name not in OPTIMIZERS:
        raise unknown_name("optimizer", name, OPTIMIZERS)
    return OPTIMIZERS[name]


def step_bytes_per_param(
    *,
    state_bytes: Numeric,
    weight_bytes: Numeric = 4.0,
    factored: Bools = False,
    listed: Bools = False,
) -> Numeric:
    """Bytes moved to update one parameter: 38 for AdamW. `weight_bytes` is 2 where the weights have
    no fp32 master copy and their gradients have 16 bits. `factored`: Adafactor by operators;
    `listed`: AdamW operator by operator of all tensors at once."""
    narrow = np.less(weight_bytes, 4)
    rest = np.where(narrow, STEP_BYTES_OF_16_BITS, STEP_BYTES_WITHOUT_STATE)
    by_operator = np.where(narrow, FACTORED_BYTES_OF_16_BITS, FACTORED_BYTES)
    more = np.where(listed, LISTED_PASSES * np.asarray(weight_bytes), 0.0)
    return np.where(factored, by_operator, rest) + 2 * np.asarray(state_bytes) + more


def factored_held_bytes(*, largest: Numeric, weight_bytes: Numeric) -> Numeric:
    """Temporaries of Adafactor by operators, which updates one tensor after the other: those of the
    `largest`, in parameters."""
    each = np.where(np.less(weight_bytes, 4), FACTORED_HELD_OF_16_BITS, FACTORED_HELD)
    return each * np.asarray(largest)


def newton_schulz_flops(*, rows: Numeric, columns: Numeric) -> Numeric:
    """FLOPs to orthogonalise one matrix. [J24]

    One iteration is X X^T, its square and one product: 4 r^2 c + 2 r^3 for r x c, r <= c.
    """
    r, c = np.minimum(rows, columns), np.maximum(rows, columns)
    return NEWTON_SCHULZ_STEPS * (4 * r**2 * c + 2 * r**3)


@kept_for_last
def orthogonalised_matrices(model: Transformer) -> list[tuple[Numeric, Numeric, Numeric]]:
    """(rows, columns, how many) of the matrices of all layers, one a projection, without routed
    experts. Routers are left out, as they are small."""
    h = np.asarray(model.hidden_size, dtype=float)
    attention, mla = num_attention_layers(model), np.asarray(is_mla(model), dtype=float)
    ranked = mla * (np.asarray(model.q_lora_rank) > 0)
    kv_up = np.multiply(model.num_attention_heads, np.add(model.qk_nope_head_dim, model.v_head_dim))
    shared = np.multiply(model.num_shared_experts, model.moe_ffn_hidden_size)
    has_shared = num_moe_layers(model) * (shared > 0)
    gates = np.where(model.attention_gate, 2.0, 1.0)
    found = [
        (query_size(model) * gates, h, attention * (1 - ranked)),
        (query_size(model), np.asarray(model.q_lora_rank, dtype=float), attention * ranked),
        (np.asarray(model.q_lora_rank, dtype=float), h, attention * ranked),
        (kv_size(model) / 2, h, 2 * attention * (1 - mla)),
        (np.add(model.kv_lora_rank, model.qk_rope_head_dim), h, attention * mla),
        (kv_up, np.asarray(model.kv_lora_rank, dtype=float), attention * mla),
        (h, attention_output_size(model), attention),
        (model.ffn_hidden_size, h, matrices_per_mlp(model) * num_dense_mlp_layers(model)),
        (shared, h, matrices_per_mlp(model) * has_shared),
    ]
    return found + [(p.n, p.k, p.layers) for p in state_space.projections(model)]


@kept_for_last
def orthogonalisation_flops_per_param(model: Transformer) -> tuple[Numeric, Numeric]:
    """FLOPs per parameter of the layers' matrices, and of the routed experts', which are
    orthogonalised one by one. [J24]

    Validity: each matrix is orthogonalised once in a group of ranks, whole; what brings its
    pieces together is not counted (arXiv:2502.16982, section 2.3: at most a quarter more than
    AdamW's traffic).
    """
    matrices = orthogonalised_matrices(model)
    flops = sum(np.asarray(n * newton_schulz_flops(rows=r, columns=c)) for r, c, n in matrices)
    params = sum(np.asarray(n * np.multiply(r, c)) for r, c, n in matrices)
    h, size = model.hidden_size, np.maximum(model.moe_ffn_hidden_size, 1.0)
    expert = newton_schulz_flops(rows=h, columns=size) / np.multiply(h, size)
    return flops / np.maximum(params, 1.0), expert
