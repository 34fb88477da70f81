"""Traits of jobs, by which core/evidence/residual.py finds the measured runs that are like them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.evidence.measured_runs import SCALES, Traits
from core.layout.layouts import RECOMPUTE, Layouts
from core.layout.workload import Workload
from core.machine.cluster import Cluster

Words = NDArray[np.str_]
# Kinds of recompute that count as alike: none, some, most or all.
_KINDS = {"none": 0.0, "selective": 1.0, "norm_act": 1.0}
RECOMPUTE_TRAIT = np.array([_KINDS.get(r, 2.0) for r in RECOMPUTE])


def traits(
    work: Workload,
    layouts: Layouts,
    cluster: Cluster,
    *,
    family: Words,
    stack: Words,
    accelerator: Words,
    precision: Words,
    task: Words,
) -> Traits:
    """The traits of jobs, a row each; numbers may be columns or the same for all.

    `precision` are recipes of core/layout/precision.py; recipes of one number format are alike.
    """
    tokens = np.multiply(work.seq_len, layouts.micro_batch_size) / layouts.cp
    doublings = {
        "micro_batch_tokens": tokens,
        "hidden_size": work.model.hidden_size,
        "num_layers": work.model.num_layers,
        "num_experts": np.add(work.model.num_experts, 1.0),
        "num_gpus": layouts.num_gpus,
        "tp": layouts.tp,
        "pp": layouts.pp,
        "cp": layouts.cp,
        "ep": layouts.ep,
        "virtual_stages": layouts.virtual_stages,
        "num_microbatches": layouts.num_microbatches,
        "seq_len": work.seq_len,
        "peak": np.divide(cluster.peak_flops_per_s, work.matmul_bits),
        "matmul_bits": work.matmul_bits,
    }
    numbers = {
        **{name: np.log2(np.asarray(value, dtype=float)) for name, value in doublings.items()},
        "software_year": np.asarray(work.software_year),
        "recompute": RECOMPUTE_TRAIT[np.asarray(layouts.recompute, dtype=int)],
        "cuda_graphs": np.asarray(work.cuda_graphs),
    }
    columns = [np.broadcast_to(numbers[name], stack.shape) for name in SCALES]
    return Traits(
        family=family,
        stack=stack,
        accelerator=accelerator,
        number_format=np.array([_number_format(str(p)) for p in precision], dtype=np.str_),
        task=np.where(np.isin(task, ("lora", "qlora")), "adapters", task),
        experts=np.broadcast_to(np.asarray(work.model.num_experts) > 0, stack.shape),
        numbers=np.stack(columns, axis=1).astype(float),
    )


def _number_format(precision: str) -> str:
    """The number format of a recipe: scaling per tensor, row or block is one format.

    >>> _number_format("fp8_rowwise"), _number_format("fp16"), _number_format("mxfp8")
    ('fp8', '16 bits', 'mxfp8')
    """
    if precision.startswith("fp8"):
        return "fp8"
    return "16 bits" if precision in ("bf16", "fp16") else precision
