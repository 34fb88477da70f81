"""Time of one optimizer step, by part, and the utilisation that follows.

The only place where overlap is decided. The parts add up to the step of the slowest pipeline
stage; `bubble` is the time that stage waits for the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.layout.layouts import Layouts, dp
from core.layout.pipeline import bubble_fraction
from core.layout.sharding import INDEX
from core.layout.workload import (
    Workload,
    layers_fewer_on_last_stage,
    layers_of_fullest_stage,
)
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.stage_params import stage_params
from core.model.transformer import (
    forward_flops_per_token,
    num_moe_layers,
)
from core.numeric import Numeric
from core.time import kernels, one_by_one, traffic
from core.time.data_parallel import data_parallel_s, overlapped_s
from core.time.layer import LayerSeconds, layer_seconds
from core.time.repeated import (
    launched_share,
    repeated_collectives,
    repeated_flops_per_token,
    repeated_share,
)
from core.time.weight_update import offload_s, optimizer_s

PARTS = (
    "matmul", "attention", "experts", "memory_bound", "head_loss", "recompute", "tp_exposed",
    "cp_exposed", "ep_exposed", "pp_exposed", "dp_exposed", "offload_exposed", "bubble",
    "optimizer", "overhead",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of each candidate. `parts` add up to `step_s`."""

    parts: dict[str, NDArray[np.float64]]
    step_s: NDArray[np.float64]
    tokens_per_s: NDArray[np.float64]
    tokens_per_s_per_gpu: NDArray[np.float64]
    mfu: NDArray[np.float64]
    hfu: NDArray[np.float64]


def _host_bound(layer_s: Numeric, host_s: Numeric, again: Numeric, eff: Efficiency) -> Numeric:
    """Seconds the GPU waits for launches: three forwards' worth per layer and micro-batch, and what
    is computed again.

    The queue sometimes runs empty, so this is a smooth maximum of both, not a sharp one.
    """
    queue = np.asarray(eff.queue)
    launch = (3.0 + again) * np.asarray(host_s)
    return (layer_s**queue + launch**queue) ** (1 / queue) - layer_s


