"""Arguments of Megatron-LM's pretrain_gpt.py, as a shell file.

Names and defaults: megatron-core 0.19.2, megatron/training/arguments.py. Every overlap
and checkpoint is off there unless a flag asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import shown
from core.model.transformer import is_mla, is_moe
from hardware.model_facts import ModelFacts, model_facts
from runners.recipes import arguments as words_of
from runners.recipes.header import Blank
from runners.recipes.job import RecipeError, RecipeJob
from runners.recipes.stack_rules import (
    begun,
    blank,
    cannot,
    careful,
    checkpoints,
    differences,
    first,
    habits,
    lacks,
    module_obstacle,
    offloads,
    rate,
    settings,
    shards,
    takes,
    world_line,
    world_of,
)
from runners.recipes.target import Recovered, Target

FILE = "megatron_train.sh"
STACK, NAME = "Megatron-LM", "megatron-lm"
TOOL = "Megatron-LM of megatron-core 0.19.2: parse_args, validate_args"
PROGRAM = ("pretrain_gpt.py",)
# Flags whose values stand in the file's first block, by their variable there.
BLANKS = {
    "--data-path": "DATA_PATH", "--tokenizer-model": "TOKENIZER", "--lr": "LEARNING_RATE",
    "--save": "CHECKPOINTS", "--load": "CHECKPOINTS", "--tensorboard-dir": "LOGS",
    "--rotary-base": "ROTARY_BASE", "--pretrained-checkpoint": "BEGINS_WITH",
}  # fmt: skip
PRECISION: dict[str, dict[str, str | int | bool]] = {
    "bf16": {"--bf16": True},
    "fp16": {"--fp16": True},
    "fp8": {"--bf16": True, "--fp8-format": "hybrid"},
    "fp8_blockwise": {"--bf16": True, "--fp8-format": "e4m3", "--fp8-recipe": "blockwise"},
    "mxfp8": {"--bf16": True, "--fp8-format": "e4m3", "--fp8-recipe": "mxfp8"},
}
MODULES = "--recompute-modules"
CP_METHODS = {"ring": "p2p", "all_gather": "all_gather", "ulysses": "a2a"}
# Every flag that may be written; `read` refuses any other.
FLAGS = {
    "--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--context-parallel-size",
    "--expert-model-parallel-size", "--expert-tensor-parallel-size", "--sequence-parallel",
    "--num-virtual-stages-per-pipeline-rank", "--pipeline-model-parallel-layout",
    "--cp-comm-type", "--use-distributed-optimizer", "--accumulate-allreduce-grads-in-fp32",
    "--moe-flex-dispatcher-backend", "--overlap-grad-reduce",
    "--overlap-param-gather", "--tp-comm-overlap", "--grad-reduce-in-bf16", "--cuda-graph-impl",
    "--micro-batch-size", "--global-batch-size", "--seq-length", "--max-position-embeddings",
    "--train-iters", "--optimizer", "--bf16", "--fp16", "--fp8-format", "--fp8-recipe",
    "--recompute-granularity", "--recompute-method", "--recompute-num-layers", MODULES,
    "--num-layers", "--hidden-size", "--ffn-hidden-size", "--num-attention-heads",
    "--group-query-attention", "--num-query-groups", "--kv-channels", "--normalization",
    "--swiglu", "--disable-bias-linear", "--add-qkv-bias", "--qk-layernorm",
    "--untie-embeddings-and-output-weights", "--position-embedding-type", "--attention-dropout",
    "--hidden-dropout", "--num-experts", "--moe-router-topk", "--moe-ffn-hidden-size",
    "--moe-shared-expert-intermediate-size", "--moe-layer-freq", "--moe-grouped-gemm",
    "--moe-token-dispatcher-type", "--multi-latent-attention", "--q-lora-rank", "--kv-lora-rank",
    "--qk-head-dim", "--qk-pos-emb-head-dim", "--v-head-dim", "--tokenizer-type",
    "--rotary-percent", "--use-rope-scaling", "--rope-scaling-factor",
    "--moe-router-score-function", "--moe-router-pre-softmax", "--moe-router-enable-expert-bias",
    "--moe-router-num-groups", "--moe-router-group-topk", "--moe-router-topk-scaling-factor",
    "--moe-router-dtype", "--mtp-num-layers", "--moe-permute-fusion", "--cross-entropy-loss-fusion",
    "--attention-backend", "--eval-iters", "--save-interval", "--async-save", "--log-interval",
    "--use-persistent-ckpt-worker", "--optimizer-cpu-offload", "--use-precision-aware-optimizer",
    "--log-throughput", *BLANKS,
}  # fmt: skip


def refuses(job: RecipeJob) -> str:
    """Why Megatron-LM cannot train this plan; '' if it can."""
    lay, m = job.layout, job.model
    return first(
        takes(STACK, "the task", job.task, ("pretrain",)),
        "" if is_moe(m) else lacks(job, f"{STACK} for a model without experts", "ep", "etp"),
        shards(job, STACK, ("zero1", "ddp")),
        takes(STACK, "the precision", job.precision, tuple(PRECISION)),
        cannot(job, NAME, STACK),
        offloads(job, STACK, (("none", "none"), ("cpu", "none"))),
        "Megatron-LM leaves the states of AdamW alone on the host, and under zero1 alone."
        if lay.offload_optimizer == "cpu" and (lay.sharding, job.optimizer) != ("zero1", "adamw")
        else "",
        f"Megatron-LM has no CUDA graphs with {lay.recompute} recompute."
        if job.habits.cuda_graphs and lay.recompute in ("norm_act", "mlp", "full")
        else "",
        module_obstacle(job, STACK),
        f"{STACK} has no CUDA graphs of layers whose experts take any number of tokens: plan "
        "without cuda_graphs."
        if job.habits.cuda_graphs and is_moe(m)
        else "",
        takes(STACK, "the schedule", lay.schedule, ("1f1b", "interleaved")) if lay.pp > 1 else "",
        "Tokens are sent once per node by DeepEP, which runs on NVIDIA's devices only: plan with "
        "moe_dispatcher per_expert."
        if job.vendor != "nvidia" and habits(job).get("dispatcher") == "per_node"
        else "",
        stages(job)[1],
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


def stages(job: RecipeJob) -> tuple[dict[str, str | int | bool], str]:
    """Flags that divide the layers into stages, or why that is not possible."""
    lay = job.layout
    count, layers = lay.pp * lay.virtual_stages, int(job.model.num_layers)
    if lay.virtual_stages > 1 and lay.num_microbatches % lay.pp:
        return {}, f"{lay.num_microbatches} micro-batches are no multiple of pp {lay.pp}."
    if layers < count - 2:  # the first and the last stage may hold no layer
        return {}, f"{STACK} cannot cut {layers} layers into {count} stages."
    if layers % count:
        return {"--pipeline-model-parallel-layout": pipeline_layout(job)}, ""
    if lay.virtual_stages > 1:
        return {"--num-virtual-stages-per-pipeline-rank": lay.virtual_stages}, ""
    return {}, ""


def pipeline_layout(job: RecipeJob) -> str:
    """Layers of every stage, where they do not divide: t is a layer, E the embedding, m a layer
    that predicts a further token, L the loss. No rank holds more layers than the forecast has on
    the fullest; below that, what the ends hold in addition counts as layers."""
    pp, layers = job.layout.pp, int(job.model.num_layers)
    count, most, mtp = pp * job.layout.virtual_stages, -(-layers // pp), known(job).mtp_layers
    held, more = [-(-layers // count)] * count, [0.0] * count
    more[0] += 0.5  # the embedding is a look-up
    more[-1] += 1 + mtp

    def load(i: int) -> tuple[bool, float, float, int]:
        of_rank = sum(held[i % pp :: pp])
        return of_rank > most, of_rank + sum(more[i % pp :: pp]), held[i] + more[i], i

    for _ in range(sum(held) - layers):
        held[max((i for i in range(count) if held[i]), key=load)] -= 1
    return "E" + "|".join("t" * n for n in held) + "m" * mtp + "L"


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
        "--qk-layernorm": bool(m.qk_norm or is_mla(m)),  # of latent attention, on its latents
        "--untie-embeddings-and-output-weights": not m.tied_embeddings,
        "--position-embedding-type": "learned_absolute" if positions else "rope",
        "--max-position-embeddings": positions or job.seq_len,
        "--attention-dropout": "0.0",  # Megatron's default is 0.1, which the forecast leaves out
        "--hidden-dropout": "0.0",
        "--cross-entropy-loss-fusion": True,  # with which its memory was measured
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
            "--moe-permute-fusion": True,  # with which its memory was measured
        }
        if m.num_shared_experts:
            shared = int(m.num_shared_experts * m.moe_ffn_hidden_size)
            found["--moe-shared-expert-intermediate-size"] = shared
        if dense:
            found["--moe-layer-freq"] = f"([0]*{dense}+[1]*{int(m.num_layers) - dense})"
        found |= _router(known(job))
    return found | _positions(job)


def known(job: RecipeJob) -> ModelFacts:
    """What the arguments need of the model beyond its dimensions."""
    return model_facts().get(job.model_id, ModelFacts())


def _router(facts: ModelFacts) -> dict[str, str | int | bool]:
    """How tokens find their experts; Megatron's default is a softmax over the chosen ones."""
    found: dict[str, str | int | bool] = {
        "--moe-router-pre-softmax": facts.router == "softmax_before",
        "--moe-router-enable-expert-bias": facts.router == "sigmoid_bias",
    }
    if facts.router == "sigmoid_bias":
        found["--moe-router-score-function"] = "sigmoid"
        found["--moe-router-dtype"] = "fp32"
    if facts.router_groups > 1:
        found["--moe-router-num-groups"] = facts.router_groups
        found["--moe-router-group-topk"] = facts.router_group_topk
    if facts.router_scaling != 1:
        found["--moe-router-topk-scaling-factor"] = f"{facts.router_scaling:g}"
    if facts.mtp_layers:
        found["--mtp-num-layers"] = facts.mtp_layers
    return found


