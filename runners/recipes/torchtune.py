"""torchtune's YAML: full fine-tuning, LoRA and QLoRA of its models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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

FILE = "torchtune.yaml"
STACK = "torchtune"
TOOL = "torchtune 0.6.1"
# Our model -> its package, its builder, whether there is a QLoRA builder.
MODELS = {
    "llama3.1-8b": ("llama3_1", "llama3_1_8b", True),
    "llama3.1-70b": ("llama3_1", "llama3_1_70b", True),
    "llama3.1-405b": ("llama3_1", "llama3_1_405b", True),
    "llama3.2-1b": ("llama3_2", "llama3_2_1b", True),
    "llama3.2-3b": ("llama3_2", "llama3_2_3b", True),
    "llama2-7b": ("llama2", "llama2_7b", True),
    "llama2-13b": ("llama2", "llama2_13b", True),
    "llama2-70b": ("llama2", "llama2_70b", True),
    "mistral-7b": ("mistral", "mistral_7b", True),
    "phi-4": ("phi4", "phi4_14b", True),
    "qwen2.5-7b": ("qwen2_5", "qwen2_5_7b_base", False),
    "qwen2.5-32b": ("qwen2_5", "qwen2_5_32b_base", False),
    "qwen2.5-72b": ("qwen2_5", "qwen2_5_72b_base", False),
}
OPTIMIZERS = {"adamw": "torch.optim.AdamW", "sgd": "torch.optim.SGD"}
KEYS = {
    "model", "tokenizer", "checkpointer", "dataset", "output_dir", "batch_size",
    "gradient_accumulation_steps", "max_steps_per_epoch", "epochs", "optimizer", "dtype",
    "compile", "enable_activation_checkpointing", "fsdp_cpu_offload", "fsdp_reshard_after_forward",
    "device", "shuffle", "seed", "resume_from_checkpoint", "loss", "metric_logger",
}  # fmt: skip


def refuses(job: RecipeJob) -> str:
    """Why torchtune cannot train this plan; '' if it can."""
    lay = job.layout
    known = MODELS.get(job.model_id)
    return first(
        f"torchtune 0.6.1 has none of our dimensions of {job.model_label}: it has "
        f"{', '.join(MODELS)}."
        if known is None
        else "",
        takes(STACK, "the task", job.task, ("sft", "lora", "qlora")),
        f"torchtune has no QLoRA of {job.model_label}."
        if job.task == "qlora" and known is not None and not known[2]
        else "",
        lacks(job, STACK, "tp", "pp", "cp", "ep", "etp"),
        shards(job, STACK, ("fsdp2",)),
        takes(STACK, "the precision", job.precision, ("bf16",)),
        takes(STACK, "the optimizer", job.optimizer, tuple(OPTIMIZERS)),
        takes(STACK, "recompute", lay.recompute, ("none", "full")),
        offloads(job, STACK, (("none", "none"), ("cpu", "cpu"))),
    )


def _recipe(job: RecipeJob) -> str:
    kind = "full_finetune" if job.task == "sft" else "lora_finetune"
    return f"{kind}_{'distributed' if job.num_gpus > 1 else 'single_device'}"


def write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """torchtune.yaml. Options: model_path, tokenizer."""
    if reason := refuses(job):
        raise RecipeError(f"{reason}.")
    lay = job.layout
    package, builder, _ = MODELS[job.model_id]
    prefix = {"sft": "", "lora": "lora_", "qlora": "qlora_"}[job.task]
    model: dict[str, Any] = {"_component_": f"torchtune.models.{package}.{prefix}{builder}"}
    if job.task != "sft":
        model["lora_attn_modules"] = ["q_proj", "k_proj", "v_proj", "output_proj"]
        model["apply_lora_to_mlp"] = job.lora_targets == "all"
        model["lora_rank"] = job.lora_rank
        model["lora_alpha"] = "REPLACE_ME: alpha of the adapters"
    values: dict[str, Any] = {
        "output_dir": "REPLACE_ME: where checkpoints go",
        "model": model,
        "tokenizer": {
            "_component_": "REPLACE_ME: tokenizer component of the model",
            "path": named(options, "tokenizer", "file of the tokenizer"),
            "max_seq_len": job.seq_len,
        },
        "checkpointer": {
            "_component_": "torchtune.training.FullModelHFCheckpointer",
            "checkpoint_dir": named(options, "model_path", f"weights of {job.model_label}"),
            "checkpoint_files": ["REPLACE_ME: files of the weights"],
            "output_dir": "${output_dir}",
            "model_type": "REPLACE_ME: torchtune.training.checkpointing.ModelType",
        },
        "resume_from_checkpoint": False,
        "dataset": {"_component_": "REPLACE_ME: data set component"},
        "seed": None,
        "shuffle": True,
        "batch_size": lay.micro_batch_size,
        "gradient_accumulation_steps": lay.num_microbatches,
        "max_steps_per_epoch": job.num_steps,
        "epochs": 1,
        "optimizer": {
            "_component_": OPTIMIZERS[job.optimizer],
            "lr": "REPLACE_ME: learning rate",
        },
        "loss": {"_component_": "torchtune.modules.loss.CEWithChunkedOutputLoss"},
        "device": "cuda",
        "dtype": job.precision,
        "compile": job.compiled,
        "enable_activation_checkpointing": lay.recompute == "full",
        "metric_logger": {
            "_component_": "torchtune.training.metric_logging.DiskLogger",
            "log_dir": "${output_dir}/logs",
        },
    }
    if job.num_gpus > 1:
        values["fsdp_cpu_offload"] = lay.offload_params == "cpu"
        values["fsdp_reshard_after_forward"] = lay.reshard_after_forward
    notes = [f"Start with: tune run ... {_recipe(job)} --config {FILE}", world_line(job)]
    head = commented(job.header, tool=TOOL, tier="validated") + comments(notes)
    return {FILE: head + dumped([values])}


def read(files: Mapping[str, str]) -> Recovered:
    """Read the layout of torchtune.yaml."""
    given = known_keys(mapping(files, FILE), KEYS, FILE)
    return batched(
        files[FILE], FILE, given.get("batch_size"), given.get("gradient_accumulation_steps")
    )


TARGETS = (
    Target(
        name="torchtune",
        title="torchtune YAML",
        kind="stack",
        tier="validated",
        tool=TOOL,
        write=write,
        read=careful(read, FILE),
        options=("model_path", "tokenizer"),
        refuses=refuses,
    ),
)
