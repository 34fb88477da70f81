"""Columns of candidate layouts, and the named rules that exclude one."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

import numpy as np
from numpy.typing import NDArray

from core.layout.degrees import MICRO_BATCH_SIZES as MICRO_BATCH_SIZES
from core.layout.sharding import INDEX, STRATEGIES
from core.model.transformer import Transformer
from core.numeric import Numeric

# norm_act: norms, the experts' activations and latent projections; mlp: the MLP or the experts;
# offload: full, with its inputs on the host. A later one keeps less.
RECOMPUTE = ("none", "selective", "norm_act", "mlp", "full", "offload")
SEARCHED_RECOMPUTE = ("none", "selective", "full")
SCHEDULES = ("naive", "gpipe", "1f1b", "interleaved", "zero_bubble")
# Layers that a stack can place on its stages: equally many; or one more on the first stages, or one
# fewer on the first and the last; or any number (a list by stage).
LAYER_SPLITS = ("even", "fuller", "any")
CONTEXT_METHODS = ("ring", "all_gather", "ulysses")
SEARCHED = ("ddp", "zero1", "zero2", "zero3", "fsdp2", "hsdp")  # the others only on request


@dataclass(frozen=True, slots=True, kw_only=True)
class Layouts:
    """How a job is divided over its GPUs, one candidate per row. Ranks are numbered tp, cp, dp, pp:
    neighbours in tp are neighbours in the node. Experts are spread over ep of the dp x cp x tp
    ranks of a stage (ep counts ranks, etp divides one expert)."""

    num_gpus: Numeric
    tp: Numeric
    pp: Numeric
    virtual_stages: Numeric
    cp: Numeric
    ep: Numeric
    etp: Numeric
    dp_replicate: Numeric
    dp_shard: Numeric
    strategy: Numeric  # core.layout.sharding.INDEX
    micro_batch_size: Numeric
    num_microbatches: Numeric
    recompute: Numeric  # index into RECOMPUTE
    sequence_parallel: Numeric  # 1 with Megatron-style sequence parallelism in addition to tp
    schedule: Numeric = 2.0  # index into SCHEDULES
    context_method: Numeric = 0.0  # index into CONTEXT_METHODS
    reshard: Numeric = 1.0  # 0: FSDP keeps the weights gathered from forward to backward
    offload_optimizer: Numeric = 0.0  # where it waits: a number of core.layout.workload.OFFLOAD
    offload_params: Numeric = 0.0

    def take(self, rows: NDArray[np.intp]) -> Layouts:
        """The layouts of the given row numbers."""
        columns = {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)}
        return Layouts(**{n: c[rows] if c.ndim else c for n, c in columns.items()})


def dp(layouts: Layouts) -> Numeric:
    """Data-parallel degree."""
    return np.multiply(layouts.dp_replicate, layouts.dp_shard)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A rule that excludes candidates: a stable word, a sentence, and how many it was the first to
    remove."""

    reason: str
    sentence: str
    count: int


