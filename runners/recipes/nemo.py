"""Recipe for Megatron-Bridge, NeMo's trainer, which does not install with our torch."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.model.transformer import is_moe
from runners.recipes import megatron
from runners.recipes.header import Blank, commented, comments, to_fill_in
from runners.recipes.job import RecipeError, RecipeJob
from runners.recipes.stack_rules import (
    blank,
    cannot,
    careful,
    first,
    placed,
    recomputed_modules,
    settings,
    takes,
    world_line,
    world_of,
)
from runners.recipes.target import Recovered, Target

FILE = "megatron_bridge_train.py"
STACK, NAME = "Megatron-Bridge", "megatron-bridge"
PRECISION = {"bf16": "bf16_mixed", "fp16": "fp16_mixed"}

BEGIN = """
# Train with Megatron-Bridge: its provider of the model, cut as the plan says.
import os

# Before Blackwell, tensor parallelism overlaps only with one hardware queue.
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", CONNECTIONS)

from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.mixed_precision import get_mixed_precision_config
from megatron.bridge.training.pretrain import pretrain

"""
BODY = """

def config():
    for name in BLANKS:
        if not globals()[name]:
            raise SystemExit(f"{name} is empty: fill it in, in the first lines of this file.")
    cfg = _pretrain_common()
    cfg.model = AutoBridge.from_hf_pretrained(MODEL).to_megatron_provider(load_weights=False)
    cfg.mixed_precision = get_mixed_precision_config(PRECISION)
    for part, values in PLAN.items():
        for name, value in values.items():
            if not hasattr(getattr(cfg, part, None), name):
                raise SystemExit(f"This version of Megatron-Bridge has no {part}.{name}.")
            setattr(getattr(cfg, part), name, value)
    # The forecast leaves evaluation out; before 0.4 it is a part of train.
    (getattr(cfg, "validation", None) or cfg.train).eval_iters = 0
    cfg.tokenizer.tokenizer_model = TOKENIZER
    cfg.dataset.blend = ([DATA_PATH], None)  # without one, made-up tokens
    cfg.optimizer.lr, cfg.optimizer.min_lr = LEARNING_RATE, LEARNING_RATE / 10
    cfg.checkpoint.save = cfg.checkpoint.load = CHECKPOINTS
    cfg.logger.tensorboard_dir = LOGS
    return cfg


if __name__ == "__main__":
    pretrain(config(), forward_step)
"""
SAVES = "    cfg.checkpoint.save = cfg.checkpoint.load = CHECKPOINTS\n"
BEGINS = "    cfg.checkpoint.pretrained_checkpoint = BEGINS_WITH  # where CHECKPOINTS has none\n"


def refuses(job: RecipeJob) -> str:
    """Why Megatron-Bridge cannot train this plan; '' if it can."""
    why = megatron.refuses(job).replace(megatron.STACK, STACK)
    return why or first(
        takes(STACK, "the precision", job.precision, tuple(PRECISION)), cannot(job, NAME, STACK)
    )


def plan(job: RecipeJob) -> dict[str, dict[str, Any]]:
    """The settings of the plan, by part of Megatron-Bridge's ConfigContainer."""
    lay, zero = job.layout, job.layout.sharding == "zero1"
    model: dict[str, Any] = {
        "tensor_model_parallel_size": lay.tp,
        "pipeline_model_parallel_size": lay.pp,
        "virtual_pipeline_model_parallel_size": lay.virtual_stages
        if lay.virtual_stages > 1
        else None,
        "context_parallel_size": lay.cp,
        "sequence_parallel": lay.tp > 1,
        "seq_length": job.seq_len,
    }
    if is_moe(job.model):
        model["expert_model_parallel_size"] = lay.ep
        model["expert_tensor_parallel_size"] = lay.etp
        model["mtp_num_layers"] = megatron.known(job).mtp_layers or None
    if job.model.num_layers % (lay.pp * lay.virtual_stages):
        model["pipeline_model_parallel_layout"] = megatron.pipeline_layout(job)
    if lay.cp > 1:
        model["cp_comm_type"] = megatron.CP_METHODS[lay.context_parallel]
    found: dict[str, dict[str, Any]] = {
        "model": model,
        "train": {
            "train_iters": job.num_steps,
            "micro_batch_size": lay.micro_batch_size,
            "global_batch_size": job.global_batch_size,
        },
        "dataset": {"seq_length": job.seq_len},
        "ddp": {"use_distributed_optimizer": zero},
        "logger": {"log_interval": 1},
    }
    if lay.offload_optimizer == "cpu":
        found["optimizer"] = {
            "optimizer_cpu_offload": True,
            "optimizer_offload_fraction": 1.0,
            "use_precision_aware_optimizer": True,
        }
    for part, values in placed(settings(job, NAME)).items():
        found[part] = found.get(part, {}) | values
    if modules := recomputed_modules(job):
        model["recompute_modules"] = modules
        found["model"]["recompute_modules"] = modules
    return found


