"""Claims about fine-tuning: what QLoRA and full fine-tuning need, and how large a checkpoint is."""

from __future__ import annotations

from functools import partial

from core.evidence.published_claims import ACCOUNTINGS
from core.memory import activations
from core.model import adapters
from core.model.presets import preset
from core.model.transformer import embedding_params, head_params, total_params
from core.numeric import as_float
from tests.support.guides.cases import DATA_PARALLEL, range_of, timed_if_it_fitted
from tests.support.guides.claim_text import (
    FORECAST_DIGITS,
    Evaluations,
    Ours,
    billions,
    exactly,
    figure,
    number,
)
from tests.support.guides.memory import LOGITS_BYTES
from tests.support.guides.one_case import Fields

LORA_RANK = 16.0
QLORA_TOKENS = 2048.0
_LEAST: Fields = {**DATA_PARALLEL, "micro_batch_size": 1, "recompute": "full"}
_TUNED = ("llama2-7b", "llama2-13b", "qwen2.5-32b", "llama3.1-70b")


def _qlora(name: str) -> Ours:
    model = preset(name).transformer
    params = as_float(total_params(model))
    ends = as_float(embedding_params(model)) + as_float(head_params(model))
    per_weight = adapters.nf4_bytes_per_param(double_quantisation=True)
    frozen = (params - ends) * per_weight + 2 * ends
    trained = (
        params
        * as_float(adapters.trained_fraction(model, rank=LORA_RANK, on_mlp=True))
        * ACCOUNTINGS[0].total_bytes
    )
    shape = {"tokens": QLORA_TOKENS, "tp": 1.0, "sequence_parallel": 0.0}
    live = (
        as_float(model.num_layers) * as_float(activations.input_bytes(model, **shape))
        + as_float(activations.layer_bytes(model, **shape))
        + LOGITS_BYTES * QLORA_TOKENS * as_float(model.vocab_size)
    )
    total = frozen + trained + live
    return exactly(
        total,
        f"{billions(params - ends)} x {number(per_weight)} B + {billions(ends)} x 2 B + "
        f"adapters {figure(trained, 'GB', 3)} + activations and logits {figure(live, 'GB', 3)} = "
        f"{figure(total, 'GB', 3)}",
    )


def _qlora_rule() -> Ours:
    """The bytes that QLoRA needs at least, and our forecast, which includes the device's
    context."""
    least = _qlora("llama3.1-70b")
    forecast = timed_if_it_fitted(
        {**_LEAST, "model": "llama3.1-70b", "task": "qlora", "sharding": "ddp", "num_gpus": 1,
         "seq_len": int(QLORA_TOKENS), "global_batch_size": 16}
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


def _checkpoint(*names: str) -> Ours:
    sizes = [2 * as_float(total_params(preset(n).transformer)) for n in names]
    texts = [
        f"2 B x {billions(size / 2)} = {figure(size, 'GB')} ({preset(n).name})"
        for n, size in zip(names, sizes, strict=True)
    ]
    return Ours(low=min(sizes), high=max(sizes), arithmetic="; ".join(texts))


EVALUATED: Evaluations = {
    "qlora_7b": partial(_qlora, "llama2-7b"),
    "qlora_13b": partial(_qlora, "llama2-13b"),
    "qlora_rule_7b": partial(_qlora, "llama2-7b"),
    "qlora_rule_70b": _qlora_rule,
    "full_tuning_rule": _full_tuning_rule,
    "checkpoint_7b": partial(_checkpoint, "llama2-7b", "llama3.1-8b"),
    "checkpoint_70b": partial(_checkpoint, "llama3.1-70b"),
}