# Rules that a layout may break: a stable word and a sentence each, in the order of checking.
RULES = {
    "gpu_count": "tp x pp x cp does not divide the number of GPUs",
    "heads": "tp does not divide the attention heads",
    "kv_heads": "tp and the number of KV heads do not divide one another",
    "state_heads": "tp does not divide the heads or groups of the state-space layers",
    "ffn": "tp does not divide the MLP size",
    "layers": "more pipeline stages than layers",
    "uneven": "the stack cannot divide the layers among so many stages",
    "sequence": "2 x cp (cp with Ulysses) does not divide the sequence",
    "ulysses_heads": "tp x cp does not divide the attention heads, or it and the KV heads do not "
    "divide one another, as Ulysses needs",
    "batch": "the global batch is no multiple of dp x micro-batch",
    "interleaving": "interleaving needs pp to divide the number of micro-batches",
    "virtual_stages": "virtual stages belong to the interleaved schedule",
    "no_pipeline": "virtual stages need a pipeline, pp of at least 2",
    "experts": "ep x etp does not divide the experts and the ranks of a stage",
    "expert_cut": "etp does not divide tp",
    "no_experts": "the model has no experts to spread",
    "expert_size": "etp does not divide the size of an expert",
    "pipeline_sharding": "ZeRO-2, ZeRO-3 and ZeRO++ do not combine with a pipeline",
    "offload_params": "only ZeRO-3 and FSDP fetch weights from the host",
    "offload_optimizer": "ZeRO keeps its optimizer on the host; FSDP keeps it where the weights "
    "are",
    "nothing_to_shard": "one data-parallel rank has nothing to shard",
    "hybrid": "HSDP needs more ranks than one node holds, in whole groups",
    "shard_group": "the ranks that share one copy are not as many as asked for",
    "launch_file": "the stack's launch file does not combine this strategy with it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The parts of the layout that a scenario fixes; empty and None are searched."""

    shardings: tuple[str, ...] = ()
    recomputes: tuple[str, ...] = ()
    tp: int | None = None
    pp: int | None = None
    cp: int | None = None
    ep: int | None = None
    etp: int | None = None
    virtual_stages: int | None = None
    micro_batch_size: int | None = None
    schedule: str = "1f1b"
    context_method: str = "ring"
    reshard: bool = True
    dp_shard: int | None = None
    fetches_params: bool = False  # weights live on the host (offload_params)
    offloads: bool = False  # weights or optimizer live on the host: sharding is allowed on one GPU
    searches_offload: bool = False  # also try the optimizer, then the weights, on the host
    layer_split: str = "any"  # of LAYER_SPLITS
    # Pairs of a strategy and what its launch file does not combine with it: see `_is_apart`.
    apart: tuple[tuple[str, str], ...] = ()
    tp_across_nodes: bool = False  # tensor parallelism may leave the scale-up domain


def recompute_kinds(choices: Choices) -> list[int]:
    """Numbers of the recompute modes to try, the least first."""
    return sorted(RECOMPUTE.index(r) for r in (choices.recomputes or SEARCHED_RECOMPUTE))


def broken_rules(
    layouts: Layouts,
    *,
    model: Transformer,
    seq_len: int,
    global_batch_size: int,
    choices: Choices,
) -> dict[str, NDArray[np.bool_]]:
    """For every rule, in the order of RULES, the rows of `layouts` (columns) that break it."""
    rules = {
        **degree_rules(layouts, model=model, seq_len=seq_len, layer_split=choices.layer_split),
        **batch_rules(layouts, global_batch_size=global_batch_size, choices=choices),
        **expert_rules(layouts, model=model),
        **strategy_rules(layouts, choices=choices),
    }
    shape = np.shape(layouts.tp)
    return {r: np.broadcast_to(np.asarray(rules[r], dtype=bool), shape) for r in RULES}


Broken = dict[str, NDArray[np.bool_]]


def degree_rules(
    layouts: Layouts, *, model: Transformer, seq_len: int, layer_split: str = "any"
) -> Broken:
    """Rules of tp, pp, cp and virtual stages."""
    t, p, cp = (np.asarray(x) for x in (layouts.tp, layouts.pp, layouts.cp))
    ranks = np.asarray(dp(layouts))
    ulysses = np.asarray(layouts.context_method) == CONTEXT_METHODS.index("ulysses")
    kv_heads = np.maximum(model.num_kv_heads, 1)
    return {
        "gpu_count": (ranks % 1 != 0) | (ranks < 1),
        "heads": model.num_attention_heads % t != 0,
        "kv_heads": (model.num_kv_heads % t != 0) & (t % kv_heads != 0),
        "state_heads": (np.asarray(model.ssm_num_heads) % t != 0)
        | (np.asarray(model.ssm_num_groups) % t != 0)
        | (np.asarray(model.linear_num_key_heads) % t != 0),
        "ffn": model.ffn_hidden_size % t != 0,
        # Layers need not divide: published runs put 126 of them on 8 x 4 chunks.
        "layers": p * layouts.virtual_stages > model.num_layers,
        "uneven": ~_divides(model.num_layers, p * layouts.virtual_stages, layer_split),
        "sequence": (cp > 1) & (seq_len % (np.where(ulysses, 1, 2) * cp) != 0),
        "ulysses_heads": ulysses
        & (cp > 1)
        & (
            (model.num_attention_heads % (t * cp) != 0)
            | ((model.num_kv_heads % (t * cp) != 0) & ((t * cp) % kv_heads != 0))
        ),
    }


def _divides(num_layers: Numeric, stages: NDArray[np.float64], split: str) -> NDArray[np.bool_]:
    """Whether a stack with this kind of division can place the layers."""
    even = np.equal(np.mod(num_layers, stages), 0)
    ends = np.equal(np.mod(np.add(num_layers, 2), stages), 0) & (np.add(num_layers, 2) > stages)
    # Stages of `most` layers, counted from the first, are as many as asked for.
    most = np.ceil(np.divide(num_layers, stages))
    first = np.ceil(np.divide(num_layers, most)) == stages
    return np.asarray(even | ((ends | first) & (split == "fuller")) | (split == "any"))


def batch_rules(layouts: Layouts, *, global_batch_size: int, choices: Choices) -> Broken:
    """Rules of the micro-batch and of the pipeline schedule."""
    p, v = np.asarray(layouts.pp), np.asarray(layouts.virtual_stages)
    per_step = np.asarray(dp(layouts)) * layouts.micro_batch_size
    interleaved = (v > 1) & (np.asarray(layouts.schedule) == SCHEDULES.index("interleaved"))
    wanted = (choices.virtual_stages or 1) > 1
    return {
        "batch": (per_step > global_batch_size)
        | (global_batch_size % np.maximum(per_step, 1) != 0),
        "interleaving": interleaved & (np.asarray(layouts.num_microbatches) % p != 0),
        "virtual_stages": np.full(p.shape, wanted and choices.schedule != "interleaved"),
        "no_pipeline": (p == 1) & wanted,
    }


def expert_rules(layouts: Layouts, *, model: Transformer) -> Broken:
    """Rules of ep and etp."""
    t, ep, etp = (np.asarray(x) for x in (layouts.tp, layouts.ep, layouts.etp))
    experts = np.asarray(model.num_experts)
    stage_ranks = np.asarray(dp(layouts)) * t * layouts.cp
    return {
        "experts": (ep * etp > 1)
        & (experts > 0)
        & ((experts % ep != 0) | (stage_ranks % (ep * etp) != 0)),
        "expert_cut": (etp > 1) & (t % np.maximum(etp, 1) != 0),
        "no_experts": ((ep > 1) | (etp > 1)) & (experts == 0),
        "expert_size": (etp > 1) & (np.asarray(model.moe_ffn_hidden_size) % etp != 0),
    }


def strategy_rules(layouts: Layouts, *, choices: Choices) -> Broken:
    """Rules of the data-parallel strategy and of offloading to the host."""
    s = np.asarray(layouts.strategy, dtype=int)
    replicas, shards = np.asarray(layouts.dp_replicate), np.asarray(layouts.dp_shard)
    optimizer, params = np.asarray(layouts.offload_optimizer), np.asarray(layouts.offload_params)
    alone = (shards * layouts.cp == 1) & (optimizer + params == 0) & (not choices.offloads)
    searched = choices.searches_offload & (optimizer > 0) & (params == 0)
    return {
        "pipeline_sharding": (np.asarray(layouts.pp) > 1) & _NO_PIPELINE[s],
        "offload_params": (choices.fetches_params | (params > 0)) & ~_SHARDS_PARAMS[s],
        "offload_optimizer": searched & ~_ZERO[s],
        "nothing_to_shard": _SHARDS_OPTIMIZER[s] & alone,
        "hybrid": (s == INDEX["hsdp"])
        & ((replicas < 2) | (replicas % 1 != 0) | (shards % 1 != 0) | (shards * layouts.cp < 2)),
        "shard_group": shards != (choices.dp_shard or shards),
        "launch_file": _is_apart(layouts, choices),
    }


def _is_apart(layouts: Layouts, choices: Choices) -> NDArray[np.bool_]:
    """Rows that combine a strategy with what it must not be combined with: a degree above 1 (tp,
    pp, cp, ep, etp, dp), or states on the host (cpu/none: of the optimizer alone; cpu/cpu)."""
    s = np.asarray(layouts.strategy, dtype=int)
    optimizer, params = np.asarray(layouts.offload_optimizer), np.asarray(layouts.offload_params)
    found = np.zeros(s.shape, dtype=bool)
    for what, strategies in _apart_from(choices.apart):
        rows: NDArray[np.bool_]
        if "/" in what:
            rows = (params > 0) if what == "cpu/cpu" else (optimizer > 0) & (params == 0)
        else:
            rows = np.asarray(dp(layouts) if what == "dp" else getattr(layouts, what)) > 1
        if np.any(rows):
            found |= strategies[s] & rows
    return found


@cache
def _apart_from(apart: tuple[tuple[str, str], ...]) -> tuple[tuple[str, NDArray[np.bool_]], ...]:
    """What must not be combined, and whether with each strategy."""
    return tuple(
        (what, np.array([(x.name, what) in apart for x in STRATEGIES]))
        for what in dict.fromkeys(what for _, what in apart)
    )


_SHARDS_OPTIMIZER = np.array([x.shards_optimizer for x in STRATEGIES])
_SHARDS_PARAMS = np.array([x.shards_parameters for x in STRATEGIES])
_NO_PIPELINE = np.array([x.name in ("zero2", "zero3", "zeropp") for x in STRATEGIES])
# DeepSpeed offloads the optimizer of ZeRO-1 to ZeRO-3 alone (docs/config-json), Megatron-Core that
# of its distributed optimizer; PyTorch's FSDP offloads weights, gradients and optimizer together.
_ZERO = np.array([x.name in ("zero1", "zero2", "zero3", "zeropp") for x in STRATEGIES])
