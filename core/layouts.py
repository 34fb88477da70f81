"""Columns of candidate layouts, and the named constraints that say why one is out."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from core.numeric import Numeric
from core.sharding import INDEX, STRATEGIES
from core.transformer import Transformer, is_moe

RECOMPUTE = ("none", "selective", "full", "offload")  # offload: full, with its inputs on the host
SEARCHED_RECOMPUTE = RECOMPUTE[:3]
SCHEDULES = ("naive", "gpipe", "1f1b", "interleaved", "zero_bubble")
CONTEXT_METHODS = ("ring", "all_gather", "ulysses")
LONG_SEQUENCE = 32_768  # tokens from which context parallelism is searched
MICRO_BATCH_SIZES = (1, 2, 4, 8, 16)
SEARCHED = ("ddp", "zero1", "zero2", "zero3", "fsdp2", "hsdp")  # the others on request


@dataclass(frozen=True, slots=True, kw_only=True)
class Layouts:
    """How a job is cut over its GPUs, one candidate a row. Ranks are numbered tp, cp, dp, pp:
    neighbours in tp are neighbours in the node. Experts are spread over ep of the dp x cp x tp
    ranks of a stage (ep counts ranks, etp cuts one expert)."""

    num_gpus: Numeric
    tp: Numeric
    pp: Numeric
    virtual_stages: Numeric
    cp: Numeric
    ep: Numeric
    etp: Numeric
    dp_replicate: Numeric
    dp_shard: Numeric
    strategy: Numeric  # core.sharding.INDEX
    micro_batch_size: Numeric
    num_microbatches: Numeric
    recompute: Numeric  # index into RECOMPUTE
    sequence_parallel: Numeric  # 1 with Megatron-style sequence parallelism beside tp
    schedule: Numeric = 2.0  # index into SCHEDULES
    context_method: Numeric = 0.0  # index into CONTEXT_METHODS
    reshard: Numeric = 1.0  # 0: FSDP keeps the weights gathered from forward to backward

    def take(self, rows: NDArray[np.intp]) -> Layouts:
        """The layouts of the given row numbers."""
        columns = {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)}
        return Layouts(**{n: c[rows] if c.ndim else c for n, c in columns.items()})


def dp(layouts: Layouts) -> Numeric:
    """Data-parallel degree."""
    return np.multiply(layouts.dp_replicate, layouts.dp_shard)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """Why candidates are out: a stable word, a sentence, and how many it removed first."""

    reason: str
    sentence: str
    count: int


# Why a layout is out: a stable word and a sentence, in the order in which they are asked.
RULES = {
    "gpu_count": "tp x pp x cp does not divide the number of GPUs",
    "heads": "tp does not divide the attention heads",
    "kv_heads": "tp and the number of KV heads do not divide one another",
    "state_heads": "tp does not divide the heads or groups of the state-space layers",
    "ffn": "tp does not divide the MLP size",
    "layers": "more pipeline stages than layers",
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
    "nothing_to_shard": "one data-parallel rank has nothing to shard",
    "hybrid": "HSDP needs more ranks than one node holds, in whole groups",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a scenario fixes of the layout; empty and None are searched."""

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
    fetches_params: bool = False  # weights live on the host (offload_params)
    offloads: bool = False  # weights or optimizer live on the host: one GPU may shard alone


def recompute_kinds(choices: Choices) -> list[int]:
    """Numbers of the recompute modes to try, the least first."""
    return sorted(RECOMPUTE.index(r) for r in (choices.recomputes or SEARCHED_RECOMPUTE))


