"""Gradients of a few rows that are read many times by index: the biases of experts.

[I] pytorch/pytorch: aten/src/ATen/native/cuda/Indexing.cu, indexing_backward_kernel (the gradient
    of x[index]): one warp adds all rows of equal index, one after the other.
[M] huggingface/transformers: src/transformers/integrations/moe.py, grouped_mm_experts_forward:
    `gate_up_proj_bias[expert_ids]` and `down_proj_bias[expert_ids]`, one row for each copy.
[H] whitecircle/halo: agent-docs/optimization/grouped-gemm.md, "The duplicate-index gather trap":
    a matmul in its place makes a step of gpt-oss-20b 1.65 times as fast.
[P] mlc-ai/pith-train pull request 34: GPT-OSS-20B 137 to 31 s a step, with FlashAttention 4.
"""

from __future__ import annotations

import numpy as np

from core.layout.layouts import Layouts
from core.layout.routing import natural_load
from core.layout.workload import Workload
from core.machine.efficiency import Efficiency
from core.model.transformer import num_moe_layers
from core.numeric import Numeric

BIASES = 2  # of an expert, each read by index [M]


def bias_gradient_s(work: Workload, lay: Layouts, eff: Efficiency, *, tokens: Numeric) -> Numeric:
    """Seconds per layer (mean) and micro-batch of the gradients of experts' biases that are read by
    index [M]; 0 where none are, and where they are frozen.

    All others are done when the rows of the busiest expert are added, one every `duplicate_s`; the
    width of a row costs nothing, because warps divide it. [I]
    """
    m = work.model
    if not np.any(work.indexes_expert_biases):
        return 0.0
    copies = np.multiply(tokens, m.experts_per_token) / np.maximum(m.num_experts, 1.0)
    busiest = natural_load(
        num_experts=m.num_experts,
        experts_per_token=m.experts_per_token,
        ep=np.maximum(m.num_experts, 1.0),
        max_vio=work.router_max_vio,
    )
    busiest = np.where(np.isnan(work.expert_imbalance), busiest, work.expert_imbalance)
    rows = np.minimum(copies * busiest, tokens) / lay.tp
    share = num_moe_layers(m) / np.maximum(m.num_layers, 1.0)
    read = np.asarray(work.indexes_expert_biases) & np.asarray(m.linear_bias, dtype=bool)
    read = read & ~np.asarray(work.adapters, dtype=bool)
    return np.where(read, BIASES * rows * share, 0.0) * eff.duplicate_s