def _positions(job: RecipeJob) -> dict[str, str | int | bool]:
    """The rotary embedding of the model, where it has one."""
    if job.model.num_positions:
        return {}
    facts = known(job)
    found: dict[str, str | int | bool] = {"--rotary-base": words_of.Filled("ROTARY_BASE")}
    if facts.rotary_share < 1:
        found["--rotary-percent"] = f"{facts.rotary_share:g}"
    if facts.rope_scaling:
        found |= {"--use-rope-scaling": True, "--rope-scaling-factor": f"{facts.rope_scaling:g}"}
    return found


def blanks(job: RecipeJob, options: Mapping[str, str]) -> list[Blank]:
    """What the first block holds: given, known of the model, or to fill in."""
    folder = checkpoints(options, "CHECKPOINTS")
    logs = f"{folder.value}/logs" if folder.known else "logs"
    found = [
        blank(options, "data_path", "DATA_PATH", "prefix of the indexed data set"),
        blank(options, "tokenizer", "TOKENIZER", "folder or name of the tokenizer"),
        rate(options, "LEARNING_RATE"),
        folder,
        Blank(name="LOGS", what="folder of logs", value=logs, known=True),
        *begun(job, options, BLANKS["--pretrained-checkpoint"]),
    ]
    if not job.model.num_positions:
        base = int(known(job).rotary_base)
        what = "base of the rotary embedding, rope_theta of the model's config.json"
        found.append(Blank(name="ROTARY_BASE", what=what, value=base, known=bool(base)))
    return found


