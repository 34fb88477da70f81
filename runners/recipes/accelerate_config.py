"""Accelerate's YAML for FSDP2 and for DeepSpeed, with the batch as Trainer's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.recipes import deepspeed
from runners.recipes.header import commented, comments
from runners.recipes.job import RecipeError, RecipeJob
from runners.recipes.stack_rules import (
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
    yaml_file,
)
from runners.recipes.target import Recovered, Target
from runners.recipes.yaml_text import dumped

FSDP_FILE, DEEPSPEED_FILE = "accelerate_fsdp2.yaml", "accelerate_deepspeed.yaml"
ARGUMENTS = "training_arguments.yaml"  # what transformers.TrainingArguments calls the batch
TOOL = "Accelerate 1.15.0"
STACK, NAME = "Accelerate with FSDP2", "accelerate"
# Accelerate ignores other keys inside these two without a warning.
FSDP_KEYS = {
    "fsdp_version", "fsdp_reshard_after_forward", "fsdp_offload_params", "fsdp_auto_wrap_policy",
    "fsdp_state_dict_type", "fsdp_activation_checkpointing",
    "fsdp_activation_checkpointing_offload",
}  # fmt: skip
PREFIX = "parallelism_config_"
SIZES = {f"{PREFIX}{name}_size" for name in ("dp_replicate", "dp_shard", "tp", "cp")}
UPKEEP = {"max_grad_norm": 1.0, "logging_steps": 10}  # of transformers' Trainer


def refuses_fsdp(job: RecipeJob) -> str:
    """Why Accelerate with FSDP2 cannot start this plan; '' if it can."""
    lay = job.layout
    return first(
        takes("Accelerate", "the task", job.task, ("pretrain", "sft", "lora")),
        lacks(job, STACK, "pp", "cp", "ep", "etp"),
        "Accelerate leaves tensor parallelism to the program that loads the model: plan with tp 1."
        if lay.tp > 1
        else "",
        shards(job, STACK, ("fsdp2", "hsdp")),
        takes(STACK, "the precision", job.precision, ("bf16", "fp16")),
        cannot(job, NAME, "Accelerate"),
        offloads(job, STACK, (("none", "none"), ("cpu", "cpu"))),
    )


def refuses_deepspeed(job: RecipeJob) -> str:
    """Why Accelerate with DeepSpeed cannot start this plan; '' if it can."""
    return first(
        deepspeed.refuses(job),
        cannot(job, NAME, "Accelerate"),
    )


def _machines(job: RecipeJob) -> dict[str, Any]:
    return {
        "compute_environment": "LOCAL_MACHINE",
        "num_machines": job.num_nodes,
        "num_processes": job.num_gpus,
    }


def arguments(job: RecipeJob) -> dict[str, Any]:
    """Arguments of transformers' Trainer that the plan sets."""
    lay = job.layout
    return {
        "per_device_train_batch_size": lay.micro_batch_size,
        "gradient_accumulation_steps": lay.num_microbatches,
        "max_steps": job.num_steps,
        job.precision: True,
        **UPKEEP,
        **settings(job, NAME),
    }


def _text(job: RecipeJob, values: Mapping[str, Any]) -> str:
    header = commented(job.header, tool=TOOL, tier="validated")
    if job.layout.sharding in ("fsdp2", "hsdp"):
        header += comments(differences(job, NAME))
    return header + dumped([dict(values)])


def _batch_text(job: RecipeJob, options: Mapping[str, str], *, checkpointing: bool) -> str:
    head = comments([
        "For transformers' TrainingArguments, or put the same numbers into your own program.",
        f"The forecast is of {job.seq_len} tokens a sequence"
        + (", joined until they are full." if job.habits.packed else ", padded."),
        "Data and tokenizer are your program's.",
    ])  # fmt: skip
    values = arguments(job)
    if not checkpointing:  # under FSDP2 Accelerate's own file asks for it
        del values["gradient_checkpointing"]
    blanks = [checkpoints(options, "output_dir"), rate(options, "learning_rate")]
    return yaml_file(head + commented(job.header, tool=TOOL, tier="validated"), blanks, values)