def candidates(
    *,
    model: Transformer,
    seq_len: int,
    global_batch_size: int,
    num_gpus: int,
    gpus_per_node: int,
    scale_up_domain: int,
    choices: Choices,
) -> tuple[Layouts, list[Constraint]]:
    """Every legal layout of one job on `num_gpus`, and what the named constraints removed.

    Degrees are powers of two; a degree that is given is the only one tried. Context
    parallelism is searched for long sequences, virtual stages for the interleaved schedule.
    Rows that differ in recompute only are neighbours, the least recompute first.
    """
    c = choices
    layers = int(np.max(model.num_layers))
    moe = bool(np.any(is_moe(model)))
    cps = _powers(min(num_gpus, 64)) if seq_len >= LONG_SEQUENCE else [1]
    chunks = [1, 2, 4, 8] if c.schedule == "interleaved" else [1]  # one chunk is plain 1F1B
    axes = (
        [c.tp] if c.tp else _powers(min(num_gpus, max(scale_up_domain, 1))),
        [c.pp] if c.pp else [p for p in _powers(num_gpus) if p <= layers],
        [c.cp] if c.cp else cps,
        [c.virtual_stages] if c.virtual_stages else chunks,
        [c.micro_batch_size] if c.micro_batch_size else list(MICRO_BATCH_SIZES),
        [INDEX[n] for n in c.shardings] or [INDEX[n] for n in SEARCHED],
        [c.ep] if c.ep else (_powers(int(np.max(model.num_experts))) if moe else [1]),
        recompute_kinds(c),
    )
    grid = np.meshgrid(*(np.array(a, dtype=float) for a in axes), indexing="ij")
    t, p, cp, v, b, strategy, ep, recompute = (g.ravel() for g in grid)
    # A job without a pipeline has no chunks: one row of it is enough.
    once = (p > 1) | (v == float(c.virtual_stages or chunks[0]))
    t, p, cp, v, b, strategy, ep, recompute = (
        x[once] for x in (t, p, cp, v, b, strategy, ep, recompute)
    )
    v = np.where(p > 1, v, 1.0)
    ranks = num_gpus / (t * p * cp)
    hybrid = strategy == INDEX["hsdp"]
    in_node = np.maximum(gpus_per_node / (t * cp), 1.0)
    shard = np.where(hybrid, np.minimum(in_node, ranks), ranks)
    whole_experts = np.where((ep == 1) & moe, t, 1.0)
    layouts = Layouts(
        num_gpus=np.full_like(t, num_gpus),
        tp=t,
        pp=p,
        virtual_stages=v,
        cp=cp,
        ep=ep,
        etp=whole_experts if c.etp is None else np.full_like(t, c.etp),
        dp_replicate=ranks / shard,
        dp_shard=shard,
        strategy=strategy,
        micro_batch_size=b,
        num_microbatches=global_batch_size / (ranks * b),
        recompute=recompute,
        sequence_parallel=(t > 1).astype(float),
        schedule=np.full_like(t, SCHEDULES.index(c.schedule)),
        context_method=np.full_like(t, CONTEXT_METHODS.index(c.context_method)),
        reshard=np.full_like(t, float(c.reshard)),
    )
    return _constrained(
        layouts,
        model=model,
        seq_len=seq_len,
        global_batch_size=global_batch_size,
        choices=c,
    )


def _constrained(
    layouts: Layouts,
    *,
    model: Transformer,
    seq_len: int,
    global_batch_size: int,
    choices: Choices,
) -> tuple[Layouts, list[Constraint]]:
    """Drop what the named constraints forbid; each candidate is counted by the first."""
    out = np.zeros(np.shape(layouts.tp), dtype=bool)
    removed = []
    broken = broken_rules(
        layouts,
        model=model,
        seq_len=seq_len,
        global_batch_size=global_batch_size,
        choices=choices,
    )
    for reason, forbidden in broken.items():
        first = forbidden & ~out
        removed.append(Constraint(reason=reason, sentence=RULES[reason], count=int(first.sum())))
        out |= first
    return layouts.take(np.flatnonzero(~out)), removed


