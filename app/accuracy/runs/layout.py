"""The layouts that a published run may have, and the least that fits in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from app.accuracy.runs.features import NEW_KERNELS, year_of
from core.evidence.inference import FITS, smallest_degrees, total
from core.layout.layouts import RECOMPUTE, SCHEDULES, Layouts
from core.layout.sharding import INDEX
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.memory import peak_bytes
from core.time.software import decimal_year
from hardware.efficiency import Stack
from hardware.measured import RunInputs
from hardware.measured_model import ModelFacts

FSDP = ("fsdp1", "fsdp2", "hsdp")
SINGLE_SEQUENCES = "2025-04"  # since when torchtitan cuts a batch into them
# Tokens of a micro-batch where a run does not say: about the median of the publications that do,
# with a pipeline, without one, and of fine-tuning without one.
TOKENS_IN_PIPELINE, TOKENS, TOKENS_TUNED = 4096.0, 16384.0, 8192.0
LONG = 4  # stages of a pipeline that is usually interleaved


def layouts_of(
    inputs: RunInputs,
    i: int,
    facts: ModelFacts,
    cluster: Cluster,
    sharding: str,
    *,
    xla: bool = False,
) -> tuple[list[dict[str, float]], bool]:
    """The layouts that the row may have as scalars, and whether its tp and pp were given: the
    smallest degrees first, or where they are given and the micro-batch is not, the usual
    micro-batch first and then smaller ones."""
    tp, pp = float(inputs.tp[i]), float(inputs.pp[i])
    if np.isnan(tp) and xla and sharding in FSDP:
        tp = 1.0  # the default of MaxText's ici_tensor_parallelism; its recipes shard over fsdp
    pod = float(np.asarray(cluster.scale_up_domain)) > 72  # above the largest switched domain
    unit = float(np.asarray(cluster.scale_up_domain if pod else cluster.gpus_per_node))
    tps, pps = smallest_degrees(
        heads=int(facts.transformer.num_attention_heads),
        layers=int(facts.transformer.num_layers),
        num_gpus=int(inputs.num_gpus[i]),
        domain=int(max(cluster.scale_up_domain, 1)),
        tp=tp,
        pp=pp,
    )
    options = [
        _degrees(inputs, i, facts, sharding, float(t), float(p), unit, xla)
        for t, p in zip(tps, pps, strict=True)
    ]
    if len(options) > 1:
        return options, False
    cut = _cuts_by_rule(inputs, i, sharding, float(options[0]["pp"]), xla)
    if np.isnan(inputs.micro_batch[i]) and not cut:
        options = list(_with_smaller_microbatches(options[0]))
    return options, not np.isnan(tp + pp)


def usual_chunks(layout: Mapping[str, float], layers: float, chunk_layers: float) -> float:
    """Chunks of each stage where a row does not say: in a pipeline of LONG stages or more, and with
    micro-batches in whole rounds of it, the most that divide a stage's layers and leave at least
    `chunk_layers` to each."""
    pp, each = layout["pp"], layers / layout["pp"]
    if pp < LONG or layout["num_microbatches"] % pp:
        return 1.0
    fitting = [v for v in range(2, int(each / chunk_layers) + 1) if each % v == 0]
    return float(max(fitting, default=1))


def _with_smaller_microbatches(layout: dict[str, float]) -> Iterator[dict[str, float]]:
    """The layout, and as many sequences in more micro-batches, halved while they divide."""
    micro, count = layout["micro_batch_size"], layout["num_microbatches"]
    yield layout
    while micro >= 2 and micro % 2 == 0:
        micro, count = micro / 2, count * 2
        yield layout | {"micro_batch_size": micro, "num_microbatches": count}


def first_that_fits(
    options: list[dict[str, float]],
    work: Workload,
    cluster: Cluster,
    eff: Efficiency,
    *,
    recomputes: Sequence[str],
) -> dict[str, float]:
    """The first layout that fits in memory, with the first of `recomputes` with which one does;
    where none does, the one that needs the least."""
    if len(options) == 1:
        return options[0]
    columns = Layouts(**{n: np.array([o[n] for o in options]) for n in options[0]})
    for name in recomputes:
        again = np.full(len(options), float(RECOMPUTE.index(name)))
        need = total(peak_bytes(work, replace(columns, recompute=again), cluster, eff))
        fits = np.flatnonzero(need <= np.asarray(cluster.memory_bytes))
        if len(fits):
            return options[int(fits[0])]
    return options[int(np.argmin(need))]


def sharding_that_fits(
    inputs: RunInputs,
    i: int,
    facts: ModelFacts,
    work: Workload,
    cluster: Cluster,
    eff: Efficiency,
    sharding: str,
) -> str:
    """The sharding of a run of several GPUs that states none, where its stack's is `sharding`, of
    whole replicas: ZeRO-3 if these do not fit with full recompute, without or with the degrees that
    the row states."""
    tp, pp = given_or(inputs.tp[i], 1.0), given_or(inputs.pp[i], 1.0)
    unit = float(np.asarray(cluster.gpus_per_node))
    whole = _degrees(inputs, i, facts, sharding, tp, pp, unit, xla=False)
    whole["recompute"] = float(RECOMPUTE.index("full"))
    need = total(peak_bytes(work, Layouts(**whole), cluster, eff))
    return sharding if float(need) <= FITS * float(np.asarray(cluster.memory_bytes)) else "zero3"


def gathers_once(stack: Stack) -> bool:
    """Whether ZeRO-2 in a stack's own words is FSDP that does not reshard after forward: it has no
    other way to shard gradients and states alone (torchtitan's fsdp_reshard_after_forward=never,
    PyTorch's SHARD_GRAD_OP). The weights are then masters of their own, gathered once a step."""
    return "zero2" not in stack.shardings and bool({"fsdp1", "fsdp2"} & set(stack.shardings))


def _degrees(
    inputs: RunInputs,
    i: int,
    facts: ModelFacts,
    sharding: str,
    tp: float,
    pp: float,
    unit: float,
    xla: bool,
) -> dict[str, float]:
    """The layout for a given tp and pp. Hybrid sharding shards over `unit` GPUs."""
    gpus = float(inputs.num_gpus[i])
    cp, ep = given_or(inputs.cp[i], 1.0), given_or(inputs.ep[i], 1.0)
    ranks = max(gpus / (tp * pp * cp), 1.0)
    moe = float(facts.transformer.num_experts) > 0
    etp = given_or(inputs.etp[i], tp if moe and ep == 1 else 1.0)
    micro, batch = inputs.micro_batch[i], inputs.global_batch[i]
    if np.isnan(micro):
        if np.isnan(batch):
            micro = 1.0 if xla else _usual_sequences(inputs, i, np.inf, pp)
        elif _cuts_by_rule(inputs, i, sharding, pp, xla):
            micro = max(batch / ranks / pp, max(min(batch / ranks, 1.0), 1e-3))
        else:
            micro = _usual_sequences(inputs, i, batch / ranks, pp)
    if np.isnan(batch):
        batch = ranks * micro * max(pp * 4, 1.0)
    shard = given_or(inputs.fsdp_degree[i], ranks if sharding != "hsdp" else unit)
    shard = min(shard / cp if shard > ranks else shard, ranks)
    if sharding not in ("fsdp2", "hsdp", "zero1"):
        shard = ranks
    return {
        "num_gpus": gpus,
        "tp": tp,
        "pp": pp,
        "virtual_stages": given_or(inputs.vpp[i], 1.0) if pp > 1 else 1.0,
        "cp": cp,
        "ep": ep,
        "etp": etp,
        "dp_replicate": ranks / shard,
        "dp_shard": shard,
        "strategy": float(INDEX[sharding]),
        "micro_batch_size": float(micro),
        "num_microbatches": max(float(batch) / (ranks * float(micro)), 1.0),
        "recompute": 0.0,
        "sequence_parallel": 1.0 if tp > 1 and _splits_sequence(inputs, i) else 0.0,
        "schedule": float(SCHEDULES.index("1f1b")),
        "context_method": 0.0,
        "reshard": 1.0,
        "offload_optimizer": 0.0,  # the workload holds a run's offload
        "offload_params": 0.0,
    }


def _cuts_by_rule(inputs: RunInputs, i: int, sharding: str, pp: float, xla: bool) -> bool:
    """Whether the software cuts a batch itself: FSDP stacks into as many micro-batches as there are
    stages (pytorch/torchtitan@b5bcd76c: pipeline_parallel_microbatches) until April 2025 (its pull
    request 1073); JAX recipes give a batch per device and do not accumulate
    (AI-Hypercomputer/maxtext@09d2025bc: src/MaxText/configs/base.yml: per_device_batch_size,
    gradient_accumulation_steps)."""
    old = year_of(inputs, i) < decimal_year(SINGLE_SEQUENCES)
    return xla or (pp > 1 and sharding in FSDP and old)


def _usual_sequences(inputs: RunInputs, i: int, most: float, pp: float) -> float:
    """Sequences of a usual micro-batch: the largest power of two in its tokens that divides what a
    replica has of a batch, `most`, and what it has where that is less than one."""
    if most < 1:
        return max(most, 1e-3)
    tuned = str(inputs.task[i]) != "pretrain"
    tokens = TOKENS_IN_PIPELINE if pp > 1 else TOKENS_TUNED if tuned else TOKENS
    micro = 1.0
    while 2 * micro * inputs.seq_len[i] <= tokens and (np.isinf(most) or most % (2 * micro) == 0):
        micro *= 2
    return micro


def _splits_sequence(inputs: RunInputs, i: int) -> bool:
    """Whether the run uses sequence parallelism: it is recent, or has selective recompute.

    Both techniques were published in one paper (arXiv:2205.05198).
    """
    is_new = year_of(inputs, i) >= decimal_year(NEW_KERNELS)
    return is_new or str(inputs.recompute[i]) == "selective"


def given_or(value: float, default: float) -> float:
    """The value, or the default where the run does not state one."""
    return default if np.isnan(value) else float(value)
