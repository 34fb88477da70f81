"""Claims about what sharding saves, from the accountings of core/evidence/published_claims.py."""

from __future__ import annotations

import math
from functools import partial

from app.guides.claim_text import Evaluations, Ours, exactly, number
from core.evidence import published_claims
from core.numeric import as_float

ZERO, PYTORCH = published_claims.ACCOUNTINGS[:2]  # 2 + 2 + 12 bytes; fp32 throughout: 4 + 4 + 8
ZERO_GPUS = 64
FSDP_GPUS = 4  # full sharding saves a factor equal to the GPU count, so "4x" means 4
SHARD_GRAD_OP, FULL_SHARD = 2, 3  # as stages of ZeRO


def _saved(accounting: published_claims.Accounting, stage: int, shards: float) -> float:
    return as_float(
        published_claims.state_saving(accounting=accounting, stage=stage, shards=shards)
    )


def _zero(stage: int) -> Ours:
    saved = _saved(ZERO, stage, ZERO_GPUS)
    limit = _saved(ZERO, stage, math.inf) if stage < 3 else None
    parts = {1: "(2 + 2 + 12/64)", 2: "(2 + 14/64)", 3: "(16/64)"}[stage]
    ends = "without limit" if limit is None else f"at most {number(limit)}x"
    return exactly(saved, f"16 / {parts} = {number(saved, 3)}x; with ever more GPUs {ends}", limit)


def _zero1_optimizer() -> Ours:
    each = ZERO.optimizer_bytes / ZERO_GPUS
    return exactly(
        ZERO.optimizer_bytes / each,
        f"12 B / {number(each)} B on {ZERO_GPUS} GPUs; of all 16 bytes "
        f"{number(_saved(ZERO, 1, ZERO_GPUS), 3)}x, at most {number(_saved(ZERO, 1, math.inf))}x",
    )


def _no_sharding() -> Ours:
    return exactly(1.0, f"{number(PYTORCH.total_bytes)} B / {number(PYTORCH.total_bytes)} B")


def _fsdp(stage: int) -> Ours:
    kept = number(PYTORCH.parameter_bytes) if stage == SHARD_GRAD_OP else f"4/{FSDP_GPUS}"
    saved = _saved(PYTORCH, stage, FSDP_GPUS)
    return exactly(
        saved,
        f"16 / ({kept} + 4/{FSDP_GPUS} + 8/{FSDP_GPUS}) = {number(saved, 3)}x on {FSDP_GPUS} GPUs; "
        f"{number(_saved(PYTORCH, stage, 8), 3)}x on 8",
    )


def _hybrid() -> Ours:
    low, high = (_saved(PYTORCH, FULL_SHARD, shards) for shards in (2, FSDP_GPUS))
    return Ours(
        low=low,
        high=high,
        arithmetic=f"16 / (16/2) = {number(low)}x in groups of 2 GPUs, 16 / (16/4) = "
        f"{number(high)}x in groups of 4; {number(_saved(PYTORCH, FULL_SHARD, 8))}x in machines "
        "of 8, however many machines replicate them",
    )


EVALUATED: Evaluations = {
    "zero1_64": partial(_zero, 1),
    "zero2_64": partial(_zero, 2),
    "zero3_64": partial(_zero, 3),
    "zero1_optimizer": _zero1_optimizer,
    "fsdp_no_shard": _no_sharding,
    "fsdp_shard_grad_op": partial(_fsdp, SHARD_GRAD_OP),
    "fsdp_full_shard": partial(_fsdp, FULL_SHARD),
    "fsdp_hybrid_shard": _hybrid,
}
