"""Knobs of a layout, and the layouts that turning one or two of them gives, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product

import numpy as np

from core.explain.explain import Floats
from core.layout.degrees import (
    context_parallel,
    divisors,
    micro_batch_sizes,
    virtual_stages,
)
from core.layout.layouts import (
    CONTEXT_METHODS,
    RECOMPUTE,
    SCHEDULES,
    SEARCHED,
    SEARCHED_RECOMPUTE,
    Layouts,
)
from core.layout.sharding import INDEX, STRATEGIES
from core.layout.workload import OFFLOAD
from core.memory.offload import LEVELS
from core.model.transformer import is_moe, total_params
from core.numeric import as_float
from core.search.job import Machine, PlanJob
from core.search.plan import Layout

# In words what core.memory.offload.LEVELS are.
OFFLOADS = ("all on the device", "optimizer on the host", "optimizer and weights on the host")
KNOBS = (
    "tp", "pp", "virtual_stages", "cp", "ep", "micro_batch_size", "sharding", "recompute",
    "offload", "num_gpus", "accelerator",
)  # fmt: skip
MOST_KNOBS = 2
LARGEST = 131_072  # GPUs


def start_of(base: Layout, num_gpus: int) -> dict[str, float]:
    """The settings of the layout itself, as numbers."""
    degrees = ("tp", "pp", "virtual_stages", "cp", "ep", "micro_batch_size")
    return {
        **{n: float(getattr(base, n)) for n in degrees},
        "sharding": float(INDEX[base.sharding]),
        "recompute": float(RECOMPUTE.index(base.recompute)),
        "offload": level_of(base),
        "num_gpus": float(num_gpus),
        "accelerator": 0.0,
    }


def level_of(base: Layout) -> float:
    """Index in offload.LEVELS of what the layout keeps on the host; one beyond them: another
    place."""
    here = (OFFLOAD[base.offload_optimizer], OFFLOAD[base.offload_params])
    return float(LEVELS.index(here)) if here in LEVELS else float(len(LEVELS))


def values_of(job: PlanJob, base: Layout, machines: Sequence[Machine]) -> dict[str, list[float]]:
    """The values that each knob is turned to, without its present one."""
    model, cluster, num_gpus = job.work.model, job.machine.cluster, job.num_gpus
    choices = job.question.choices
    domain = max(as_float(cluster.scale_up_domain), float(base.tp))
    layers = float(np.max(model.num_layers))
    experts = float(np.max(model.num_experts)) if bool(np.any(is_moe(model))) else 1.0
    searched = context_parallel(
        num_gpus=num_gpus,
        seq_len=int(np.asarray(job.work.seq_len)),
        global_batch_size=int(np.asarray(job.work.global_batch_size)),
        params=float(np.max(total_params(model))),
    )
    most_cp = max(*searched, 64.0 if base.cp > 1 else 1.0)
    chunks = virtual_stages(layers=int(layers), pp=base.pp)
    chunks = chunks if base.schedule == "interleaved" else [1]
    levels = range(len(LEVELS)) if level_of(base) < len(LEVELS) else ()
    tried: dict[str, list[float]] = {
        "tp": _degrees(domain, num_gpus),
        "pp": _degrees(min(layers, float(num_gpus)), num_gpus),
        "virtual_stages": [float(c) for c in chunks],
        "cp": _degrees(min(most_cp, float(num_gpus)), num_gpus),
        "ep": _degrees(experts, int(experts)),
        "micro_batch_size": [
            float(b) for b in micro_batch_sizes(
                global_batch_size=int(np.asarray(job.work.global_batch_size))
            )
        ],
        "sharding": [float(INDEX[n]) for n in (choices.shardings or SEARCHED)],
        "recompute": [
            float(RECOMPUTE.index(r)) for r in (choices.recomputes or SEARCHED_RECOMPUTE)
        ],
        "offload": [float(n) for n in levels],
        "num_gpus": [float(n) for n in (num_gpus // 2, num_gpus * 2, num_gpus * 4)
                     if 1 <= n <= min(LARGEST, job.machine.most_gpus)],
        "accelerator": [float(n) for n in range(1, len(machines))],
    }  # fmt: skip
    start = start_of(base, num_gpus)
    return {k: [v for v in tried[k] if v != start[k]] for k in KNOBS}


def _degrees(limit: float, whole: int) -> list[float]:
    """Powers of two and divisors of `whole`, up to a limit."""
    powers = {2**i for i in range(int(limit).bit_length())}
    return [float(n) for n in sorted({*powers, *divisors(whole)}) if n <= limit]


def turned_rows(values: Mapping[str, list[float]], start: Mapping[str, float]) -> dict[str, Floats]:
    """One row for each turn of one knob, and of each two."""
    column = {k: n for n, k in enumerate(KNOBS)}
    turns: list[tuple[tuple[int, float], ...]] = []
    for many in range(1, MOST_KNOBS + 1):
        for names in combinations(values, many):
            every = product(*(values[n] for n in names))
            turns += [
                tuple((column[n], v) for n, v in zip(names, row, strict=True)) for row in every
            ]
    table = np.tile([start[k] for k in KNOBS], (len(turns), 1))
    for n, turned in enumerate(turns):
        for at, value in turned:
            table[n, at] = value
    return {k: table[:, n] for k, n in column.items()}


def layouts_of(job: PlanJob, base: Layout, rows: Mapping[str, Floats]) -> Layouts:
    """The rows as layouts: data parallelism and micro-batches follow from the knobs."""
    tp, pp, cp, ep = (rows[k] for k in ("tp", "pp", "cp", "ep"))
    ranks = rows["num_gpus"] / (tp * pp * cp)
    in_node = np.maximum(as_float(job.cluster.gpus_per_node) / (tp * cp), 1.0)
    hybrid = rows["sharding"] == INDEX["hsdp"]
    if base.sharding == "hsdp" and base.dp_replicate > 1:
        in_node = np.where((tp == base.tp) & (cp == base.cp), float(base.dp_shard), in_node)
    shard = np.where(hybrid, np.minimum(in_node, ranks), ranks)
    same_ranks = (rows["sharding"] == INDEX[base.sharding]) & (
        ranks == base.dp_replicate * base.dp_shard
    )
    shard = np.where(same_ranks, float(base.dp_shard), shard)
    moe = bool(np.any(is_moe(job.work.model)))
    etp = np.where((ep == 1) & moe, tp, float(base.etp) if base.ep > 1 else 1.0)
    full = np.full_like(tp, 1.0)
    return Layouts(
        num_gpus=rows["num_gpus"],
        tp=tp,
        pp=pp,
        virtual_stages=np.where(pp > 1, rows["virtual_stages"], 1.0),
        cp=cp,
        ep=ep,
        etp=etp,
        dp_replicate=ranks / shard,
        dp_shard=shard,
        strategy=rows["sharding"],
        micro_batch_size=rows["micro_batch_size"],
        num_microbatches=as_float(job.work.global_batch_size) / (ranks * rows["micro_batch_size"]),
        recompute=rows["recompute"],
        sequence_parallel=(tp > 1).astype(float),
        schedule=full * SCHEDULES.index(base.schedule),
        context_method=full * CONTEXT_METHODS.index(base.context_parallel),
        reshard=full * float(base.reshard_after_forward),
        **_places(base, rows["offload"]),
    )


def _places(base: Layout, level: Floats) -> dict[str, Floats]:
    """Where optimizer and weights are kept: as in the layout itself, except in rows that move
    them."""
    own = (OFFLOAD[base.offload_optimizer], OFFLOAD[base.offload_params])
    table = np.array([*LEVELS, own])[level.astype(int)]
    return {"offload_optimizer": table[:, 0], "offload_params": table[:, 1]}


def word_of(knob: str, value: float, machines: Sequence[Machine]) -> str:
    """The value of a knob as text: zero1, full, 8."""
    names: dict[str, Sequence[str]] = {
        "sharding": [s.name for s in STRATEGIES],
        "recompute": RECOMPUTE,
        "offload": (*OFFLOADS, "elsewhere"),
        "accelerator": [m.accelerator.name for m in machines],
    }
    return names[knob][int(value)] if knob in names else f"{value:.0f}"