def write_fsdp(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """accelerate_fsdp2.yaml for `accelerate launch --config_file`, and the batch."""
    if reason := refuses_fsdp(job):
        raise RecipeError(f"{reason}.")
    lay = job.layout
    fsdp: dict[str, Any] = {
        "fsdp_version": 2,
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_reshard_after_forward": lay.reshard_after_forward,
        "fsdp_offload_params": lay.offload_params == "cpu",
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
        "fsdp_activation_checkpointing": lay.recompute != "none",
    }
    if lay.recompute == "offload":
        fsdp["fsdp_activation_checkpointing_offload"] = True
    sizes = {"dp_replicate": lay.dp_replicate, "dp_shard": lay.dp_shard, "tp": lay.tp, "cp": 1}
    values = {
        **_machines(job),
        "distributed_type": "FSDP",
        "mixed_precision": job.precision,
        "fsdp_config": fsdp,
        "parallelism_config": {f"{PREFIX}{name}_size": size for name, size in sizes.items()},
    }
    return {
        FSDP_FILE: _text(job, values),
        ARGUMENTS: _batch_text(job, options, checkpointing=False),
    }


def write_deepspeed(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """accelerate_deepspeed.yaml, the DeepSpeed JSON that it names, and the batch."""
    if reason := refuses_deepspeed(job):
        raise RecipeError(f"{reason}.")
    files = deepspeed.write(job, options)
    zero = deepspeed.configuration(job, options)["zero_optimization"]
    values = {
        **_machines(job),
        "distributed_type": "DEEPSPEED",
        "deepspeed_config": {
            "deepspeed_config_file": deepspeed.FILE,
            "zero3_init_flag": zero["stage"] == 3,
        },
    }
    batch = _batch_text(job, options, checkpointing=True)
    return {DEEPSPEED_FILE: _text(job, values), ARGUMENTS: batch, **files}


def read_fsdp(files: Mapping[str, str]) -> Recovered:
    """Read the layout of the FSDP2 file and its batch. Keys that Accelerate would ignore are
    errors."""
    given, batch = mapping(files, FSDP_FILE), mapping(files, ARGUMENTS)
    known_keys(given.get("fsdp_config"), FSDP_KEYS, "fsdp_config")
    sizes = known_keys(given.get("parallelism_config"), SIZES, "parallelism_config")
    tp, cp = sizes[f"{PREFIX}tp_size"], sizes[f"{PREFIX}cp_size"]
    dp = sizes[f"{PREFIX}dp_replicate_size"] * sizes[f"{PREFIX}dp_shard_size"]
    if dp * tp * cp != given["num_processes"]:
        raise RecipeError(
            f"dp {dp} x tp {tp} x cp {cp} is not the {given['num_processes']} processes."
        )
    micro, steps = batch["per_device_train_batch_size"], batch["gradient_accumulation_steps"]
    return Recovered(
        world_size=given["num_processes"],
        nodes=given["num_machines"],
        tp=tp,
        pp=1,
        cp=cp,
        dp=dp,
        micro_batch_size=micro,
        num_microbatches=steps,
        global_batch_size=micro * steps * dp,
        more={**given, "training_arguments": batch},
    )


def read_deepspeed(files: Mapping[str, str]) -> Recovered:
    """Read the layout of the DeepSpeed variant, whose batches must match those of the JSON."""
    given, batch = mapping(files, DEEPSPEED_FILE), mapping(files, ARGUMENTS)
    known_keys(
        given.get("deepspeed_config"),
        {"deepspeed_config_file", "zero3_init_flag"},
        "deepspeed_config",
    )
    inner = deepspeed.read(files)
    same = {
        "per_device_train_batch_size": inner.micro_batch_size,
        "gradient_accumulation_steps": inner.num_microbatches,
    }
    if wrong := [name for name, size in same.items() if batch.get(name) != size]:
        raise RecipeError(f"{ARGUMENTS} and {deepspeed.FILE} differ in {wrong[0]}.")
    if inner.dp != given["num_processes"]:
        raise RecipeError(f"dp {inner.dp} is not the {given['num_processes']} processes.")
    return Recovered(
        world_size=given["num_processes"],
        nodes=given["num_machines"],
        tp=1,
        pp=1,
        cp=1,
        dp=inner.dp,
        micro_batch_size=inner.micro_batch_size,
        num_microbatches=inner.num_microbatches,
        global_batch_size=inner.global_batch_size,
        more={**given, "training_arguments": batch},
    )


TARGETS = (
    Target(
        name="accelerate-fsdp2",
        title="Accelerate YAML with FSDP2",
        kind="stack",
        tier="validated",
        tool=TOOL,
        write=write_fsdp,
        read=careful(read_fsdp, FSDP_FILE),
        options=("checkpoint_path", "learning_rate"),
        refuses=refuses_fsdp,
    ),
    Target(
        name="accelerate-deepspeed",
        title="Accelerate YAML with DeepSpeed",
        kind="stack",
        tier="validated",
        tool=f"{TOOL}, {deepspeed.TOOL}",
        write=write_deepspeed,
        read=careful(read_deepspeed, DEEPSPEED_FILE),
        options=("nvme_path", "checkpoint_path", "learning_rate"),
        refuses=refuses_deepspeed,
    ),
)