def arguments(job: RecipeJob) -> dict[str, str | int | bool]:
    """Every flag that the plan sets, then those whose values are in the first block."""
    lay = job.layout
    found: dict[str, str | int | bool] = {
        "--tensor-model-parallel-size": lay.tp,
        "--pipeline-model-parallel-size": lay.pp,
        "--context-parallel-size": lay.cp,
        "--sequence-parallel": lay.tp > 1,
        "--use-distributed-optimizer": lay.sharding == "zero1"
        and (job.num_gpus > 1 or lay.offload_optimizer == "cpu"),
        # All of its states; its transfers stay exposed, as in the forecast.
        "--optimizer-cpu-offload": lay.offload_optimizer == "cpu",
        "--use-precision-aware-optimizer": lay.offload_optimizer == "cpu",  # or it is refused
        "--micro-batch-size": lay.micro_batch_size,
        "--global-batch-size": job.global_batch_size,
        "--seq-length": job.seq_len,
        "--train-iters": job.num_steps,
        "--eval-iters": 0,  # 100 each 1,000 steps by default, which the forecast leaves out
        **stages(job)[0],
        **_model(job),
        **PRECISION[job.precision],
    }
    if lay.cp > 1:
        found["--cp-comm-type"] = CP_METHODS[lay.context_parallel]
    if is_moe(job.model):
        found["--expert-model-parallel-size"] = lay.ep
        found["--expert-tensor-parallel-size"] = lay.etp
    found |= words_of.given(settings(job, NAME))
    if MODULES in found:
        found[MODULES] = words_of.Several(found[MODULES])
    found |= {
        "--log-interval": 1,
        "--log-throughput": True,
        "--tokenizer-type": "HuggingFaceTokenizer",
    }
    named = {flag: words_of.Filled(name) for flag, name in BLANKS.items()}
    del named["--rotary-base"]
    if job.start is None:
        del named["--pretrained-checkpoint"]
    return found | named