def write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """megatron_bridge_train.py. Options: model_path, tokenizer, data_path, checkpoint_path,
    learning_rate."""
    if reason := refuses(job):
        raise RecipeError(f"{reason}.")
    notes = [
        "Warm-up and decay stay as Megatron-Bridge's common recipe has them. It goes on from the "
        "last checkpoint in CHECKPOINTS, if there is one.",
        world_line(job),
    ]
    parts = [
        f'    "{part}": {{\n'
        + "".join(f'        "{name}": {value!r},\n' for name, value in values.items())
        + "    },\n"
        for part, values in plan(job).items()
    ]
    found = blanks(job, options)
    text = (
        to_fill_in(found, lambda b: f"{b.name} = {b.value if b.known else ''!r}\n")
        + commented(job.header, tool=STACK, tier="not_validated")
        + comments(notes)
        + BEGIN.replace("CONNECTIONS)", '"1")' if job.layout.tp * job.layout.cp > 1 else '"8")')
        + f"BLANKS = {[b.name for b in found]!r}\n"
        + f"PRECISION = {PRECISION[job.precision]!r}\n"
        + "PLAN = {\n"
        + "".join(parts)
        + "}\n"
        + (BODY if job.start is None else BODY.replace(SAVES, SAVES + BEGINS))
    )
    return {FILE: text}


def blanks(job: RecipeJob, options: Mapping[str, str]) -> list[Blank]:
    """What the first block holds: the model's weights are its dimensions and its tokenizer."""
    name = f"name or folder of {job.model_label} in Hugging Face form"
    model = blank(options, "model_path", "MODEL", name)
    tokenizer = blank(options, "tokenizer", "TOKENIZER", "folder or name of the tokenizer")
    if model.known and not tokenizer.known:
        tokenizer = replace(model, name="TOKENIZER")
    others = [
        b for b in megatron.blanks(job, options) if b.name not in ("TOKENIZER", "ROTARY_BASE")
    ]
    return [model, tokenizer, *others]


def read(files: Mapping[str, str]) -> Recovered:
    """Read the layout of the recipe from its syntax tree, without running it."""
    try:
        tree = ast.parse(files[FILE])
    except (KeyError, SyntaxError, ValueError):
        raise RecipeError(f"There is no {FILE} that is Python.") from None
    values = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "PLAN"
    ]
    if len(values) != 1:
        raise RecipeError(f"{FILE} has no PLAN.")
    given = ast.literal_eval(values[0])
    world = world_of(files[FILE], FILE)
    model, train = given["model"], given["train"]
    names = {"tp": "tensor_model_parallel_size", "pp": "pipeline_model_parallel_size",
             "cp": "context_parallel_size"}  # fmt: skip
    degrees = {short: model[name] for short, name in names.items()}
    if any(world[short] != size for short, size in degrees.items()):
        raise RecipeError(f"{FILE} says other degrees in PLAN than in its first lines.")
    micro, whole, dp = train["micro_batch_size"], train["global_batch_size"], world["dp"]
    if whole % (micro * dp):
        raise RecipeError(f"A batch of {whole} is no multiple of micro-batch {micro} x dp {dp}.")
    return Recovered(
        world_size=world["world_size"],
        tp=world["tp"],
        pp=world["pp"],
        cp=world["cp"],
        dp=dp,
        micro_batch_size=micro,
        num_microbatches=whole // (micro * dp),
        global_batch_size=whole,
        more=given,
    )


TARGETS = (
    Target(
        name="megatron-bridge",
        title="Megatron-Bridge (NeMo) recipe",
        kind="stack",
        tier="not_validated",
        tool=STACK,
        write=write,
        read=careful(read, FILE),
        options=("model_path", "tokenizer", "data_path", "checkpoint_path", "learning_rate"),
        starts=lambda job, options: f"python {FILE}",
        begins=True,
        refuses=refuses,
    ),
)
