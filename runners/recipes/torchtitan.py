"""TorchTitan: a module, one of its configurations, and the overrides of the plan.

Names and defaults: torchtitan 0.3.0, config/configs.py, components/checkpointer/base.py,
hf_datasets/text_datasets.py and tools/profiler.py. Its configurations save no checkpoint, read C4
and profile every 100th step unless an override says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    lacks,
    offloads,
    settings,
    shards,
    takes,
)
from runners.recipes.target import Recovered, Target

FILE = "torchtitan_train.sh"
STACK, NAME = "TorchTitan", "torchtitan"
TOOL = "TorchTitan 0.3.0"
# Our models -> its configurations in bf16.
CONFIGS = {
    "llama3.1-8b": ("llama3", "llama3_8b"),
    "llama3.1-70b": ("llama3", "llama3_70b"),
    "qwen3-0.6b": ("qwen3", "qwen3_0_6b"),
    "qwen3-1.7b": ("qwen3", "qwen3_1_7b"),
    "qwen3-14b": ("qwen3", "qwen3_14b"),
    "qwen3-32b": ("qwen3", "qwen3_32b"),
    "qwen3-30b-a3b": ("qwen3", "qwen3_30b_a3b"),
    "deepseek-v2-lite": ("deepseek_v3", "deepseek_v3_16b"),
    "deepseek-v3": ("deepseek_v3", "deepseek_v3_671b"),
    "gpt-oss-20b": ("gpt_oss", "gpt_oss_20b"),
    "gpt-oss-120b": ("gpt_oss", "gpt_oss_120b"),
}
SCHEDULES = {"1f1b": "1F1B", "gpipe": "GPipe", "interleaved": "Interleaved1F1B"}
BEGINS = "--checkpoint.initial_load_path"  # weights alone; absolute, a folder step-N
RECOMPUTE = "activation-checkpoint"  # the last word, which is no flag


def refuses(job: RecipeJob) -> str:
    """Why TorchTitan cannot train this plan; '' if it can."""
    lay = job.layout
    sharding = ("fsdp2", "hsdp", "ddp")
    return first(
        f"TorchTitan 0.3.0 has no configuration of {job.model_label}: it has those of "
        f"{', '.join(CONFIGS)}."
        if job.model_id not in CONFIGS
        else "",
        takes(STACK, "the task", job.task, ("pretrain",)),
        takes(STACK, "the precision", job.precision, ("bf16",)),
        lacks(job, STACK, "etp"),
        shards(job, STACK, sharding),
        "TorchTitan does not combine DDP with another degree."
        if lay.sharding == "ddp" and job.num_gpus != job.dp
        else "",
        cannot(job, NAME, STACK),
        offloads(job, STACK, (("none", "none"), ("cpu", "cpu"))),
        takes(STACK, "the schedule", lay.schedule, tuple(SCHEDULES)) if lay.pp > 1 else "",
        "TorchTitan overlaps tensor parallelism only in a compiled model: plan with compile."
        if job.habits.async_tp and lay.tp > 1 and not job.compiled
        else "",
        "TorchTitan has no CUDA graphs with pipelines, experts over ranks or weights on the host: "
        "plan without cuda_graphs."
        if job.habits.cuda_graphs and (lay.pp > 1 or lay.ep > 1 or lay.offload_params != "none")
        else "",
        takes(STACK, "the context-parallel method", lay.context_parallel, ("ring", "all_gather"))
        if lay.cp > 1
        else "",
        _stages(job)[1],
    )


def _stages(job: RecipeJob) -> tuple[dict[str, int], str]:
    """Flags that divide the layers like the plan, or why that is not possible."""
    lay = job.layout
    if lay.pp == 1:
        return {}, ""
    stages, layers = lay.pp * lay.virtual_stages, int(job.model.num_layers)
    for ends in (0, 1):  # by how many layers the first and the last stage are smaller
        counted = layers + 2 * ends
        most = -(-counted // stages)
        # Its first stages are the larger ones; the forecast has the fullest rank at layers over pp.
        held = [counted // stages + (i < counted % stages) for i in range(stages)]
        held[0] -= ends
        held[-1] -= ends
        of_ranks = [sum(held[rank :: lay.pp]) for rank in range(lay.pp)]
        fits = min(held) >= 0 and max(of_ranks) <= -(-layers // lay.pp)
        if fits and -(-counted // most) == stages:
            flag = "--parallelism.pipeline_parallel_"
            return {
                f"{flag}layers_per_stage": most,
                f"{flag}first_stage_less_layers": ends,
                f"{flag}last_stage_less_layers": ends,
            }, ""
    return {}, f"TorchTitan cannot cut {layers} layers into {stages} stages."


def arguments(job: RecipeJob) -> dict[str, str | int | bool]:
    """The settings of the plan, as overrides of the configuration."""
    lay = job.layout
    module, config = CONFIGS[job.model_id]
    replicates = lay.sharding == "ddp" and job.dp > 1
    pipelined = lay.pp > 1
    found: dict[str, str | int | bool] = {
        "--module": module,
        "--config": config,
        "--training.seq_len": job.seq_len,
        "--training.steps": job.num_steps,
        "--training.local_batch_size": lay.micro_batch_size
        * (lay.num_microbatches if pipelined else 1),
        "--training.global_batch_size": job.global_batch_size,
        "--parallelism.data_parallel_replicate_degree": job.dp if replicates else lay.dp_replicate,
        "--parallelism.data_parallel_shard_degree": 1 if replicates else lay.dp_shard,
        "--parallelism.tensor_parallel_degree": lay.tp,
        "--parallelism.pipeline_parallel_degree": lay.pp,
        "--parallelism.context_parallel_degree": lay.cp,
        "--parallelism.expert_parallel_degree": lay.ep,
        "--parallelism.fsdp_reshard_after_forward": "always"
        if lay.reshard_after_forward
        else "never",
        "--training.enable_cpu_offload": lay.offload_params == "cpu",
        "--profiler.no-enable_profiling": True,
        "--checkpoint.enable": True,
        "--dump_folder": words_of.Filled("CHECKPOINTS"),
        "--hf_assets_path": words_of.Filled("TOKENIZER"),
        "--dataloader.dataset": words_of.Filled("DATASET"),
    }
    if job.start is not None:
        found[BEGINS] = words_of.Filled("BEGINS_WITH")
    made = settings(job, NAME)
    found |= {
        flag: value for flag, value in made.items() if flag != RECOMPUTE and value is not None
    }
    if pipelined:
        kind = lay.schedule
        if kind in ("interleaved", "1f1b"):
            kind = "interleaved" if lay.virtual_stages > 1 else "1f1b"
        found["--parallelism.pipeline_parallel_schedule"] = SCHEDULES[kind]
        found["--parallelism.pipeline_parallel_microbatch_size"] = lay.micro_batch_size
        found |= _stages(job)[0]
    return found


NOTES = (
    "The learning rate stays as the configuration has it: the plan did not decide it. Checkpoints "
    "and TensorBoard's files are in folders of CHECKPOINTS; it goes on from the last checkpoint.",
)


def blanks(job: RecipeJob, options: Mapping[str, str]) -> list[Blank]:
    """What the first block holds."""
    last = f"/checkpoint/step-{job.start.num_steps}" if job.start else ""
    table = "torchtitan/hf_datasets/text_datasets.py"
    return [
        blank(options, "dataset", "DATASET", f"a data set of {table}, which has c4"),
        blank(options, "tokenizer", "TOKENIZER", "folder of the Hugging Face tokenizer"),
        checkpoints(options, "CHECKPOINTS"),
        *begun(job, options, "BEGINS_WITH", last),
    ]


def write(job: RecipeJob, options: Mapping[str, str]) -> dict[str, str]:
    """torchtitan_train.sh. Options: dataset, tokenizer, checkpoint_path."""
    if reason := refuses(job):
        raise RecipeError(f"{reason}.")
    text = words_of.script(
        job.header, FILE, ("-m", "torchtitan.train"), arguments(job), tool=TOOL,
        tier="validated", notes=[*differences(job, NAME), *NOTES],
        last=f"{RECOMPUTE}:{settings(job, NAME)[RECOMPUTE]}",
        blanks=blanks(job, options),
    )  # fmt: skip
    return {FILE: text}


def overrides(text: str) -> list[str]:
    """The words for TorchTitan's own parser."""
    return words_of.program_words(text, FILE)[2:]


