"""Training script for PyTorch's FSDP2: fsdp2_train.py with the plan filled in."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runners.recipes.header import commented
from runners.recipes.job import RecipeError, RecipeJob
from runners.recipes.stack_rules import careful, dense_only, first, lacks, offloads, shards, takes
from runners.recipes.target import Recovered, Target

FILE = "fsdp2_train.py"
STACK = "The FSDP2 script"
TOOL = "PyTorch 2.13.0"
BEGIN, END = "# --- the plan: begin\n", "# --- the plan: end\n"
COUNTS = ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_kv_heads",
          "head_dim", "vocab_size", "num_positions")  # fmt: skip
FLAGS = ("tied_embeddings", "gated_mlp", "qkv_bias", "linear_bias", "norm_bias", "qk_norm")
HELD = (("none", "none"), ("cpu", "cpu"))


def refuses(job: RecipeJob) -> str:
    """Why the script cannot train this plan; '' if it can."""
    lay, m = job.layout, job.model
    return first(
        takes(STACK, "the task", job.task, ("pretrain", "sft")),
        lacks(job, STACK, "pp", "cp", "ep", "etp"),
        dense_only(job, STACK),
        shards(job, STACK, ("fsdp2", "hsdp", "ddp")),
        takes(STACK, "the precision", job.precision, ("bf16",)),
        takes(STACK, "the optimizer", job.optimizer, ("adamw", "sgd")),
        takes(STACK, "recompute", lay.recompute, ("none", "selective", "full")),
        offloads(job, STACK, HELD),
        _tensor_parallel(job),
        f"{STACK} keeps weights on the GPU under DDP, and the plan offloads them."
        if _sharding(job) == "ddp" and lay.offload_params != "none"
        else "",
        f"The learned positions end at {int(m.num_positions)}, and the plan has {job.seq_len} "
        "tokens."
        if 0 < m.num_positions < job.seq_len
        else "",
    )


def _tensor_parallel(job: RecipeJob) -> str:
    lay, m = job.layout, job.model
    if lay.tp == 1:
        return ""
    if m.num_positions:
        return f"{STACK} has no tensor parallelism for learned positions."
    if _sharding(job) == "ddp":
        return f"{STACK} has no tensor parallelism with DDP: plan with sharding fsdp2."
    cut = {"KV heads": m.num_kv_heads, "vocabulary": m.vocab_size, "tokens": job.seq_len}
    for what, size in cut.items():
        if int(size) % lay.tp:
            return f"{STACK} cannot cut {int(size)} {what} by tp {lay.tp}."
    return ""


def _sharding(job: RecipeJob) -> str:
    known = ("fsdp2", "hsdp", "ddp")
    return job.layout.sharding if job.layout.sharding in known else "fsdp2"  # else: one rank


def write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """Write the script, which has no options."""
    if reason := refuses(job):
        raise RecipeError(f"{reason}.")
    lay, m = job.layout, job.model
    model = {name: int(getattr(m, name)) for name in COUNTS}
    model |= {name: bool(getattr(m, name)) for name in FLAGS}
    plan = {
        "world_size": job.num_gpus,
        "tp": lay.tp,
        "dp_replicate": lay.dp_replicate,
        "dp_shard": lay.dp_shard,
        "sharding": _sharding(job),
        "micro_batch_size": lay.micro_batch_size,
        "num_microbatches": lay.num_microbatches,
        "global_batch_size": job.global_batch_size,
        "seq_len": job.seq_len,
        "num_steps": job.num_steps,
        "recompute": lay.recompute,
        "reshard_after_forward": lay.reshard_after_forward,
        "offload_params": lay.offload_params,
        "precision": job.precision,
        "optimizer": job.optimizer,
        "compiled": job.compiled,
    }
    script = Path(__file__).with_name(FILE).read_text(encoding="utf-8")
    before, _, rest = script.partition(BEGIN)
    _, _, after = rest.partition(END)
    values = _assigned("MODEL", model) + _assigned("PLAN", plan)
    header = commented(job.header, tool=TOOL, tier="validated")
    return {FILE: f"{header}\n{before}{BEGIN}{values}{END}{after}"}


def _assigned(name: str, values: Mapping[str, Any]) -> str:
    lines = "".join(f'    "{key}": {value!r},\n' for key, value in values.items())
    return f"{name}: dict[str, Any] = {{\n{lines}}}\n".replace("'", '"')


def read(files: Mapping[str, str]) -> Recovered:
    """Read the layout of a script from its syntax tree, without running it."""
    try:
        tree = ast.parse(files[FILE])
    except (KeyError, SyntaxError, ValueError):
        raise RecipeError(f"There is no {FILE} that is Python.") from None
    found: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            name = node.target.id
            if name in ("MODEL", "PLAN"):
                found[name] = ast.literal_eval(node.value)
    if found.keys() != {"MODEL", "PLAN"}:
        raise RecipeError(f"{FILE} has no MODEL or no PLAN.")
    plan = found["PLAN"]
    return Recovered(
        world_size=plan["world_size"],
        tp=plan["tp"],
        pp=1,
        cp=1,
        dp=plan["dp_replicate"] * plan["dp_shard"],
        micro_batch_size=plan["micro_batch_size"],
        num_microbatches=plan["num_microbatches"],
        global_batch_size=plan["global_batch_size"],
        more=found,
    )


TARGETS = (
    Target(
        name="fsdp2",
        title="PyTorch FSDP2 script",
        kind="stack",
        tier="validated",
        tool=TOOL,
        write=write,
        read=careful(read, FILE),
        starts=lambda job, options: f"python {FILE}",
        refuses=refuses,
    ),
)
