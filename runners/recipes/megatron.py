"""Arguments of Megatron-LM's pretrain_gpt.py, as a shell file."""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import shown
from core.model.transformer import is_mla, is_moe
from runners.recipes import arguments as words_of
from runners.recipes import quoting
from runners.recipes.job import RecipeError, RecipeJob
from runners.recipes.stack_rules import (
    careful,
    first,
    lacks,
    offloads,
    shards,
    takes,
    world_line,
    world_of,
)
from runners.recipes.target import Recovered, Target

FILE = "megatron_train.sh"
STACK = "Megatron-LM"
TOOL = "megatron-core 0.16.1 (TransformerConfig; the flags against our own list)"
PROGRAM = ("pretrain_gpt.py",)
MARKS = {
    "--data-path": ("data_path", "REPLACE_ME: prefix of your indexed data set"),
    "--tokenizer-model": ("tokenizer", "REPLACE_ME: folder or name of your tokenizer"),
    "--lr": ("", "REPLACE_ME: learning rate"),
}
PRECISION: dict[str, dict[str, str | int | bool]] = {
    "bf16": {"--bf16": True},
    "fp16": {"--fp16": True},
    "fp8": {"--bf16": True, "--fp8-format": "hybrid"},
    "fp8_blockwise": {"--bf16": True, "--fp8-format": "e4m3", "--fp8-recipe": "blockwise"},
    "mxfp8": {"--bf16": True, "--fp8-format": "e4m3", "--fp8-recipe": "mxfp8"},
}
OPTIMIZERS = {"adamw": "adam", "sgd": "sgd"}
CP_METHODS = {"ring": "p2p", "all_gather": "all_gather", "ulysses": "a2a"}
RECOMPUTE: dict[str, dict[str, str | int | bool]] = {
    "none": {},
    "selective": {"--recompute-granularity": "selective"},
    "full": {
        "--recompute-granularity": "full",
        "--recompute-method": "uniform",
        "--recompute-num-layers": 1,
    },
}
# Every flag that may be written; `read` refuses any other.
FLAGS = {
    "--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--context-parallel-size",
    "--expert-model-parallel-size", "--expert-tensor-parallel-size", "--sequence-parallel",
    "--num-virtual-stages-per-pipeline-rank", "--account-for-embedding-in-pipeline-split",
    "--account-for-loss-in-pipeline-split", "--cp-comm-type", "--use-distributed-optimizer",
    "--micro-batch-size", "--global-batch-size", "--seq-length", "--max-position-embeddings",
    "--train-iters", "--optimizer", "--bf16", "--fp16", "--fp8-format", "--fp8-recipe",
    "--recompute-granularity", "--recompute-method", "--recompute-num-layers",
    "--num-layers", "--hidden-size", "--ffn-hidden-size", "--num-attention-heads",
    "--group-query-attention", "--num-query-groups", "--kv-channels", "--normalization",
    "--swiglu", "--disable-bias-linear", "--add-qkv-bias", "--qk-layernorm",
    "--untie-embeddings-and-output-weights", "--position-embedding-type", "--attention-dropout",
    "--hidden-dropout", "--num-experts", "--moe-router-topk", "--moe-ffn-hidden-size",
    "--moe-shared-expert-intermediate-size", "--moe-layer-freq", "--moe-grouped-gemm",
    "--moe-token-dispatcher-type", "--multi-latent-attention", "--q-lora-rank", "--kv-lora-rank",
    "--qk-head-dim", "--qk-pos-emb-head-dim", "--v-head-dim", "--tokenizer-type", *MARKS,
}  # fmt: skip


def refuses(job: RecipeJob) -> str:
    """Why Megatron-LM cannot train this plan; '' if it can."""
    lay, m = job.layout, job.model
    return first(
        takes(STACK, "the task", job.task, ("pretrain",)),
        "" if is_moe(m) else lacks(job, f"{STACK} for a model without experts", "ep", "etp"),
        shards(job, STACK, ("zero1", "ddp")),
        takes(STACK, "the precision", job.precision, tuple(PRECISION)),
        takes(STACK, "the optimizer", job.optimizer, tuple(OPTIMIZERS)),
        takes(STACK, "recompute", lay.recompute, tuple(RECOMPUTE)),
        offloads(job, STACK, (("none", "none"),)),
        takes(STACK, "the schedule", lay.schedule, ("1f1b", "interleaved")) if lay.pp > 1 else "",
        _stages(job)[1],
        _unknown_parts(job),
    )