def read(files: Mapping[str, str]) -> Recovered:
    """Read the layout of torchtitan_train.sh."""
    *given, last = overrides(files.get(FILE, "")) or [""]
    found = words_of.flags(given, FILE)

    def count(flag: str) -> int:
        return words_of.number(found, flag, FILE)

    part = "--parallelism."
    dp = count(f"{part}data_parallel_replicate_degree") * count(f"{part}data_parallel_shard_degree")
    tp, pp, cp = (count(f"{part}{n}_parallel_degree") for n in ("tensor", "pipeline", "context"))
    local, whole = count("--training.local_batch_size"), count("--training.global_batch_size")
    micro = words_of.number(found, f"{part}pipeline_parallel_microbatch_size", FILE, local)
    if whole % (micro * dp):
        raise RecipeError(f"A batch of {whole} is no multiple of micro-batch {micro} x dp {dp}.")
    return Recovered(
        world_size=dp * tp * pp * cp,
        tp=tp,
        pp=pp,
        cp=cp,
        dp=dp,
        micro_batch_size=micro,
        num_microbatches=whole // (micro * dp),
        global_batch_size=whole,
        more={**found, "recompute": last.partition(":")[2]},
    )


TARGETS = (
    Target(
        name="torchtitan",
        title="TorchTitan command",
        kind="stack",
        tier="validated",
        tool=TOOL,
        write=write,
        read=careful(read, FILE),
        options=("dataset", "tokenizer", "checkpoint_path"),
        starts=lambda job, options: f"bash {FILE}",
        begins=True,
        refuses=refuses,
    ),
)