def step(work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency) -> Step:
    """Seconds of one optimizer step and its utilisation, one row per candidate."""
    one = layer_seconds(work, lay, cluster, eff)
    layers = layers_of_fullest_stage(work, pp=lay.pp)
    m = np.asarray(lay.num_microbatches, dtype=float)
    some = work.recomputed_layers
    repeated = repeated_share(
        lay, work.model, one, eff, of_layers=some,
        matmuls=work.repeated_matmuls, with_core=work.repeats_core,
    )  # fmt: skip
    forward_s = (
        one.matmul_forward + one.experts_forward + one.attention_forward + one.memory_bound_forward
    )
    backward_s = (
        one.matmul_backward
        + one.experts_backward
        + one.attention_backward
        + one.memory_bound_backward
    )
    layer_s = forward_s * (1 + repeated) + backward_s
    moe_share = num_moe_layers(work.model) / np.maximum(work.model.num_layers, 1.0)
    adapters = np.where(work.adapters, eff.adapter_host_s, 0.0)
    hooks = np.where(np.equal(lay.strategy, INDEX["zero3"]), eff.zero3_host_s, 0.0)
    # Dropless experts ask the host how many rows each has; padded ones do not.
    graphs = np.asarray(work.cuda_graphs)
    parts_left = np.where(graphs > 0, eff.partial_graphs, 1.0)
    routing = np.where(np.asarray(work.capacity_factor) > 0, eff.padded_host, 1.0)
    routed = moe_share * routing * eff.expert_host_s
    eager = np.where(work.compiled, False, work.eager_norms)
    times = kernels.launches(work.model, eager=eager)
    if np.any(work.loops_experts):
        looped = np.asarray(work.loops_experts, dtype=float)
        times = times + looped * kernels.looped_launches(work.model, ep=lay.ep)
        hooks = hooks * (1 + looped * kernels.looped_modules(work.model, ep=lay.ep))
    launches = times * np.asarray(eff.host_s)
    host_s = parts_left * (launches + adapters + hooks + routed)
    host_s = np.where(graphs >= 1, 0.0, host_s * work.host_slowdown)
    again = launched_share(lay.recompute, eff, of_layers=some)
    waiting = _host_bound(layer_s, host_s, again, eff)
    inside = _inside_layer(work, lay, cluster, eff, one, waiting)
    per_layer = layer_s + waiting + inside.tp + inside.cp + inside.ep
    # Only the interleaved schedule has other chunks to run meanwhile (arXiv:2104.04473).
    chunked = (np.asarray(lay.virtual_stages) > 1) & np.asarray(work.overlaps_gradients)
    pp = np.where(chunked, eff.pp_exposed, 1.0) * traffic.pipeline_s(work, lay, cluster, eff)

    # The last stage also runs the head; where layers divide unevenly, it has fewer layers.
    fewer = layers_fewer_on_last_stage(work, pp=lay.pp)
    head = np.maximum(one.head - fewer * per_layer, 0.0)
    mean_stage_s = (work.model.num_layers * per_layer + one.head) / lay.pp + pp
    # A third of the launches that a device waits for also belong to weight gradients, where no
    # keys and values travel meanwhile, which cannot be put off.
    idle = np.maximum(waiting - inside.cp_hidden / eff.overlap_window, 0.0)
    weight_gradients = one.matmul_forward + one.experts_forward + idle / 3
    weight_gradients = weight_gradients * (1 - np.asarray(work.adapters))
    bubble = bubble_fraction(
        pp=lay.pp,
        virtual_stages=lay.virtual_stages,
        num_microbatches=m,
        schedule=lay.schedule,
        weight_gradient_share=weight_gradients * work.model.num_layers / lay.pp / mean_stage_s,
    )

    params = stage_params(work, lay, first=True)
    # Communication also runs while the device waits for its host.
    free_s = layers * (layer_s + waiting - inside.cp_hidden / eff.overlap_window) + head
    data_parallel, hidden = data_parallel_s(work, lay, cluster, eff, params, layers, free_s)
    left_s = m * free_s - hidden / eff.overlap_window
    parts = {
        "matmul": m * layers * (one.matmul_forward + one.matmul_backward),
        "attention": m * layers * (one.attention_forward + one.attention_backward),
        "experts": m * layers * (one.experts_forward + one.experts_backward),
        "memory_bound": m * layers * (one.memory_bound_forward + one.memory_bound_backward),
        "head_loss": m * head,
        "recompute": m * layers * forward_s * repeated,
        "tp_exposed": m * layers * inside.tp,
        "cp_exposed": m * layers * inside.cp,
        "ep_exposed": m * layers * inside.ep,
        "pp_exposed": m * pp,
        "dp_exposed": data_parallel,
        "offload_exposed": offload_s(work, lay, cluster, eff, params, layers, left_s),
        "bubble": m * mean_stage_s * bubble,
        "optimizer": optimizer_s(work, lay, cluster, eff, params),
        "overhead": m * layers * waiting + _step_s(lay, eff),
    }
    nodes = np.maximum(np.divide(lay.num_gpus, cluster.gpus_per_node), 1.0)
    whole = sum(np.asarray(v, dtype=float) for v in parts.values())
    parts["overhead"] = parts["overhead"] + eff.straggler * np.log2(nodes) * whole
    return _utilisation(work, lay, cluster, parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _InsideLayer:
    """Exposed communication of one layer and micro-batch."""

    tp: Numeric
    cp: Numeric
    ep: Numeric
    cp_hidden: Numeric


def _inside_layer(
    work: Workload,
    lay: Layouts,
    cluster: Cluster,
    eff: Efficiency,
    one: LayerSeconds,
    waiting: Numeric,
) -> _InsideLayer:
    """Exposed communication of tensor, context and expert parallelism. Full recompute repeats the
    share of the forward pass: 2 of 4 all-reduces, 1 of 3 passes of keys and values, 2 of 4
    all-to-alls."""
    tp_again, cp_again, ep_again = repeated_collectives(
        lay.recompute, work.model, of_layers=work.recomputed_layers
    )
    cp, cp_hidden = overlapped_s(
        traffic.context_parallel_s(work, lay, cluster, eff) * (1 + cp_again / 3),
        one.attention_forward * (1 + cp_again) + one.attention_backward + waiting,
        np.where(np.asarray(lay.context_method) == 0, eff.cp_exposed, 1.0),  # only a ring hides
        eff,
    )
    return _InsideLayer(
        tp=np.where(work.async_tp, eff.tp_exposed, 1.0)
        * traffic.tensor_parallel_s(work, lay, cluster, eff)
        * (1 + tp_again / 2)
        + one_by_one.split_projections_s(work, lay, cluster, eff),
        cp=cp,
        ep=traffic.expert_parallel_exposed_s(work, lay, cluster, eff) * (1 + ep_again / 2),
        cp_hidden=cp_hidden,
    )


def _step_s(lay: Layouts, eff: Efficiency) -> Numeric:
    """Fixed seconds of a step. One GPU waits for no other, and its host runs ahead of it."""
    return np.where(np.asarray(lay.num_gpus) > 1, eff.step_s, eff.alone_step_s)


def _utilisation(
    work: Workload,
    lay: Layouts,
    cluster: Cluster,
    parts: dict[str, Numeric],
) -> Step:
    """MFU counts model FLOPs (no recompute, causal attention once); HFU adds recompute: the
    layers' forward if full, the attention core if selective (arXiv:2205.05198, section 5), or the
    matrices of what is repeated."""
    shape = np.broadcast(*parts.values()).shape
    columns = {k: np.broadcast_to(v, shape).astype(float) for k, v in parts.items()}
    step_s = sum(columns.values(), np.zeros(shape))  # summed in one order, for one row or many
    sequences = np.asarray(lay.micro_batch_size) * lay.num_microbatches * dp(lay)
    tokens = np.broadcast_to(sequences * work.seq_len, shape)
    tokens_per_s = tokens / step_s
    per_gpu = tokens_per_s / lay.num_gpus
    forward = np.asarray(forward_flops_per_token(work.model, work.seq_len))
    # Frozen weights have no weight gradient: adapters run two forwards' worth, not three.
    flops = forward * np.where(work.adapters, 2.0, 3.0)
    repeated = repeated_flops_per_token(
        work.model, work.seq_len, lay.recompute, of_layers=work.recomputed_layers
    )
    return Step(
        parts=columns,
        step_s=step_s,
        tokens_per_s=tokens_per_s,
        tokens_per_s_per_gpu=per_gpu,
        mfu=per_gpu * flops / cluster.peak_flops_per_s,
        hfu=per_gpu * (flops + repeated) / cluster.peak_flops_per_s,
    )
