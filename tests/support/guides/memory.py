"""Claims about memory that depend on our model of activations, adapters and 4-bit weights."""

from __future__ import annotations

from functools import partial

from core.evidence.published_claims import ACCOUNTINGS
from core.memory import activations
from core.model import adapters, transformer
from core.model.presets import preset
from core.model.transformer import embedding_params, head_params, total_params
from core.numeric import as_float
from hardware.efficiency import GENERIC, efficiency
from tests.support.guides.claim_text import (
    FORECAST_DIGITS,
    Evaluations,
    Ours,
    exactly,
    figure,
    number,
    range_of,
)
from tests.support.guides.one_case import DATA_PARALLEL, Fields, timed_if_it_fitted

_LOGITS_BYTES = 10.0  # 16-bit logits, an fp32 copy and its gradient
_LORA_RANK, _QLORA_TOKENS = 16.0, 2048.0
_LEAST: Fields = {**DATA_PARALLEL, "micro_batch_size": 1, "recompute": "full"}
_TUNED = ("llama2-7b", "llama2-13b", "qwen2.5-32b", "llama3.1-70b")


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
    logits = _LOGITS_BYTES * tokens * as_float(model.vocab_size)
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


def _qlora(name: str) -> Ours:
    model = preset(name).transformer
    params = as_float(total_params(model))
    ends = as_float(embedding_params(model)) + as_float(head_params(model))
    per_weight = adapters.nf4_bytes_per_param(double_quantisation=True)
    frozen = (params - ends) * per_weight + 2 * ends
    trained = (
        params
        * as_float(adapters.trained_fraction(model, rank=_LORA_RANK, on_mlp=True))
        * ACCOUNTINGS[0].total_bytes
    )
    shape = {"tokens": _QLORA_TOKENS, "tp": 1.0, "sequence_parallel": 0.0}
    live = (
        as_float(model.num_layers) * as_float(activations.input_bytes(model, **shape))
        + as_float(activations.layer_bytes(model, **shape))
        + _LOGITS_BYTES * _QLORA_TOKENS * as_float(model.vocab_size)
    )
    total = frozen + trained + live
    return exactly(
        total,
        f"{number((params - ends) / 1e9)}B x {number(per_weight)} B + {number(ends / 1e9)}B x 2 B"
        f" + adapters {figure(trained, 'GB', 3)} + activations and logits "
        f"{figure(live, 'GB', 3)} = "
        f"{figure(total, 'GB', 3)}",
    )


def _qlora_rule() -> Ours:
    """The bytes that QLoRA needs at least, and our forecast, which includes the device's
    context."""
    least = _qlora("llama3.1-70b")
    forecast = timed_if_it_fitted(
        {**_LEAST, "model": "llama3.1-70b", "task": "qlora", "sharding": "ddp", "num_gpus": 1,
         "seq_len": int(_QLORA_TOKENS), "global_batch_size": 16}
    )  # fmt: skip
    return exactly(
        least.low,
        f"{least.arithmetic}; our forecast with the device's context "
        f"{figure(forecast.need_bytes, 'GB', 2)}",
    )


def _full_tuning_rule() -> Ours:
    """Bytes of all GPUs of one machine divided by the parameters, at one sequence per GPU."""
    found, texts = [], []
    for name in _TUNED:
        forecast = timed_if_it_fitted(
            {**_LEAST, "model": name, "task": "sft", "sharding": "zero3", "num_gpus": 8,
             "seq_len": 4096, "global_batch_size": 8}
        )  # fmt: skip
        in_billions = as_float(total_params(preset(name).transformer)) / 1e9
        found.append(8 * forecast.need_bytes / in_billions)
        texts.append(
            f"{preset(name).name}: 8 x {figure(forecast.need_bytes, 'GB', 3)} / "
            f"{number(in_billions)} = {figure(found[-1], 'GB', FORECAST_DIGITS)}"
        )
    return range_of(found, "; ".join(texts))


EVALUATED: Evaluations = {
    "7b_activations": _7b_activations,
    "checkpointing_flops": _checkpointing_flops,
    "checkpointing_memory": _checkpointing_memory,
    "qlora_7b": partial(_qlora, "llama2-7b"),
    "qlora_13b": partial(_qlora, "llama2-13b"),
    "qlora_rule_7b": partial(_qlora, "llama2-7b"),
    "qlora_rule_70b": _qlora_rule,
    "full_tuning_rule": _full_tuning_rule,
}