def _unknown_parts(job: RecipeJob) -> str:
    m = job.model
    parts = {
        "state-space or linear-attention layers": bool(m.num_ssm_layers or m.num_linear_layers),
        "layers without an MLP": bool(m.num_mlp_layers),
        "sliding windows": bool(m.num_window_layers),
        "gated attention": bool(m.attention_gate),
        f"{float(m.norms_per_layer):g} norms a layer": m.norms_per_layer != 2,
    }
    what = next((name for name, has in parts.items() if has), "")
    return f"These arguments cannot say {what}, which {job.model_label} has." if what else ""


def _stages(job: RecipeJob) -> tuple[dict[str, str | int | bool], str]:
    """Flags that divide the layers into stages, or why that is not possible."""
    lay = job.layout
    stages, layers = lay.pp * lay.virtual_stages, int(job.model.num_layers)
    found: dict[str, str | int | bool] = {}
    if lay.virtual_stages > 1:
        found["--num-virtual-stages-per-pipeline-rank"] = lay.virtual_stages
        if lay.num_microbatches % lay.pp:
            return {}, f"{lay.num_microbatches} micro-batches are no multiple of pp {lay.pp}."
    if layers % stages == 0:
        return found, ""
    if (layers + 2) % stages == 0:  # embedding and LM head count as a layer each
        found["--account-for-embedding-in-pipeline-split"] = True
        found["--account-for-loss-in-pipeline-split"] = True
        return found, ""
    return {}, (
        f"{STACK} cannot cut {layers} layers into {stages} stages evenly, nor with embedding and "
        "LM head as a layer each."
    )


def _model(job: RecipeJob) -> dict[str, str | int | bool]:
    m = job.model
    positions = int(m.num_positions)
    found: dict[str, str | int | bool] = {
        "--num-layers": int(m.num_layers),
        "--hidden-size": int(m.hidden_size),
        "--ffn-hidden-size": int(m.ffn_hidden_size or m.moe_ffn_hidden_size),
        "--num-attention-heads": int(m.num_attention_heads),
        "--normalization": "LayerNorm" if m.norm_bias else "RMSNorm",
        "--swiglu": bool(m.gated_mlp),
        "--disable-bias-linear": not m.linear_bias,
        "--add-qkv-bias": bool(m.qkv_bias and not m.linear_bias),
        "--qk-layernorm": bool(m.qk_norm),
        "--untie-embeddings-and-output-weights": not m.tied_embeddings,
        "--position-embedding-type": "learned_absolute" if positions else "rope",
        "--max-position-embeddings": positions or job.seq_len,
        "--attention-dropout": "0.0",  # Megatron's default is 0.1, which the forecast leaves out
        "--hidden-dropout": "0.0",
    }
    if is_mla(m):
        found |= {
            "--multi-latent-attention": True,
            "--kv-lora-rank": int(m.kv_lora_rank),
            "--qk-head-dim": int(m.qk_nope_head_dim),
            "--qk-pos-emb-head-dim": int(m.qk_rope_head_dim),
            "--v-head-dim": int(m.v_head_dim),
        }
        if m.q_lora_rank:
            found["--q-lora-rank"] = int(m.q_lora_rank)
    else:
        found["--kv-channels"] = int(m.head_dim)
        if m.num_kv_heads != m.num_attention_heads:
            found["--group-query-attention"] = True
            found["--num-query-groups"] = int(m.num_kv_heads)
    if is_moe(m):
        dense = int(m.num_dense_layers)
        found |= {
            "--num-experts": int(m.num_experts),
            "--moe-router-topk": int(m.experts_per_token),
            "--moe-ffn-hidden-size": int(m.moe_ffn_hidden_size),
            "--moe-grouped-gemm": True,
            "--moe-token-dispatcher-type": "alltoall",
        }
        if m.num_shared_experts:
            shared = int(m.num_shared_experts * m.moe_ffn_hidden_size)
            found["--moe-shared-expert-intermediate-size"] = shared
        if dense:
            found["--moe-layer-freq"] = f"([0]*{dense}+[1]*{int(m.num_layers) - dense})"
    return found


