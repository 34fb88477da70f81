"""LLaMA-Factory's YAML: full fine-tuning, LoRA and QLoRA.

Names and defaults: llamafactory 0.9.5, hparams/data_args.py and model_args.py. It pads every
example to itself and recomputes unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.recipes import accelerate_config, deepspeed
from runners.recipes.header import Blank, commented, comments
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

FILE = "llama_factory.yaml"
STACK, NAME = "LLaMA-Factory", "llama-factory"
TOOL = "LLaMA-Factory 0.9.5"
ATTENTION = "q_proj,k_proj,v_proj,o_proj"
KEYS = {
    "stage", "do_train", "model_name_or_path", "finetuning_type", "lora_rank", "lora_target",
    "quantization_bit", "quantization_method", "dataset", "template", "output_dir", "cutoff_len",
    "per_device_train_batch_size", "gradient_accumulation_steps", "max_steps", "bf16", "fp16",
    "optim", "disable_gradient_checkpointing", "torch_compile", "learning_rate", "deepspeed",
    "packing", "neat_packing", "flash_attn", "enable_liger_kernel", "max_grad_norm",
    "save_strategy", "save_steps", "logging_steps", "report_to",
}  # fmt: skip


def refuses(job: RecipeJob) -> str:
    """Why LLaMA-Factory cannot train this plan; '' if it can."""
    lay = job.layout
    zero = lay.sharding in ("zero1", "zero2", "zero3") and job.dp > 1
    return first(
        takes(STACK, "the task", job.task, ("sft", "lora", "qlora")),
        lacks(job, STACK, "tp", "pp", "cp", "ep", "etp"),
        shards(job, STACK, ("ddp", "zero1", "zero2", "zero3", "fsdp2", "hsdp")),
        takes(STACK, "the precision", job.precision, ("bf16", "fp16")),
        cannot(job, NAME, STACK),
        "A base quantised by bitsandbytes is not cut by ZeRO-3 or FSDP: plan with sharding ddp or "
        "zero2."
        if job.task == "qlora" and job.dp > 1 and lay.sharding in ("zero3", "fsdp2", "hsdp")
        else "",
        deepspeed.refuses(job) if zero else "",
        accelerate_config.refuses_fsdp(job) if lay.sharding in ("fsdp2", "hsdp") else "",
        offloads(job, f"{STACK} on one GPU", (("none", "none"),)) if job.dp == 1 else "",
    )


def write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """llama_factory.yaml, and the files that DeepSpeed or Accelerate need. Options: model_path,
    dataset, checkpoint_path, learning_rate, nvme_path."""
    if reason := refuses(job):
        raise RecipeError(f"{reason}.")
    lay = job.layout
    sharded = job.dp > 1 and lay.sharding in ("fsdp2", "hsdp")
    values: dict[str, Any] = {
        "stage": "sft",
        "do_train": True,
        "finetuning_type": "full" if job.task == "sft" else "lora",
        "cutoff_len": job.seq_len,
        "per_device_train_batch_size": lay.micro_batch_size,
        "gradient_accumulation_steps": lay.num_microbatches,
        "max_steps": job.num_steps,
        job.precision: True,
        **accelerate_config.UPKEEP,
        "report_to": "none",
        **settings(job, NAME),
    }
    if sharded:  # Accelerate's file asks for it: both would recompute twice
        values["disable_gradient_checkpointing"] = True
    if job.task != "sft":
        values["lora_rank"] = job.lora_rank
        values["lora_target"] = "all" if job.lora_targets == "all" else ATTENTION
    if job.task == "qlora":
        values |= {"quantization_bit": 4, "quantization_method": "bnb"}
    files: dict[str, str] = {}
    start = "torchrun ... --module llamafactory.launcher " + FILE
    if job.dp > 1 and lay.sharding in ("zero1", "zero2", "zero3"):
        values["deepspeed"] = deepspeed.FILE
        files |= deepspeed.write(job, options)
    elif sharded:
        name = accelerate_config.FSDP_FILE
        files[name] = accelerate_config.write_fsdp(job, options)[name]
        start = f"accelerate launch --config_file {name} -m llamafactory.launcher {FILE}"
    notes = [f"Start with: {start}", *differences(job, NAME), world_line(job)]
    head = commented(job.header, tool=TOOL, tier="validated") + comments(notes)
    return {FILE: yaml_file(head, blanks(job, options), values), **files}


def blanks(job: RecipeJob, options: Mapping[str, str]) -> list[Blank]:
    """What the first block holds."""
    return [
        weights(job, options, "model_name_or_path"),
        blank(options, "dataset", "dataset", "a name in your dataset_info.json"),
        Blank(name="template", what="the chat template of the model"),
        checkpoints(options, "output_dir"),
        rate(options, "learning_rate"),
    ]


def read(files: Mapping[str, str]) -> Recovered:
    """Read the layout of llama_factory.yaml; its JSON or YAML must have an equal batch."""
    given = known_keys(mapping(files, FILE), KEYS, FILE)
    found = batched(
        files[FILE], FILE, given.get("per_device_train_batch_size"),
        given.get("gradient_accumulation_steps"),
    )  # fmt: skip
    if "deepspeed" in given:
        inner = deepspeed.read(files)
        if inner.global_batch_size != found.global_batch_size or inner.dp != found.dp:
            raise RecipeError(f"{FILE} and {deepspeed.FILE} say different batches.")
    return found


def _starts(job: RecipeJob, options: Mapping[str, str]) -> str:
    # Under FSDP2 only `accelerate launch` with its own file shards.
    sharded = job.layout.sharding in ("fsdp2", "hsdp") and job.dp > 1
    return "" if sharded else f"python -m llamafactory.launcher {FILE}"


TARGETS = (
    Target(
        name="llama-factory",
        title="LLaMA-Factory YAML",
        kind="stack",
        tier="validated",
        tool=TOOL,
        write=write,
        read=careful(read, FILE),
        options=("model_path", "dataset", "checkpoint_path", "learning_rate", "nvme_path"),
        starts=_starts,
        begins=True,
        refuses=refuses,
    ),
)
