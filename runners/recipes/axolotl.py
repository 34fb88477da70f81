"""Axolotl's YAML: pre-training, full fine-tuning, LoRA and QLoRA.

Names and defaults: axolotl 0.19.0, utils/schemas/config.py and validation.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runners.recipes import accelerate_config, deepspeed
from runners.recipes.header import UNKNOWN, Blank, commented, comments
from runners.recipes.job import RecipeError, RecipeJob
from runners.recipes.stack_rules import (
    batched,
    blank,
    cannot,
    careful,
    checkpoints,
    differences,
    first,
    known_keys,
    lacks,
    mapping,
    offloads,
    rate,
    settings,
    shards,
    takes,
    weights,
    world_line,
    yaml_file,
)
from runners.recipes.target import Recovered, Target

FILE = "axolotl.yaml"
STACK, NAME = "Axolotl", "axolotl"
TOOL = "Axolotl 0.19.0"
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
KEYS = {
    "base_model", "datasets", "output_dir", "learning_rate", "sequence_len", "micro_batch_size",
    "gradient_accumulation_steps", "max_steps", "bf16", "fp16", "optimizer",
    "gradient_checkpointing", "torch_compile", "adapter", "lora_r", "lora_alpha",
    "lora_target_linear", "lora_target_modules", "load_in_4bit", "deepspeed", "fsdp_version",
    "fsdp_config", "dp_replicate_size", "dp_shard_size", "tensor_parallel_size",
    "context_parallel_size", "ring_attn_func", "pretraining_dataset", "streaming",
    "reinit_weights", "pretraining_sample_concatenation", "sample_packing", "pad_to_sequence_len",
    "attn_implementation", "chunked_cross_entropy", "max_grad_norm", "save_strategy",
    "save_steps", "logging_steps", "use_tensorboard", "activation_offloading",
}  # fmt: skip


def refuses(job: RecipeJob) -> str:
    """Why Axolotl cannot train this plan; '' if it can."""
    lay = job.layout
    zero = lay.sharding in ("zero1", "zero2", "zero3") and job.dp > 1
    return first(
        takes(STACK, "the task", job.task, ("pretrain", "sft", "lora", "qlora")),
        lacks(job, STACK, "pp", "ep", "etp"),
        lacks(job, f"{STACK} with DeepSpeed or DDP", "tp", "cp")
        if job.dp > 1 and lay.sharding in deepspeed.STAGES
        else "",
        _refuses_context(job) if lay.cp > 1 else "",
        shards(job, STACK, ("ddp", "zero1", "zero2", "zero3", "fsdp2", "hsdp")),
        takes(STACK, "the precision", job.precision, ("bf16", "fp16")),
        cannot(job, NAME, STACK),
        deepspeed.refuses(job)
        if zero
        else offloads(job, f"{STACK} with FSDP2", (("none", "none"), ("cpu", "cpu"))),
    )


def _packs(job: RecipeJob) -> bool:
    """Whether examples are packed; pre-training joins its documents instead."""
    return job.habits.packed and job.task != "pretrain"


def _refuses_context(job: RecipeJob) -> str:
    """Why Axolotl cannot cut the sequences as planned; '' if it can."""
    lay = job.layout
    method = "all_gather" if _packs(job) else "ring"
    if job.habits.attention not in ("flash2", "flash3"):
        return "Axolotl cuts sequences with FlashAttention 2 or 3 only: plan with attention flash2."
    if _packs(job) and lay.micro_batch_size > 1:
        return "Axolotl cuts packed sequences with a micro-batch of 1 only."
    what = "the context-parallel method" + (" of packed sequences" if _packs(job) else "")
    return takes(STACK, what, lay.context_parallel, (method,))


def _data(job: RecipeJob, options: Mapping[str, str]) -> Blank:
    """The data set: its place may be given, its format may not."""
    place = blank(options, "dataset", "datasets", "your data set")
    if job.task == "pretrain":
        value = [{"path": place.value, "type": "pretrain"}]
        return replace(place, name="pretraining_dataset", value=value)
    what = f"{place.what}, and its format (type)"
    return Blank(name="datasets", what=what, value=[{"path": place.value, "type": UNKNOWN}])


def blanks(job: RecipeJob, options: Mapping[str, str]) -> list[Blank]:
    """What the first block holds."""
    found = [
        weights(job, options, "base_model"),
        _data(job, options),
        checkpoints(options, "output_dir"),
        rate(options, "learning_rate"),
    ]
    if job.task in ("lora", "qlora"):
        found.append(Blank(name="lora_alpha", what="alpha of the adapters"))
    return found


def write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """axolotl.yaml, and DeepSpeed's JSON for ZeRO. Options: model_path, dataset, checkpoint_path,
    learning_rate, nvme_path."""
    if reason := refuses(job):
        raise RecipeError(f"{reason}.")
    lay = job.layout
    values: dict[str, Any] = {
        "sequence_len": job.seq_len,
        "micro_batch_size": lay.micro_batch_size,
        "gradient_accumulation_steps": lay.num_microbatches,
        "max_steps": job.num_steps,
        job.precision: True,
        "pad_to_sequence_len": True,
        **accelerate_config.UPKEEP,
        "use_tensorboard": True,
        **settings(job, NAME),
        "sample_packing": _packs(job),
    }
    if job.task == "pretrain":
        values |= {"streaming": True, "reinit_weights": job.start is None}
        values["pretraining_sample_concatenation"] = job.habits.packed
    if job.task in ("lora", "qlora"):
        values |= {"adapter": job.task, "lora_r": job.lora_rank}
        if job.lora_targets == "all":
            values["lora_target_linear"] = True
        else:
            values["lora_target_modules"] = ATTENTION
    if job.task == "qlora":
        values["load_in_4bit"] = True
    files: dict[str, str] = {}
    if job.dp > 1 and lay.sharding in ("zero1", "zero2", "zero3"):
        values["deepspeed"] = deepspeed.FILE
        files |= deepspeed.write(job, options)
    elif lay.sharding in ("fsdp2", "hsdp") and job.num_gpus > 1:
        values |= {
            "fsdp_version": 2,
            "fsdp_config": {
                "reshard_after_forward": lay.reshard_after_forward,
                "offload_params": lay.offload_params == "cpu",
                "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
                "state_dict_type": "SHARDED_STATE_DICT",
            },
            "dp_replicate_size": lay.dp_replicate,
            "dp_shard_size": lay.dp_shard,
            "tensor_parallel_size": lay.tp,
        }
    if lay.cp > 1:
        values["context_parallel_size"] = lay.cp
        values["ring_attn_func"] = "varlen_llama3" if _packs(job) else "batch_ring"
    start = f"Start with: axolotl train {FILE} --launcher torchrun -- ..."
    notes = [start, *differences(job, NAME), world_line(job)]
    head = commented(job.header, tool=TOOL, tier="validated") + comments(notes)
    return {FILE: yaml_file(head, blanks(job, options), values), **files}


def read(files: Mapping[str, str]) -> Recovered:
    """Read the layout of axolotl.yaml."""
    given = known_keys(mapping(files, FILE), KEYS, FILE)
    found = batched(
        files[FILE], FILE, given.get("micro_batch_size"), given.get("gradient_accumulation_steps")
    )
    if "deepspeed" in given:
        inner = deepspeed.read(files)
        if inner.global_batch_size != found.global_batch_size or inner.dp != found.dp:
            raise RecipeError(f"{FILE} and {deepspeed.FILE} say different batches.")
    if "dp_shard_size" in given:
        dp = given["dp_replicate_size"] * given["dp_shard_size"]
        tp, cp = given["tensor_parallel_size"], given.get("context_parallel_size", 1)
        if (dp, tp, cp) != (found.dp, found.tp, found.cp):
            raise RecipeError(f"{FILE} says dp {dp}, tp {tp} and cp {cp}, and others above.")
    return found


TARGETS = (
    Target(
        name="axolotl",
        title="Axolotl YAML",
        kind="stack",
        tier="validated",
        tool=TOOL,
        write=write,
        read=careful(read, FILE),
        options=("model_path", "dataset", "checkpoint_path", "learning_rate", "nvme_path"),
        starts=lambda job, options: f"python -m axolotl.cli.train {FILE}",
        begins=True,
        refuses=refuses,
    ),
)