def arguments(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str | int | bool]:
    """Every flag that the plan sets, then marked ones that only the user knows."""
    lay = job.layout
    found: dict[str, str | int | bool] = {
        "--tensor-model-parallel-size": lay.tp,
        "--pipeline-model-parallel-size": lay.pp,
        "--context-parallel-size": lay.cp,
        "--sequence-parallel": lay.tp > 1,
        "--use-distributed-optimizer": lay.sharding == "zero1" and job.num_gpus > 1,
        "--micro-batch-size": lay.micro_batch_size,
        "--global-batch-size": job.global_batch_size,
        "--seq-length": job.seq_len,
        "--train-iters": job.num_steps,
        "--optimizer": OPTIMIZERS[job.optimizer],
        **_stages(job)[0],
        **_model(job),
        **PRECISION[job.precision],
        **RECOMPUTE[lay.recompute],
    }
    if lay.cp > 1:
        found["--cp-comm-type"] = CP_METHODS[lay.context_parallel]
    if is_moe(job.model):
        found["--expert-model-parallel-size"] = lay.ep
        found["--expert-tensor-parallel-size"] = lay.etp
    found["--tokenizer-type"] = "HuggingFaceTokenizer"
    for flag, (option, mark) in MARKS.items():
        given = options.get(option, "") if option else ""
        found[flag] = quoting.path(given, option) if given else mark
    return found


def write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """megatron_train.sh. Options: data_path, tokenizer."""
    if reason := refuses(job):
        raise RecipeError(f"{reason}.")
    lay = job.layout
    notes = [
        "Run it in a checkout of Megatron-LM. Replace what says REPLACE_ME; the base of the rotary "
        "embedding, warm-up, decay and checkpoints (--rotary-base, --save) are yours to add.",
        world_line(job),
    ]
    # Before Blackwell, tensor parallelism overlaps only with one hardware queue.
    environment = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"} if lay.tp > 1 or lay.cp > 1 else {}
    text = words_of.script(
        job.header, FILE, PROGRAM, arguments(job, options), tool=TOOL, tier="validated",
        notes=notes, environment=environment,
    )  # fmt: skip
    return {FILE: text}


def flags_of(text: str) -> dict[str, str | bool]:
    """The flags of such a file; an unknown flag is an error."""
    found = words_of.flags(words_of.program_words(text, FILE)[len(PROGRAM) :], FILE)
    if unknown := sorted(found.keys() - FLAGS):
        raise RecipeError(f"{FILE} has {shown(unknown[0])}, which is none of the known flags.")
    return found


def read(files: Mapping[str, str]) -> Recovered:
    """Read the layout of megatron_train.sh; dp follows from the line with the world size."""
    text = files.get(FILE, "")
    found = flags_of(text)

    def count(flag: str) -> int:
        return words_of.number(found, flag, FILE)

    tp, pp, cp = (
        count(f"--{name}-parallel-size") for name in ("tensor-model", "pipeline-model", "context")
    )
    world = world_of(text, FILE)
    if (tp, pp, cp) != (world["tp"], world["pp"], world["cp"]):
        raise RecipeError(f"{FILE} says other degrees in its flags than in its first lines.")
    dp = world["dp"]
    micro, whole = count("--micro-batch-size"), count("--global-batch-size")
    if whole % (micro * dp):
        raise RecipeError(f"A batch of {whole} is no multiple of micro-batch {micro} x dp {dp}.")
    return Recovered(
        world_size=world["world_size"],
        tp=tp,
        pp=pp,
        cp=cp,
        dp=dp,
        micro_batch_size=micro,
        num_microbatches=whole // (micro * dp),
        global_batch_size=whole,
        more=found,
    )


TARGETS = (
    Target(
        name="megatron",
        title="Megatron-LM arguments",
        kind="stack",
        tier="validated",
        tool=TOOL,
        write=write,
        read=careful(read, FILE),
        options=("data_path", "tokenizer"),
        starts=lambda job, options: f"bash {FILE}",
        refuses=refuses,
    ),
)
