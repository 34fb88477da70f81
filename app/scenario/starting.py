"""Where a scenario starts: the usual batch, sequence, data and machines of each task, and examples.

The fine-tuning values are those of common recipes: 52,000 examples and three epochs of Alpaca
(github.com/tatsu-lab/stanford_alpaca), batch 128 at 4,096 tokens of Tulu 3 (arXiv:2411.15124),
batch 16 of QLoRA (arXiv:2305.14314). They are a start to edit, not advice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from app.scenario.link import changed
from core.scenario import Scenario

CONTINUE = "continue"  # pre-training that goes on from a trained model; a scenario's task: pretrain

_DATA_SET: Mapping[str, object] = {
    "num_examples": 52e3, "tokens_per_example": 512.0, "epochs": 3.0, "packing_efficiency": 0.95,
}  # fmt: skip
USUAL: Mapping[str, Mapping[str, object]] = {
    "pretrain": {},
    CONTINUE: {"num_tokens": 2e10, "global_batch_size": 256},
    "sft": {**_DATA_SET, "seq_len": 4096, "global_batch_size": 128, "num_gpus": (8,)},
    "lora": {**_DATA_SET, "seq_len": 4096, "global_batch_size": 32, "num_gpus": (8,)},
    "qlora": {**_DATA_SET, "seq_len": 2048, "global_batch_size": 16, "num_gpus": (1, 8)},
}


def continues(scenario: Scenario) -> bool:
    """Whether pretraining goes on from a trained model: as its link says, else if it has the usual
    values of that."""
    if scenario.continued is not None or scenario.task != "pretrain":
        return scenario.task == "pretrain" and bool(scenario.continued)
    return all(getattr(scenario, n) == v for n, v in USUAL[CONTINUE].items())


def as_continued(scenario: Scenario, is_continued: bool) -> Scenario:
    """The scenario, marked as continued or not where its values alone do not say so."""
    plain = changed(scenario, continued=None)
    return plain if continues(plain) == is_continued else changed(plain, continued=is_continued)


_FIELDS = tuple(dict.fromkeys(name for usual in USUAL.values() for name in usual))

# Links that open with one click; each is a question that somebody asked.
EXAMPLES: Mapping[str, Mapping[str, str]] = MappingProxyType({
    "Pretrain 8B on 1T tokens within 30 days": {"num_tokens": "1e12", "deadline_days": "30"},
    "Continue 70B on 20B tokens within a week": {
        "model": "llama3.1-70b", "num_tokens": "2e10", "global_batch_size": "256",
        "deadline_days": "7",
    },
    "Fine-tune 8B on 52k examples": {
        "task": "sft", "num_examples": "52k", "tokens_per_example": "512", "epochs": "3",
        "packing_efficiency": "0.95", "seq_len": "4096", "global_batch_size": "128",
        "num_gpus": "8",
    },
    "LoRA of 70B on one machine": {
        "model": "llama3.1-70b", "task": "lora", "num_examples": "52k",
        "tokens_per_example": "512", "epochs": "3", "packing_efficiency": "0.95",
        "seq_len": "4096", "global_batch_size": "32", "num_gpus": "8",
    },
    "A mixture of experts: DeepSeek-V3 on 2,048 H100": {
        "model": "deepseek-v3", "num_tokens": "14.8T", "seq_len": "4096",
        "global_batch_size": "15360", "gpu": "H100-80GB-SXM", "num_gpus": "2048",
    },
})  # fmt: skip


def switched(
    scenario: Scenario, before: str, after: str, typed: Collection[str]
) -> dict[str, object]:
    """The fields that change with the task from `before` to `after`: those that still have a usual
    value, not those that the user gave. A user who gave the tokens keeps them: no data set."""
    fields = Scenario.model_fields
    old, new = USUAL[before], USUAL[after]

    def is_given(name: str) -> bool:
        default = fields[name].default
        usual = (default, old.get(name, default))
        return name in typed or getattr(scenario, name) not in usual

    kept = {name for name in _FIELDS if is_given(name)}
    if "num_tokens" in kept and scenario.num_examples is None:
        kept |= _DATA_SET.keys()
    usual = {n: new.get(n, fields[n].default) for n in _FIELDS if n not in kept}
    return {**usual, "task": "pretrain" if after == CONTINUE else after}