def broken_rules(
    layouts: Layouts,
    *,
    model: Transformer,
    seq_len: int,
    global_batch_size: int,
    choices: Choices,
) -> dict[str, NDArray[np.bool_]]:
    """Of every rule, in the order of RULES: the rows of `layouts` (columns) that break it."""
    t, p, cp = (np.asarray(x) for x in (layouts.tp, layouts.pp, layouts.cp))
    v, ep, etp = (np.asarray(x) for x in (layouts.virtual_stages, layouts.ep, layouts.etp))
    ranks = np.asarray(dp(layouts))
    per_step = ranks * layouts.micro_batch_size
    s = np.asarray(layouts.strategy, dtype=int)
    sharded = np.array([x.shards_optimizer for x in STRATEGIES])[s]
    replicas, shards = np.asarray(layouts.dp_replicate), np.asarray(layouts.dp_shard)
    ulysses = np.asarray(layouts.context_method) == CONTEXT_METHODS.index("ulysses")
    interleaved = (v > 1) & (np.asarray(layouts.schedule) == SCHEDULES.index("interleaved"))
    rules = (
        ("gpu_count",
         (ranks % 1 != 0) | (ranks < 1)),
        ("heads", model.num_attention_heads % t != 0),
        ("kv_heads",
         (model.num_kv_heads % t != 0) & (t % np.maximum(model.num_kv_heads, 1) != 0)),
        ("state_heads",
         (np.asarray(model.ssm_num_heads) % t != 0) | (np.asarray(model.ssm_num_groups) % t != 0)
         | (np.asarray(model.linear_num_key_heads) % t != 0)),
        ("ffn", model.ffn_hidden_size % t != 0),
        ("layers", p * v > model.num_layers),
        ("sequence", (cp > 1) & (seq_len % (np.where(ulysses, 1, 2) * cp) != 0)),
        ("ulysses_heads",
         ulysses & (cp > 1)
         & ((model.num_attention_heads % (t * cp) != 0)
            | ((model.num_kv_heads % (t * cp) != 0)
               & ((t * cp) % np.maximum(model.num_kv_heads, 1) != 0)))),
        ("batch",
         (per_step > global_batch_size) | (global_batch_size % np.maximum(per_step, 1) != 0)),
        # Layers need not divide: published runs put 126 of them on 8 x 4 chunks.
        ("interleaving", interleaved & (np.asarray(layouts.num_microbatches) % p != 0)),
        ("virtual_stages",
         np.full(t.shape,
                 (choices.virtual_stages or 1) > 1 and choices.schedule != "interleaved")),
        ("no_pipeline", (p == 1) & ((choices.virtual_stages or 1) > 1)),
        ("experts",
         (ep * etp > 1) & (np.asarray(model.num_experts) > 0)
         & ((np.asarray(model.num_experts) % ep != 0) | ((ranks * t * cp) % (ep * etp) != 0))),
        ("expert_cut", (etp > 1) & (t % np.maximum(etp, 1) != 0)),
        ("no_experts",
         ((ep > 1) | (etp > 1)) & (np.asarray(model.num_experts) == 0)),
        ("expert_size",
         (etp > 1) & (np.asarray(model.moe_ffn_hidden_size) % etp != 0)),
        ("pipeline_sharding",
         (p > 1) & np.isin(s, [INDEX[n] for n in ("zero2", "zero3", "zeropp")])),
        ("offload_params",
         choices.fetches_params & ~np.array([x.shards_parameters for x in STRATEGIES])[s]),
        ("nothing_to_shard",
         sharded & (shards * cp == 1) & (not choices.offloads)),
        ("hybrid",
         (s == INDEX["hsdp"]) & ((replicas < 2) | (replicas % 1 != 0) | (shards % 1 != 0))),
    )  # fmt: skip
    return {reason: np.broadcast_to(np.asarray(b, dtype=bool), t.shape) for reason, b in rules}


def _powers(limit: int) -> list[int]:
    """1, 2, 4, ... up to limit."""
    return [2**i for i in range(int(limit).bit_length()) if 2**i <= limit]
