"""Fractions of physical rates that real software reaches: the free parameters of the model.

Each is bounded, has a meaning, and has a value in hardware/efficiency.csv that names what it was
fitted on. Software stacks differ in a handful of them. None belongs to a single run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from core.errors import FactError
from core.numeric import Numeric


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Numbers or columns. Fractions in [0, 1] unless the name says otherwise."""

    # compute (core/time/gemm.py, core/time/attention.py, core/time/kernels.py)
    matmul: Numeric  # of the measured ceiling, large matrices
    matmul_unhidden: Numeric  # share of a matmul's memory traffic that adds to its time
    wave: Numeric  # of the idle time of a last wave of tiles that is really lost
    kernel_s: Numeric  # seconds in which a matmul fills and drains the device
    grouped_matmul: Numeric  # of `matmul`, experts
    fp8_of_peak_ratio: Numeric
    fp4_of_peak_ratio: Numeric
    attention_forward: Numeric  # of the 16-bit peak, head_dim 128, long sequence
    unaligned_slowdown: Numeric  # head_dim no multiple of 8: no fused kernel takes it unpadded
    attention_in_step: Numeric  # of the rate of the kernel measured alone
    attention_half_tokens: Numeric  # sequence at which the kernel reaches half of that rate
    attention_half_head_dim: Numeric  # head_dim at which it reaches half of its limit
    fast_exponentials: Numeric  # attention rate gained by doubled exponential units
    attention_backward: Numeric  # of attention_forward
    memory: Numeric  # of the memory bandwidth
    elementwise: Numeric  # traffic of norms, activations, residuals over the unfused count
    onchip: Numeric  # time on chip over that in memory of elementwise operators, on an A100
    permutation: Numeric  # traffic of routing tokens to experts over the operator count
    fused_permutation: Numeric  # of it, with dispatchers that permute tokens as they send them
    host_s: Numeric  # host seconds to launch one layer's forward; the GPU waits if faster
    expert_host_s: Numeric  # added where the layer routes to experts
    partial_graphs: Numeric  # share of the launches that is left where graphs hold parts of a step
    padded_host: Numeric  # of expert_host_s, where experts take a fixed number of tokens
    queue: Numeric  # how sharply the device waits for its host: exponent of a smooth maximum
    adapter_host_s: Numeric  # added where every matrix has small adapters
    zero3_host_s: Numeric  # added where hooks in Python gather the weights of every module
    flash2: Numeric  # FlashAttention 2 over the best kernel, each generation of devices later
    compiled: Numeric  # elementwise traffic left when a compiler fuses it
    host_link: Numeric  # of the link to the host
    nvme_bytes_per_s: Numeric  # of the node's drives, per GPU
    host_bytes_per_s: Numeric  # of the host's memory, per GPU: where offloaded states are updated
    step_s: Numeric  # fixed seconds of a step: data, logging, synchronisation
    alone_step_s: Numeric  # of a step of one GPU
    software_per_year: Numeric  # kernels get faster: of the rate, a year of software
    power_exponent: Numeric  # matmul rate goes with the power limit to this
    # recompute (share of one forward pass repeated)
    selective_recompute: Numeric
    selective_core: Numeric  # 1: selective recompute is that of the attention core alone
    full_recompute: Numeric
    # communication (core/time/collectives.py, core/time/overlap.py)
    scale_up: Numeric  # of the scale-up link
    scale_out: Numeric  # of the network link
    scale_out_doubling: Numeric  # lost of it with each doubling of the domains of a ring
    hop: Numeric  # latency of a hop over the printed one
    all_to_all_hop: Numeric  # of a hop: messages to all ranks are under way together
    fill_bytes: Numeric  # that a step of a ring holds before it sends on
    bucket_bytes: Numeric  # of gradients reduced at once
    all_to_all: Numeric  # of either, for all-to-all
    tp_exposed: Numeric  # share not hidden where it is cut in pieces; else all is exposed
    cp_exposed: Numeric
    ep_exposed: Numeric  # inside the scale-up domain
    ep_network_exposed: Numeric  # across domains
    ep_overlapped_exposed: Numeric  # of both, where they run beside computation
    pp_exposed: Numeric  # of interleaved schedules; else all is exposed
    dp_exposed: Numeric  # gradients once per step: ddp, zero1, zero2; all where not overlapped
    fsdp_exposed: Numeric  # gathers and scatters of every layer: zero3, fsdp2, hsdp
    overlap_window: Numeric  # share of the computation that can hide communication
    overlap_slowdown: Numeric  # of computation while it shares the GPU
    straggler: Numeric  # added per doubling of nodes
    # memory (core/memory/memory.py)
    activation_copies: Numeric  # kept activations over the operator count, but for the input
    compiled_kept: Numeric  # of them, where a compiler chooses what is computed again
    frozen_kept: Numeric  # of them, under adapters, but for inputs of frozen matmuls
    quantised_kept: Numeric  # of them, under adapters on a 4-bit base
    routed_copies: Numeric  # copies kept of each token that goes to an expert
    selective_kept: Numeric  # share of activations that selective recompute keeps
    logits_bytes: Numeric  # moved per logit and pass (core/time/memory_bound.py)
    held_logits_bytes: Numeric  # per logit: 16-bit, fp32 copies and gradient
    compiled_logits: Numeric  # of them, where the loss is compiled
    own_weight_bytes: Numeric  # of a weight that is its own master copy: 4, or 2 if all is 16-bit
    bucket_copies: Numeric  # of gradients, in the buckets of replicated data parallelism
    step_bytes: Numeric  # temporaries of the optimizer, per parameter that it updates
    reserve_bytes: Numeric  # context, workspaces, fixed buckets
    memory_pool: Numeric  # share of a pooled device that the software takes when it starts
    communicator_bytes: Numeric  # buffers of one communicator
    reserve_reported: Numeric  # share of both in the peak that the stack prints
    fragmentation_reported: Numeric  # and of the allocator's reserve
    fragmentation: Numeric  # allocator reserve over live bytes
    # width of intervals (standard deviations of a log ratio; core/evidence/uncertainty.py)
    throughput_sigma: Numeric  # a stack with a profile, everything stated
    memory_sigma: Numeric
    memory_inferred_sigma: Numeric  # each of recompute, degrees, sharding, batch not stated
    unknown_stack_sigma: Numeric  # added in quadrature, as are the others below
    inferred_sigma: Numeric  # each of recompute, degrees, batch, network not stated
    unmeasured_sigma: Numeric  # no matmul was ever measured on the accelerator
    memory_unknown_stack_sigma: Numeric
    unseen_accelerator_sigma: Numeric  # no published run of it was fitted
    scale_sigma: Numeric  # for each doubling of GPUs beyond the largest run that was fitted
    network_sigma: Numeric  # the network between machines is a guess
    experts_sigma: Numeric  # routed experts
    adapters_sigma: Numeric  # LoRA, QLoRA
    # Of the log of what a step waits for its host, and of its passes over memory; and of what half
    # of a guessed network would add. 0: a plan file that is older.
    host_time_sigma: Numeric = 0.0
    bandwidth_sigma: Numeric = 0.0
    half_network_sigma: Numeric = 0.0
    # Part by which a width is more towards slower, and less towards faster; likewise.
    throughput_skew: Numeric = 0.0
    # Seconds in which one more row of equal index is added (core/time/indexed.py); likewise.
    duplicate_s: Numeric = 0.0


NAMES = tuple(f.name for f in fields(Efficiency))


def from_values(values: Mapping[str, float]) -> Efficiency:
    """Build from a table; a missing or unknown name is an error."""
    if missing := [n for n in NAMES if n not in values]:
        raise FactError(f"efficiency.csv lacks {missing}")
    if unknown := [n for n in values if n not in NAMES]:
        raise FactError(f"efficiency.csv has unknown quantities {unknown}")
    return Efficiency(**{n: values[n] for n in NAMES})


def as_columns(rows: list[Efficiency]) -> Efficiency:
    """Many profiles as one: each field a float64 column."""
    return Efficiency(**{n: np.array([getattr(r, n) for r in rows], dtype=float) for n in NAMES})
