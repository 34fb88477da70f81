"""DeepSpeed's configuration: ZeRO stage, offload, number formats, overlap and batch sizes.

Names and defaults: deepspeed 0.19.8, runtime/zero/config.py, runtime/zero/offload_config.py and
runtime/constants.py. Buffers are written out at their defaults, with which it was measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.errors import shown
from runners.recipes.header import Blank, header_lines, to_fill_in
from runners.recipes.job import RecipeError, RecipeJob
from runners.recipes.stack_rules import (
    blank,
    careful,
    first,
    lacks,
    placed,
    settings,
    shards,
    takes,
)
from runners.recipes.target import Recovered, Target

FILE, README = "deepspeed_config.json", "deepspeed_config.README.txt"
STACK, NAME = "DeepSpeed's configuration", "deepspeed"
TOOL = "DeepSpeed 0.19.8"
STAGES = {"ddp": 0, "zero1": 1, "zero2": 2, "zero3": 3, "zeropp": 3}
NVME = "folder on a local NVMe disk"
BUCKET = 500_000_000  # elements reduced or gathered at a time
# DeepSpeed ignores other keys at the top without a warning.
TOP_KEYS = {
    "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps",
    "bf16", "fp16", "data_types", "gradient_clipping", "steps_per_print", "zero_optimization",
    "activation_checkpointing",
}  # fmt: skip


def refuses(job: RecipeJob) -> str:
    """Why DeepSpeed's configuration cannot express this plan; '' if it can."""
    lay = job.layout
    on_host = {lay.offload_optimizer, lay.offload_params} != {"none"}
    stage = STAGES.get(lay.sharding, 3)
    return first(
        lacks(job, STACK, "tp", "pp", "cp", "ep", "etp"),
        shards(job, STACK, tuple(STAGES)),
        takes(STACK, "the precision", job.precision, ("bf16", "fp16")),
        "DeepSpeed offloads under ZeRO only: plan with sharding zero1, zero2 or zero3."
        if on_host and stage == 0
        else "",
        f"DeepSpeed offloads weights under ZeRO-3 only, and the plan has {lay.sharding}."
        if lay.offload_params != "none" and stage < 3
        else "",
        f"DeepSpeed leaves optimizer states on an NVMe disk under ZeRO-3 only, and the plan has "
        f"{lay.sharding}."
        if lay.offload_optimizer == "nvme" and stage < 3
        else "",
        _late(job),
        "DeepSpeed's ZeRO-3 gathers weights again for backward, and the plan keeps them."
        if stage == 3 and not lay.reshard_after_forward
        else "",
    )


def _late(job: RecipeJob) -> str:
    """Why gradients would be reduced after backward, where the forecast has it during backward."""
    if job.dp == 1 or not job.habits.overlaps_gradients:
        return ""
    if job.layout.sharding == "ddp":
        return (
            "DeepSpeed reduces gradients after backward without ZeRO, and the forecast has it "
            "during backward: plan with sharding zero1 or zero2."
        )
    if job.layout.sharding == "zero1" and job.precision == "bf16" and job.habits.reduces_in_fp32:
        return (
            "DeepSpeed reduces fp32 gradients after backward under ZeRO-1, and the forecast has it "
            "during backward: plan with sharding zero2, or with gradient_dtype bf16."
        )
    return ""


def configuration(job: RecipeJob, options: Mapping[str, str]) -> dict[str, Any]:
    """The plan as keys of DeepSpeed, with no key that it does not set."""
    if reason := refuses(job):
        raise RecipeError(f"{reason}.")
    lay, made = job.layout, placed(settings(job, NAME))
    zero: dict[str, Any] = {"stage": STAGES.get(lay.sharding, 0)}
    if lay.sharding not in STAGES and lay.offload_optimizer != "none":
        zero["stage"] = 3  # one rank: nothing is sharded, but ZeRO is what offloads
    if lay.sharding == "zeropp":
        zero["zero_quantized_weights"] = True
        zero["zero_quantized_gradients"] = True
        zero["zero_hpz_partition_size"] = min(job.gpus_per_node, job.num_gpus)
    if zero["stage"]:
        zero |= _buffers(zero["stage"]) | made.get("zero_optimization", {})
    for part, device in (("optimizer", lay.offload_optimizer), ("param", lay.offload_params)):
        if device != "none":
            zero[f"offload_{part}"] = {"device": device, "pin_memory": True}
        if device == "nvme":
            zero[f"offload_{part}"] |= {"nvme_path": _nvme(options).value, **_disk(job, part)}
    found: dict[str, Any] = {
        "train_batch_size": job.global_batch_size,
        "train_micro_batch_size_per_gpu": lay.micro_batch_size,
        "gradient_accumulation_steps": lay.num_microbatches,
        job.precision: {"enabled": True},
        "gradient_clipping": 1.0,
        "steps_per_print": 10,
        "zero_optimization": zero,
    }
    if zero["stage"] and job.precision == "bf16" and "data_types" in made:
        found["data_types"] = made["data_types"]
    if lay.recompute == "offload":
        found["activation_checkpointing"] = {"cpu_checkpointing": True}
    return found


