"""torchtune's YAML: full fine-tuning, LoRA and QLoRA of its models.

What each recipe reads of it: torchtune 0.6.1, recipes/*_finetune_*.py. `config.validate` does not
look for what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    placed,
    rate,
    settings,
    shards,
    takes,
    weights,
    world_line,
    yaml_file,
)
from runners.recipes.target import Recovered, Target

FILE = "torchtune.yaml"
STACK = NAME = "torchtune"
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
# Package of a model -> its tokenizer, and its name among torchtune's types of checkpoints.
TOKENIZERS = {
    "llama3_1": ("llama3.llama3_tokenizer", "LLAMA3"),
    "llama3_2": ("llama3.llama3_tokenizer", "LLAMA3_2"),
    "llama2": ("llama2.llama2_tokenizer", "LLAMA2"),
    "mistral": ("mistral.mistral_tokenizer", "MISTRAL"),
    "phi4": ("phi4.phi4_tokenizer", "PHI4"),
    "qwen2_5": ("qwen2_5.qwen2_5_tokenizer", "QWEN2"),
}
TWO_FILES = {"phi4": ("vocab_path", "merges_path"), "qwen2_5": ("path", "merges_file")}
WARMUP = 100  # steps, as its recipes of LoRA have it
KEYS = {
    "model", "tokenizer", "checkpointer", "dataset", "output_dir", "batch_size",
    "gradient_accumulation_steps", "max_steps_per_epoch", "epochs", "optimizer", "dtype",
    "compile", "enable_activation_checkpointing", "fsdp_cpu_offload", "fsdp_reshard_after_forward",
    "device", "shuffle", "seed", "resume_from_checkpoint", "loss", "metric_logger",
    "lr_scheduler", "optimizer_in_bwd", "clip_grad_norm", "log_every_n_steps", "model_path",
    "tokenizer_path", "learning_rate", "lora_alpha", "checkpoint_files",
    "enable_async_checkpointing",
}  # fmt: skip


def refuses(job: RecipeJob) -> str:
    """Why torchtune cannot train this plan; '' if it can."""
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
        cannot(job, NAME, STACK),
        offloads(job, STACK, (("none", "none"), ("cpu", "cpu"))),
    )


def _recipe(job: RecipeJob) -> str:
    kind = "full_finetune" if job.task == "sft" else "lora_finetune"
    return f"{kind}_{'distributed' if job.num_gpus > 1 else 'single_device'}"


def write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """torchtune.yaml. Options: model_path, tokenizer, checkpoint_path, learning_rate."""
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
        model["lora_alpha"] = "${lora_alpha}"
    tokenizer, kind = TOKENIZERS[package]
    files = TWO_FILES.get(package, ("path",))
    names = ("/vocab.json", "/merges.txt") if len(files) == 2 else ("",)
    values: dict[str, Any] = {
        "model": model,
        "tokenizer": {
            "_component_": f"torchtune.models.{tokenizer}",
            **{key: "${tokenizer_path}" + name for key, name in zip(files, names, strict=True)},
            "max_seq_len": job.seq_len,
        },
        "checkpointer": {
            "_component_": "torchtune.training.FullModelHFCheckpointer",
            "checkpoint_dir": "${model_path}",
            "checkpoint_files": "${checkpoint_files}",
            "output_dir": "${output_dir}",
            "model_type": kind,
        },
        "resume_from_checkpoint": False,
        "seed": None,
        "shuffle": True,
        "batch_size": lay.micro_batch_size,
        "gradient_accumulation_steps": lay.num_microbatches,
        "max_steps_per_epoch": job.num_steps,
        "epochs": 1,
        "device": "cuda",
        "dtype": job.precision,
        "optimizer_in_bwd": False,
        "clip_grad_norm": None,
        "log_every_n_steps": 1,
        "metric_logger": {
            "_component_": "torchtune.training.metric_logging.DiskLogger",
            "log_dir": "${output_dir}/logs",
        },
    }
    made = placed(settings(job, NAME))
    made.pop("dataset")  # a value to fill in
    values |= made
    values["optimizer"]["lr"] = "${learning_rate}"
    if job.num_gpus > 1:
        values["fsdp_cpu_offload"] = lay.offload_params == "cpu"
        values["fsdp_reshard_after_forward"] = lay.reshard_after_forward
    if job.task != "sft":  # its recipes of LoRA do not start without one
        values["lr_scheduler"] = {
            "_component_": "torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup",
            "num_warmup_steps": min(WARMUP, job.num_steps // 10),
        }
    notes = [
        f"Start with: tune run ... {_recipe(job)} --config {FILE}",
        *differences(job, NAME),
        world_line(job),
    ]
    head = commented(job.header, tool=TOOL, tier="validated") + comments(notes)
    return {FILE: yaml_file(head, blanks(job, options), values)}


def blanks(job: RecipeJob, options: Mapping[str, str]) -> list[Blank]:
    """What the first block holds; other keys refer to it."""
    package = MODELS[job.model_id][0]
    what = (
        "folder of vocab.json and merges.txt" if package in TWO_FILES else "file of the tokenizer"
    )
    data = {"_component_": UNKNOWN, **placed(settings(job, NAME))["dataset"]}
    found = [
        checkpoints(options, "output_dir"),
        weights(job, options, "model_path", "/epoch_0"),
        Blank(name="checkpoint_files", what="names of the files of the weights", value=[UNKNOWN]),
        blank(options, "tokenizer", "tokenizer_path", what),
        Blank(name="dataset", what="component of the data set, and its arguments", value=data),
        rate(options, "learning_rate"),
    ]
    if job.task != "sft":
        found.append(Blank(name="lora_alpha", what="alpha of the adapters"))
    return found


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
        options=("model_path", "tokenizer", "checkpoint_path", "learning_rate"),
        begins=True,
        refuses=refuses,
    ),
)
