"""Time of the optimizer's update, and of what is kept on the host instead of the device."""

from __future__ import annotations

import numpy as np

from core.layout import optimizers
from core.layout.layouts import Layouts
from core.layout.sharding import column, held_gradient_bytes
from core.layout.workload import NVME, Workload, more_state_bytes_of_ends, splits_sequence
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.activations import offloaded_bytes
from core.memory.layer_memory import selective_kept, tokens_per_rank
from core.memory.offload import host_rate
from core.memory.stage_params import Held, StageParams
from core.memory.update import lists_tensors
from core.numeric import Numeric
from core.time.data_parallel import overlapped_s


def _held(lay: Layouts, params: StageParams) -> Held:
    """Parameters that one GPU updates, trained or not."""
    return params.held(column(lay.strategy, "shards_optimizer") > 0)


def _trained_ends(work: Workload, held: Held) -> Numeric:
    """Of them, embeddings and LM head: none with adapters."""
    return held.ends * (1.0 - np.asarray(work.adapters))


def optimizer_s(
    work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency, params: StageParams
) -> Numeric:
    """Update of the parameters that one GPU owns, on the device or in the host's memory."""
    held = _held(lay, params)
    owned, experts = held.all * work.trained_fraction, held.experts * work.trained_fraction
    ends = _trained_ends(work, held)
    rate = np.where(
        np.asarray(work.offload_optimizer) > 0,
        host_rate(lay, eff),
        np.asarray(cluster.memory_bytes_per_s) * eff.memory,
    )
    moved = owned * optimizers.step_bytes_per_param(
        state_bytes=work.optimizer_state_bytes,
        weight_bytes=eff.own_weight_bytes,
        factored=work.factors_by_operator,
        listed=lists_tensors(work, lay),
    )
    moved = moved + 2 * ends * more_state_bytes_of_ends(work)
    of_dense, of_experts = optimizers.orthogonalisation_flops_per_param(work.model)
    flops = (owned - ends - experts) * of_dense + experts * of_experts
    matmul_rate = np.asarray(cluster.peak_flops_per_s) * cluster.ceiling * eff.matmul
    orthogonal = np.where(work.orthogonalises, flops / matmul_rate, 0.0)
    return moved / rate + orthogonal


def offload_s(
    work: Workload,
    lay: Layouts,
    cluster: Cluster,
    eff: Efficiency,
    params: StageParams,
    layers: Numeric,
    left_s: Numeric,
) -> Numeric:
    """Transfers to and from the host that computation does not hide.

    Optimizer [Ren et al., "ZeRO-Offload", arXiv:2101.06840]: gradients down, weights up, once a
    step and exposed; from NVMe its states cross twice more. Weights: fetched for forward and
    backward of every micro-batch. Activations: out in forward, back in backward. Both hide in
    `left_s`, what the step's computation has left after data parallelism.
    """
    m = np.asarray(lay.num_microbatches, dtype=float)
    link = eff.host_link * np.asarray(cluster.host_link_bytes_per_s)
    drive = np.minimum(eff.nvme_bytes_per_s, link)
    held = _held(lay, params)
    owned = held.all * work.trained_fraction
    states = owned * (4.0 + np.asarray(work.optimizer_state_bytes))
    states = states + _trained_ends(work, held) * more_state_bytes_of_ends(work)
    on_nvme = np.asarray(work.offload_optimizer) == NVME
    down = held_gradient_bytes(strategy=lay.strategy, gradient_bytes=work.gradient_bytes)
    down = np.minimum(down, 4.0)
    once = np.where(
        np.asarray(work.offload_optimizer) > 0,
        owned * (down + 2.0) / link + np.where(on_nvme, 2 * states / drive, 0.0),
        np.where(work.paged_optimizer, 2 * owned * work.optimizer_state_bytes / link, 0.0),
    )
    sharded = column(lay.strategy, "shards_parameters") > 0
    gathered = 2.0 * params.held(sharded).all
    from_where = np.where(np.asarray(work.offload_params) == NVME, drive, link)
    fetch = np.where(
        (np.asarray(work.offload_params) > 0) & sharded, 2 * gathered / from_where, 0.0
    )
    kept = offloaded_bytes(
        work.model,
        tokens=tokens_per_rank(work, lay),
        tp=lay.tp,
        sequence_parallel=splits_sequence(work, lay),
        recompute=lay.recompute,
        selective_kept=selective_kept(work, eff),
        offloaded=work.offloads_activations,
        kept_scores_of=np.where(work.unfused_attention, work.seq_len, 0.0),
    )
    kept = eff.activation_copies * kept
    exposed, _ = overlapped_s(m * (fetch + 2 * layers * kept / link), left_s, 0.0, eff)
    return once + exposed
