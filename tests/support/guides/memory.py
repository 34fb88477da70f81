"""Claims about memory and what sharding saves of it, worked out from presets and accelerators."""

from __future__ import annotations

import math
from functools import partial

from core.evidence import published_claims
from core.memory import activations
from core.model import transformer
from core.model.presets import preset
from core.numeric import as_float
from hardware import facts
from hardware.efficiency import GENERIC, efficiency
from tests.support.guides import sums
from tests.support.guides.cases import H100
from tests.support.guides.claim_text import Evaluations, Ours, billions, exactly, figure, number

H200, MI325X = "H200-141GB-SXM", "MI325X"
# Mixed precision, 2 + 2 + 12 bytes; fp32 throughout, 4 + 4 + 8.
ADAMW, PYTORCH = published_claims.ACCOUNTINGS[:2]
PARAMS_70B, PARAMS_405B, PARAMS_7B = 70e9, 405e9, 7e9  # rounded as in the guides
LOGITS_BYTES = 10.0  # 16-bit logits, an fp32 copy and its gradient
ZERO_GPUS = 64
FSDP_GPUS = 4  # full sharding saves a factor equal to the GPU count, so "4x" means 4
SHARD_GRAD_OP, FULL_SHARD = 2, 3  # as stages of ZeRO


def _memory(accelerator: str) -> float:
    return facts.accelerator(accelerator).memory_bytes


def _states(num_params: float, bytes_per_param: float, gpus: int = 1) -> Ours:
    share = _state_bytes(num_params, bytes_per_param) / gpus
    over = "" if gpus == 1 else f" / {gpus}"
    text = f"{billions(num_params)} x {number(bytes_per_param)} B{over} = {figure(share, 'GB')}"
    return exactly(share, text)


def _state_bytes(num_params: float, bytes_per_param: float) -> float:
    return as_float(
        published_claims.state_bytes(num_params=num_params, bytes_per_param=bytes_per_param)
    )


def _70b_states_per_gpu() -> Ours:
    ours = _states(PARAMS_70B, ADAMW.total_bytes, 8)
    left = _states(PARAMS_70B, ADAMW.parameter_bytes + ADAMW.gradient_bytes, 8)
    more = _states(PARAMS_70B, ADAMW.total_bytes, 16)
    host = PARAMS_70B * ADAMW.optimizer_bytes
    memory = _memory(H100)
    return exactly(
        ours.low,
        f"{ours.arithmetic}, and an H100 has {figure(memory, 'GB')}. With the optimizer on the "
        f"host {figure(left.low, 'GB')} stay ({figure(host, 'GB')} of host memory); on 16 GPUs "
        f"{figure(more.low, 'GB')}",
    )


def _kept(model: transformer.Transformer, tokens: float, *, scores_of: float = 0.0) -> float:
    return as_float(model.num_layers) * as_float(
        activations.layer_bytes(
            model, tokens=tokens, tp=1.0, sequence_parallel=0.0, kept_scores_of=scores_of
        )
    )


def _7b_activations() -> Ours:
    model, tokens = preset("llama2-7b").transformer, 4 * 4096.0
    none = _kept(model, tokens)
    unfused = _kept(model, tokens, scores_of=4096.0)
    eff = efficiency(GENERIC)
    selective = none * as_float(eff.selective_kept) * as_float(eff.activation_copies)
    per_layer = none / tokens / as_float(model.num_layers)
    return exactly(
        none,
        f"4 x 4,096 tokens x {number(as_float(model.num_layers))} layers x "
        f"{number(per_layer)} B = {figure(none, 'GB')}; selective recompute in our memory model "
        f"{figure(selective, 'GB')}; with score matrices kept {figure(unfused, 'GB')}",
    )


def _checkpointing_flops() -> Ours:
    model, s = preset("llama2-7b").transformer, 4096.0
    scores = as_float(transformer.attention_score_flops_per_token(model, s))
    layers = as_float(transformer.matrix_flops_per_token(model)) + scores
    whole = as_float(transformer.train_flops_per_token(model, s))
    forward = as_float(transformer.forward_flops_per_token(model, s))
    return exactly(
        layers / whole,
        f"{number(layers / 1e9)} GFLOP of the layers' forward / (3 x {number(forward / 1e9)} "
        f"GFLOP) = {figure(layers / whole, '%', 3)}, a token of Llama 2 7B at 4,096",
    )


def _checkpointing_memory() -> Ours:
    model, tokens = preset("llama2-7b").transformer, 4 * 4096.0
    logits = LOGITS_BYTES * tokens * as_float(model.vocab_size)
    kept = _kept(model, tokens) + logits
    inputs = as_float(model.num_layers) * as_float(
        activations.input_bytes(model, tokens=tokens, tp=1.0, sequence_parallel=0.0)
    )
    one = _kept(model, tokens) / as_float(model.num_layers)
    checkpointed = inputs + one + logits
    return exactly(
        kept / checkpointed,
        f"{figure(kept, 'GB')} / ({figure(inputs, 'GB', 3)} of inputs + {figure(one, 'GB', 3)} "
        f"of one layer + {figure(logits, 'GB', 3)} of logits) = {number(kept / checkpointed, 3)}",
    )


