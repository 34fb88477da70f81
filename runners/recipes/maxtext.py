"""MaxText's YAML for GPUs and TPUs.

Names and defaults: maxtext 0.2.5, configs/base.yml and types.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.recipes.header import UNKNOWN, Blank, commented, comments
from runners.recipes.job import RecipeError, RecipeJob
from runners.recipes.stack_rules import (
    begun,
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
    world_line,
    world_of,
    yaml_file,
)
from runners.recipes.target import Recovered, Target

FILE = "maxtext.yml"
STACK, NAME = "MaxText", "maxtext"
TOOL = "MaxText 0.2.5"
# Our models -> names in its src/maxtext/configs/models.
MODELS = {
    "llama3.1-8b": "llama3.1-8b", "llama3.1-70b": "llama3.1-70b", "llama3.1-405b": "llama3.1-405b",
    "llama2-7b": "llama2-7b", "llama2-13b": "llama2-13b", "llama2-70b": "llama2-70b",
    "gemma2-9b": "gemma2-9b", "gemma2-27b": "gemma2-27b", "gemma3-4b": "gemma3-4b",
    "gemma3-12b": "gemma3-12b", "gemma3-27b": "gemma3-27b", "mixtral-8x7b": "mixtral-8x7b",
    "mixtral-8x22b": "mixtral-8x22b", "deepseek-v2-lite": "deepseek2-16b",
    "deepseek-v2": "deepseek2-236b", "deepseek-v3": "deepseek3-671b",
}  # fmt: skip
AXES = ("data", "fsdp", "tensor", "context")
KEYS = {
    "base_config", "model_name", "hardware", "per_device_batch_size",
    "gradient_accumulation_steps", "max_target_length", "steps", "dtype", "weight_dtype",
    "opt_type", "remat_policy", "context_parallel_strategy", "run_name",
    "base_output_directory", "dataset_type", "learning_rate", "hf_path", "tokenizer_path",
    "tokenizer_type", "attention", "packing", "max_segments_per_seq", "enable_checkpointing",
    "async_checkpointing", "checkpoint_period", "gradient_clipping_threshold",
    "load_parameters_path", "grad_dtype", "mu_dtype", "num_vocab_tiling",
    *(f"{tier}_{axis}_parallelism" for tier in ("ici", "dcn") for axis in AXES),
}  # fmt: skip


def refuses(job: RecipeJob) -> str:
    """Why MaxText cannot train this plan; '' if it can."""
    lay = job.layout
    return first(
        f"MaxText has no configuration of {job.model_label} that we know: it has "
        f"{', '.join(MODELS)}."
        if job.model_id not in MODELS
        else "",
        takes(STACK, "the task", job.task, ("pretrain",)),
        lacks(job, STACK, "pp", "ep", "etp"),
        shards(job, STACK, ("fsdp2", "hsdp", "ddp")),
        takes(STACK, "the precision", job.precision, ("bf16",)),
        cannot(job, NAME, STACK),
        "MaxText packs sequences that GPUs cut in a ring only: plan with context_parallel ring."
        if lay.cp > 1
        and lay.context_parallel != "ring"
        and job.habits.packed
        and _hardware(job) == "gpu"
        else "",
        takes(
            f"{STACK} on {_hardware(job)}s",
            "the context-parallel method",
            lay.context_parallel,
            ("all_gather", "ring")[: 2 if _hardware(job) == "gpu" else 1],
        )
        if lay.cp > 1
        else "",
        offloads(job, STACK, (("none", "none"),)),
        ""
        if _axes(job)
        else "MaxText cuts a node and then the nodes, and this plan's groups of "
        "GPUs end in the middle of one.",
    )


def _hardware(job: RecipeJob) -> str:
    return "tpu" if job.vendor == "google" else "gpu"


def _axes(job: RecipeJob) -> dict[str, int]:
    """Sizes of the mesh in a node or slice (ici) and over them (dcn); {} if groups do not fit."""
    lay = job.layout
    parts = -(-job.num_gpus // job.slice_gpus) if job.slice_gpus else job.num_nodes
    node, rest = divmod(job.num_gpus, parts)
    inside, cut = divmod(node, lay.tp * lay.cp)
    if rest or cut or not inside:
        return {}
    if lay.sharding == "ddp":
        sizes = {"ici_data": inside, "dcn_data": parts}
    elif lay.dp_shard % inside == 0:
        sizes = {
            "ici_fsdp": inside, "dcn_fsdp": lay.dp_shard // inside, "dcn_data": lay.dp_replicate
        }  # fmt: skip
    elif inside % lay.dp_shard == 0 and lay.dp_replicate % (inside // lay.dp_shard) == 0:
        replicas = inside // lay.dp_shard
        sizes = {
            "ici_fsdp": lay.dp_shard, "ici_data": replicas,
            "dcn_data": lay.dp_replicate // replicas,
        }  # fmt: skip
    else:
        return {}
    sizes |= {"ici_tensor": lay.tp, "ici_context": lay.cp}
    names = [f"{tier}_{axis}" for tier in ("ici", "dcn") for axis in AXES]
    return {f"{name}_parallelism": sizes.get(name, 1) for name in names}


def write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """maxtext.yml. Options: dataset, tokenizer, checkpoint_path, learning_rate."""
    if reason := refuses(job):
        raise RecipeError(f"{reason}.")
    lay = job.layout
    share = lay.micro_batch_size / (lay.tp * lay.cp)
    values: dict[str, Any] = {
        "base_config": "base.yml",
        "run_name": job.name,
        "hardware": _hardware(job),
        "model_name": MODELS[job.model_id],
        "per_device_batch_size": int(share) if share == int(share) else share,
        "gradient_accumulation_steps": lay.num_microbatches,
        "max_target_length": job.seq_len,
        "steps": job.num_steps,
        "dtype": "bfloat16",
        "weight_dtype": "float32",
        "tokenizer_type": "huggingface",
        "gradient_clipping_threshold": 1.0,
        **_axes(job),
        **settings(job, NAME),
    }
    if lay.cp > 1:
        values["context_parallel_strategy"] = lay.context_parallel
    if lay.cp > 1 and _hardware(job) == "gpu":
        values["attention"] = "cudnn_flash_te"  # no other kernel of GPUs cuts the sequence
        values["max_segments_per_seq"] = 32  # without a limit it refuses to pack
    start = f"Start with: python3 -m maxtext.trainers.pre_train.train {FILE}"
    notes = [start, *differences(job, NAME), world_line(job)]
    head = commented(job.header, tool=TOOL, tier="validated") + comments(notes)
    return {FILE: yaml_file(head, blanks(job, options), values)}


def blanks(job: RecipeJob, options: Mapping[str, str]) -> list[Blank]:
    """What the first block holds; a data set that is given is one of the Hugging Face hub."""
    hub = "dataset" in options
    last = f"/{job.start.name}/checkpoints/{job.start.num_steps - 1}/items" if job.start else ""
    return [
        Blank(
            name="dataset_type", what="hf, grain or tfds; then its own keys, like hf_path",
            value="hf" if hub else UNKNOWN, known=hub,
        ),
        blank(options, "dataset", "hf_path", "name or folder of the data set, for hf"),
        blank(options, "tokenizer", "tokenizer_path", "folder or name of the tokenizer"),
        checkpoints(options, "base_output_directory"),
        rate(options, "learning_rate"),
        *begun(job, options, "load_parameters_path", last),
    ]  # fmt: skip


def read(files: Mapping[str, str]) -> Recovered:
    """Read the layout of maxtext.yml; its mesh must match the degrees of its world line."""
    given = known_keys(mapping(files, FILE), KEYS, FILE)
    world = world_of(files[FILE], FILE)
    size = {
        axis: given[f"ici_{axis}_parallelism"] * given[f"dcn_{axis}_parallelism"] for axis in AXES
    }
    dp, tp, cp = size["data"] * size["fsdp"], size["tensor"], size["context"]
    if (dp, tp, cp) != (world["dp"], world["tp"], world["cp"]):
        raise RecipeError(f"{FILE} says dp {dp}, tp {tp}, cp {cp}, and others in its first lines.")
    micro = given["per_device_batch_size"] * tp * cp
    if micro != round(micro):
        raise RecipeError(f"{FILE} gives a replica {micro} sequences, which is no whole number.")
    steps = given["gradient_accumulation_steps"]
    return Recovered(
        world_size=dp * tp * cp,
        tp=tp,
        pp=1,
        cp=cp,
        dp=dp,
        micro_batch_size=round(micro),
        num_microbatches=steps,
        global_batch_size=round(micro) * steps * dp,
        more=given,
    )


TARGETS = (
    Target(
        name="maxtext",
        title="MaxText YAML",
        kind="stack",
        tier="validated",
        tool=TOOL,
        write=write,
        read=careful(read, FILE),
        options=("dataset", "tokenizer", "checkpoint_path", "learning_rate"),
        begins=True,
        refuses=refuses,
    ),
)