def _buffers(stage: int) -> dict[str, Any]:
    """Sizes of buffers."""
    common = {
        "contiguous_gradients": True,
        "reduce_bucket_size": BUCKET,
    }
    if stage < 3:
        return {**common, "reduce_scatter": True, "allgather_bucket_size": BUCKET}
    return {
        **common,
        "sub_group_size": 1_000_000_000,
        "stage3_prefetch_bucket_size": 50_000_000,
        "stage3_param_persistence_threshold": 100_000,
        "stage3_max_live_parameters": 1_000_000_000,
        "stage3_max_reuse_distance": 1_000_000_000,
        "stage3_gather_16bit_weights_on_model_save": True,
    }


def _disk(job: RecipeJob, part: str) -> dict[str, Any]:
    """Buffers of what is left on a disk: a buffer of weights must hold the largest matrix."""
    if part == "optimizer":
        return {"buffer_count": 4, "pipeline_read": True, "pipeline_write": True}
    largest = int(job.model.vocab_size * job.model.hidden_size)
    return {"buffer_count": 5, "buffer_size": max(100_000_000, largest)}


def _nvme(options: Mapping[str, str]) -> Blank:
    return blank(options, "nvme_path", "nvme_path", NVME)


def blanks(job: RecipeJob, options: Mapping[str, str]) -> list[Blank]:
    """What is to be filled into the JSON."""
    on_disk = "nvme" in (job.layout.offload_optimizer, job.layout.offload_params)
    return [_nvme(options)] if on_disk else []


def notes(job: RecipeJob) -> list[str]:
    """What the JSON cannot express, as sentences."""
    lay = job.layout
    sentences = [
        f"{job.num_gpus} processes, {job.gpus_per_node} a node; {job.seq_len} tokens a sequence.",
        f"Optimizer: {job.optimizer}, which your program gives to deepspeed.initialize, with its "
        "learning rate.",
    ]
    if lay.offload_optimizer == "cpu":
        sentences.append("The states are on the host: use deepspeed.ops.adam.DeepSpeedCPUAdam.")
    if lay.recompute != "none":
        sentences.append(
            f"Recompute: {lay.recompute}. Your model must ask for it: gradient checkpointing."
        )
    if job.task in ("lora", "qlora"):
        sentences.append(
            f"{job.task}: rank {job.lora_rank}, {job.lora_targets} matrices, in your model."
        )
    if job.compiled:
        sentences.append("The forecast is of a compiled model: engine.compile().")
    asked = {
        "attention": job.habits.attention, "CUDA graphs": job.habits.cuda_graphs,
        "chunked loss": job.habits.chunked_loss, "full sequences": job.habits.packed,
    }  # fmt: skip
    given = ", ".join(f"{what} {value}" for what, value in asked.items())
    sentences.append(f"The forecast is of a program with: {given}.")
    sentences.append(
        f"Checkpoints: engine.save_checkpoint every {job.save_every} steps, on storage that every "
        "node sees."
    )
    return sentences


def write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """Write the JSON, and the header as a separate file, because JSON has no comments. Option:
    nvme_path."""
    text = json.dumps(configuration(job, options), indent=2) + "\n"
    head = header_lines(job.header, tool=TOOL, tier="validated")
    lines = [f"{FILE}: {job.name}", *head, "What DeepSpeed's file cannot say:"]
    lines += [f"  - {note}" for note in notes(job)]
    found = blanks(job, options)
    block = to_fill_in(found, lambda b: f"{b.name}: {b.value} (in {FILE})\n") if found else ""
    return {FILE: text, README: block + "\n".join(lines) + "\n"}


def read(files: Mapping[str, str]) -> Recovered:
    """Read the layout of a configuration. Unknown keys and inconsistent batches are errors."""
    try:
        given = json.loads(files[FILE])
    except (KeyError, ValueError):
        raise RecipeError(f"There is no {FILE} that is JSON.") from None
    if not isinstance(given, dict):
        raise RecipeError(f"{FILE} is not an object.")
    if unknown := sorted(given.keys() - TOP_KEYS):
        raise RecipeError(f"{FILE} has the key {shown(unknown[0])}, which DeepSpeed would ignore.")
    names = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    sizes = [given.get(name) for name in names]
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise RecipeError(f"{FILE} lacks one of {', '.join(names)}.")
    whole, micro, steps = (int(size) for size in sizes if size is not None)
    dp, rest = divmod(whole, micro * steps)
    if rest or not dp:
        raise RecipeError(
            f"A batch of {whole} is no multiple of micro-batch {micro} x {steps} steps."
        )
    return Recovered(
        world_size=dp,
        tp=1,
        pp=1,
        cp=1,
        dp=dp,
        micro_batch_size=micro,
        num_microbatches=steps,
        global_batch_size=whole,
        more=given,
    )


TARGETS = (
    Target(
        name="deepspeed",
        title="DeepSpeed JSON",
        kind="stack",
        tier="validated",
        tool=TOOL,
        write=write,
        read=careful(read, FILE),
        options=("nvme_path",),
        refuses=refuses,
    ),
)