def _405b_one_node() -> Ours:
    chip = facts.accelerator(H100)
    without = (ADAMW.parameter_bytes + ADAMW.gradient_bytes) * PARAMS_405B / 32
    return exactly(
        chip.gpus_per_node,
        f"a machine has {chip.gpus_per_node} H100. Over 32: 405B x 16 B / 32 = "
        f"{figure(PARAMS_405B * 16 / 32, 'GB')} a GPU; without the optimizer "
        f"{figure(without, 'GB')} of {figure(_memory(H100), 'GB')}",
    )


def _405b_mi325x() -> Ours:
    memory = 8 * _memory(MI325X)
    held = memory / ADAMW.total_bytes
    return exactly(
        held,
        f"8 x {figure(_memory(MI325X), 'GB')} / 16 B = {billions(held)} parameters; 405B need "
        f"{figure(PARAMS_405B * 16, 'GB')}, or {figure(PARAMS_405B * 4, 'GB')} with the "
        "optimizer on the host",
    )


def _405b_least(accelerator: str, printed: int) -> Ours:
    chip = facts.accelerator(accelerator)
    total = _state_bytes(PARAMS_405B, ADAMW.total_bytes)
    gpus = as_float(
        sums.num_gpus_that_hold(
            total_bytes=total, memory_bytes=chip.memory_bytes, gpus_per_node=chip.gpus_per_node
        )
    )
    return exactly(
        gpus,
        f"405B x 16 B = {figure(total, 'GB')}; / {figure(chip.memory_bytes, 'GB')} = "
        f"{number(total / chip.memory_bytes, 3)}, in machines of {chip.gpus_per_node}: "
        f"{number(gpus)} GPUs without one activation. {printed} hold "
        f"{figure(printed * chip.memory_bytes, 'GB')}, and each would need "
        f"{figure(total / printed, 'GB')}",
    )


def _405b_32_memory() -> Ours:
    share = PARAMS_405B * ADAMW.total_bytes / 32
    return exactly(share, f"405B x 16 B / (8 x 4) = {figure(share, 'GB')}")


# --- what sharding saves --------------------------------------------------------------------------


def _saved(accounting: published_claims.Accounting, stage: int, shards: float) -> float:
    return as_float(sums.state_saving(accounting=accounting, stage=stage, shards=shards))


def _zero(stage: int) -> Ours:
    saved = _saved(ADAMW, stage, ZERO_GPUS)
    limit = _saved(ADAMW, stage, math.inf) if stage < 3 else None
    parts = {1: "(2 + 2 + 12/64)", 2: "(2 + 14/64)", 3: "(16/64)"}[stage]
    ends = "without limit" if limit is None else f"at most {number(limit)}x"
    return exactly(saved, f"16 / {parts} = {number(saved, 3)}x; with ever more GPUs {ends}", limit)


def _zero1_optimizer() -> Ours:
    each = ADAMW.optimizer_bytes / ZERO_GPUS
    return exactly(
        ADAMW.optimizer_bytes / each,
        f"12 B / {number(each)} B on {ZERO_GPUS} GPUs; of all 16 bytes "
        f"{number(_saved(ADAMW, 1, ZERO_GPUS), 3)}x, at most {number(_saved(ADAMW, 1, math.inf))}x",
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
    "70b_weights": partial(_states, PARAMS_70B, ADAMW.parameter_bytes),
    "70b_gradients": partial(_states, PARAMS_70B, ADAMW.gradient_bytes),
    "70b_adamw": partial(_states, PARAMS_70B, ADAMW.optimizer_bytes),
    "70b_states": partial(_states, PARAMS_70B, ADAMW.total_bytes),
    "70b_weights_per_gpu": partial(_states, PARAMS_70B, ADAMW.parameter_bytes, 8),
    "70b_gradients_per_gpu": partial(_states, PARAMS_70B, ADAMW.gradient_bytes, 8),
    "70b_adamw_per_gpu": partial(_states, PARAMS_70B, ADAMW.optimizer_bytes, 8),
    "70b_states_per_gpu": _70b_states_per_gpu,
    "7b_20_bytes": partial(_states, PARAMS_7B, published_claims.ACCOUNTINGS[-1].total_bytes),
    "7b_activations": _7b_activations,
    "checkpointing_flops": _checkpointing_flops,
    "checkpointing_memory": _checkpointing_memory,
    "405b_one_node": _405b_one_node,
    "405b_mi325x": _405b_mi325x,
    "405b_min_h100": partial(_405b_least, H100, 32),
    "405b_min_h200": partial(_405b_least, H200, 16),
    "405b_32_memory": _405b_32_memory,
    "zero1_64": partial(_zero, 1),
    "zero2_64": partial(_zero, 2),
    "zero3_64": partial(_zero, 3),
    "zero1_optimizer": _zero1_optimizer,
    "fsdp_no_shard": _no_sharding,
    "fsdp_shard_grad_op": partial(_fsdp, SHARD_GRAD_OP),
    "fsdp_full_shard": partial(_fsdp, FULL_SHARD),
    "fsdp_hybrid_shard": _hybrid,
}