def write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """megatron_train.sh. Options: data_path, tokenizer, checkpoint_path, learning_rate."""
    if reason := refuses(job):
        raise RecipeError(f"{reason}.")
    lay = job.layout
    notes = [
        *differences(job, NAME),
        "Run it in a checkout of Megatron-LM. Warm-up and decay (--lr-warmup-iters, "
        "--lr-decay-style, --min-lr) are yours to add. It goes on from the last checkpoint in "
        "CHECKPOINTS, if there is one" + (", else from weights alone." if job.start else "."),
        world_line(job),
    ]
    if mtp := known(job).mtp_layers:
        notes.insert(1, (
            f"The model predicts {mtp} further token (--mtp-num-layers). The forecast is without "
            "that layer; its time is about that of another layer and LM head. Without the flag, "
            "and the m of the pipeline's layout, the model has no such layer."
        ))  # fmt: skip
    if is_moe(job.model) and not known(job).router:
        notes.insert(1, (
            "How tokens find their experts is Megatron's default, a softmax over the chosen ones: "
            "add --moe-router-* if the model does otherwise."
        ))  # fmt: skip
    # Before Blackwell, tensor parallelism overlaps only with one hardware queue.
    environment = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"} if lay.tp > 1 or lay.cp > 1 else {}
    text = words_of.script(
        job.header, FILE, PROGRAM, arguments(job), tool=TOOL, tier="validated",
        notes=notes, environment=environment, blanks=blanks(job, options),
    )  # fmt: skip
    return {FILE: text}


def flags_of(text: str) -> dict[str, str | bool]:
    """The flags of such a file; an unknown flag is an error."""
    words = words_of.program_words(text, FILE)[len(PROGRAM) :]
    found = words_of.flags(words, FILE, several=(MODULES,))
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
    layers = str(found.get("--pipeline-model-parallel-layout", ""))
    stages = layers.count("|") + 1
    if layers and (layers.count("t") != count("--num-layers") or stages % pp):
        raise RecipeError(f"{FILE} divides other layers among its stages than the model has.")
    dp = world["dp"]
    micro, whole = count("--micro-batch-size"), count("--global-batch-size")
    if whole % (micro * dp):
        raise RecipeError(f"A batch of {whole} is no multiple of micro-batch {micro} x dp {dp}.")
    return Recovered(
        world_size=world["world_size"], tp=tp, pp=pp, cp=cp, dp=dp, micro_batch_size=micro,
        num_microbatches=whole // (micro * dp), global_batch_size=whole, more=found,
    )  # fmt: skip


TARGETS = (
    Target(
        name="megatron",
        title="Megatron-LM arguments",
        kind="stack",
        tier="validated",
        tool=TOOL,
        write=write,
        read=careful(read, FILE),
        options=("data_path", "tokenizer", "checkpoint_path", "learning_rate"),
        starts=lambda job, options: f"bash {FILE}",
        begins=True,
        refuses=refuses,
    ),
)
