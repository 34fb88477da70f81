"""The form's labels for the choices of a field, and its placeholders."""

from __future__ import annotations

import re

from app.document.vocabulary import PURCHASES, SHARDINGS
from app.scenario.starting import CONTINUE
from core.scenario import Scenario

OPTION_LABELS = {
    **{name: words.capitalize() for name, words in PURCHASES.items()},
    "usd": "Cost",
    "time": "Time",
    "fp16": "FP16",
    "bf16": "BF16",
    "fp8": "FP8, one scale per tensor",
    "fp8_rowwise": "FP8, one scale per row",
    "fp8_blockwise": "FP8, one scale per block",
    "mxfp8": "MXFP8",
    "nvfp4": "NVFP4",
    **SHARDINGS,
    "none": "None",
    "selective": "Selective",
    "norm_act": "Norms and activations",
    "mlp": "MLP or experts",
    "full": "Full",
    "offload": "Offloaded instead",
    "naive": "Naive: one stage at a time",
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved": "Interleaved 1F1B",
    "zero_bubble": "Zero bubble",
    "ring": "Ring attention",
    "all_gather": "All-gather of keys and values",
    "ulysses": "Ulysses (all-to-all)",
    "per_node": "A token once per machine",
    "per_expert": "A token once per expert",
    "on": "On",
    "off": "Off",
    "adamw": "AdamW",
    "adamw_8bit": "AdamW, 8-bit states",
    "adafactor": "Adafactor",
    "muon": "Muon",
    "sgd": "SGD",
    "fp32": "FP32",
    "bf16_fp32": "Both: 16 bits, and an FP32 sum",
    "cpu": "To CPU memory",
    "nvme": "To NVMe",
    "search": "Where it helps",
    "flash3": "FlashAttention 3",
    "flash2": "FlashAttention 2",
    "unfused": "Unfused",
    "pretrain": "Pretraining",
    CONTINUE: "Continued pretraining",
    "sft": "Full fine-tuning",
    "lora": "LoRA",
    "qlora": "QLoRA",
    "attention": "Attention matrices",
    "all": "All matrices",
    "": "As the stack does",
    "custom": "custom (typed in)",
    "generic": "generic (no launch file)",
}
NOTHING = {"price_book": "List prices", "anchor_gpu": "None"}  # what '' means in a field
PLACEHOLDERS = {
    "gpu": "Every GPU",
    "calibration": "None: as assumed",
    "cloud": "Every cloud",
    "num_gpus": "8, 64-512 (empty: powers of 2)",
    "deadline_days": "No deadline",
    "budget_usd": "No budget",
    "max_price_age_days": "By kind of seller",
    "sharding": "Search all",
    "recompute": "Search all",
    **dict.fromkeys(("tp", "pp", "virtual_stages", "cp", "ep", "etp"), "Search"),
    "micro_batch_size": "Search",
    "capacity_factor": "Dropless",
    "expert_imbalance": "As training leaves it",
    "num_examples": "50k (empty: training tokens)",
    "tokens_per_example": "The sequence length",
    "anchor_tokens_per_s_per_gpu": "Nothing measured",
    "anchor_num_gpus": "64",
    "anchor_layout": "tp=8,pp=4,micro_batch_size=1",
}
ABOUT = {
    "anchor": "One measured speed of this model, sequence length and precision moves every "
    "forecast and narrows it, the more the more alike the plan is.",
    "task_size": "Examples x tokens of each x epochs, instead of a number of training tokens.",
}

_WITH_VALUE = "|".join(Scenario.model_fields)
_ALONE = "|".join(n for n in Scenario.model_fields if "_" in n)  # others are plain words
_QUOTED = "(?<!['=,])"  # quoted input such as 'tp=8,pp=4' is left alone
_KEY = re.compile(rf"{_QUOTED}\b(?:({_WITH_VALUE})=|({_ALONE})\b(?! in a link))")


def labelled(sentence: str) -> str:
    """A sentence with the link keys of fields replaced by their labels in the form.

    >>> labelled("anchor_gpu is not given: on which GPU was it measured?")
    "'Measured on GPU' is not given: on which GPU was it measured?"
    >>> labelled("model=custom needs hidden_size.")
    "'Model' custom needs 'Hidden size'."
    >>> labelled("anchor_layout='tp=3,pp=2' is no legal layout.")
    "'Measured layout' 'tp=3,pp=2' is no legal layout."
    """
    return _KEY.sub(lambda m: _called(m[1]) + " " if m[1] else _called(m[2]), sentence)


def _called(name: str) -> str:
    return f"'{Scenario.model_fields[name].title}'"
