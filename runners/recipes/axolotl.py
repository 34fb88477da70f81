"""Axolotl's YAML, not validated with Axolotl, which does not install with our torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.recipes import accelerate_config, deepspeed
from runners.recipes.header import commented, comments
from runners.recipes.job import RecipeError, RecipeJob
from runners.recipes.stack_rules import (
    batched,
    careful,
    first,
    known_keys,
    lacks,
    mapping,
    named,
    offloads,
    shards,
    takes,
    world_line,
)
from runners.recipes.target import Recovered, Target
from runners.recipes.yaml_text import dumped

FILE = "axolotl.yaml"
STACK = "Axolotl"
TOOL = "Axolotl"
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
KEYS = {
    "base_model", "datasets", "output_dir", "learning_rate", "sequence_len", "micro_batch_size",
    "gradient_accumulation_steps", "max_steps", "bf16", "fp16", "optimizer",
    "gradient_checkpointing", "torch_compile", "adapter", "lora_r", "lora_alpha",
    "lora_target_linear", "lora_target_modules", "load_in_4bit", "deepspeed", "fsdp_version",
    "fsdp_config", "dp_replicate_size", "dp_shard_size", "tensor_parallel_size",
}  # fmt: skip


def refuses(job: RecipeJob) -> str:
    """Why Axolotl cannot train this plan; '' if it can."""
    lay = job.layout
    zero = lay.sharding in deepspeed.STAGES and job.dp > 1
    return first(
        takes(STACK, "the task", job.task, ("sft", "lora", "qlora")),
        lacks(job, STACK, "pp", "cp", "ep", "etp"),
        lacks(job, f"{STACK} with DeepSpeed or DDP", "tp") if zero else "",
        shards(job, STACK, ("ddp", "zero1", "zero2", "zero3", "fsdp2", "hsdp")),
        takes(STACK, "the precision", job.precision, ("bf16", "fp16")),
        takes(STACK, "recompute", lay.recompute, ("none", "full", "offload")),
        takes(STACK, "the optimizer", job.optimizer, tuple(accelerate_config.OPTIMIZERS)),
        deepspeed.refuses(job)
        if zero
        else offloads(job, f"{STACK} with FSDP2", (("none", "none"), ("cpu", "cpu"))),
    )


def write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """axolotl.yaml, and DeepSpeed's JSON for ZeRO. Options: model_path, dataset, nvme_path."""
    if reason := refuses(job):
        raise RecipeError(f"{reason}.")
    lay = job.layout
    values: dict[str, Any] = {
        "base_model": named(options, "model_path", f"weights of {job.model_label}"),
        "datasets": [
            {
                "path": named(options, "dataset", "your data set"),
                "type": "REPLACE_ME: format of the data set",
            }
        ],
        "output_dir": "REPLACE_ME: where checkpoints go",
        "learning_rate": "REPLACE_ME: learning rate",
        "sequence_len": job.seq_len,
        "micro_batch_size": lay.micro_batch_size,
        "gradient_accumulation_steps": lay.num_microbatches,
        "max_steps": job.num_steps,
        job.precision: True,
        "optimizer": accelerate_config.OPTIMIZERS[job.optimizer],
        "gradient_checkpointing": "offload"
        if lay.recompute == "offload"
        else lay.recompute == "full",
        "torch_compile": job.compiled,
    }
    if job.task != "sft":
        values |= {"adapter": job.task, "lora_r": job.lora_rank}
        values["lora_alpha"] = "REPLACE_ME: alpha of the adapters"
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
    notes = [f"Start with: axolotl train {FILE} --launcher torchrun -- ...", world_line(job)]
    head = commented(job.header, tool=TOOL, tier="not_validated") + comments(notes)
    return {FILE: head + dumped([values]), **files}


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
        sizes = (given["dp_replicate_size"] * given["dp_shard_size"], given["tensor_parallel_size"])
        if sizes != (found.dp, found.tp):
            raise RecipeError(f"{FILE} says dp {sizes[0]} and tp {sizes[1]}, and others above.")
    return found


TARGETS = (
    Target(
        name="axolotl",
        title="Axolotl YAML",
        kind="stack",
        tier="not_validated",
        tool=TOOL,
        write=write,
        read=careful(read, FILE),
        options=("model_path", "dataset", "nvme_path"),
        starts=lambda job, options: f"python -m axolotl.cli.train {FILE}",
        refuses=refuses,
    ),
)
