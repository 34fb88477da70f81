"""Every habit of every stack, read back by the stack itself: its parser or schema is given the file
of each choice, and says what it makes of it. Single stacks get broken copies, too, to refuse."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from core.model.presets import preset
from hardware.habits.flags import HABITS, choices_of
from runners.recipes import arguments, maxtext, megatron, torchtitan, torchtune
from runners.recipes.job import Habits, Start
from tests.made_up.plans import layout
from tests.made_up.recipes import one_gpu, recipe_job
from tests.runners.recipes.test_recipes_flags import FSDP, job_for, written
from tests.servers.stack_environment import QUIET, asked, interpreter

pytestmark = [pytest.mark.services, pytest.mark.slow, pytest.mark.timeout(900)]
PLACES = {"data_path": "/data/t", "tokenizer": "/tok", "checkpoint_path": "/ck", "dataset": "c4",
          "model_path": "org/model", "learning_rate": "3e-4"}  # fmt: skip

BEGIN = """
import contextlib, io, json, os, sys
from pathlib import Path
given = json.loads(Path(sys.argv[1]).read_text())
told = {}
def tried(name, ask):
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            told[name] = ask()
    except (Exception, SystemExit) as e:
        told[name] = {"error": f"{type(e).__name__}: {e}: {out.getvalue()[-300:]}"}
"""
END = """
print(json.dumps(told, default=str))
"""
# Stand-ins: a Hopper device, and the fused kernels of Transformer Engine, which needs one.
MEGATRON = """
import typing, typing_extensions
typing.override = typing_extensions.override
import torch
class Device:
    major, minor, name, total_memory, multi_processor_count = 9, 0, "H100", 80 << 30, 132
torch.cuda.get_device_properties = lambda *a, **k: Device
torch.cuda.get_device_capability = lambda *a, **k: (9, 0)
torch.cuda.current_device = lambda: 0
torch.cuda.device_count = lambda: 8
import megatron.core.models.common.embeddings.rope_utils as rope
import megatron.core.transformer.moe.moe_utils as moe
rope.fused_apply_rotary_pos_emb = rope.fused_apply_rotary_pos_emb or print
for kernel in ("permute", "permute_with_probs", "sort_chunks_by_index",
               "sort_chunks_by_index_with_probs", "unpermute"):
    setattr(moe, f"fused_{kernel}", getattr(moe, f"fused_{kernel}", None) or print)
from megatron.training.arguments import (
    core_transformer_config_from_args, parse_args, validate_args)
def read(world, words, connections):
    os.environ.update(WORLD_SIZE=str(world), RANK="0", LOCAL_RANK="0")
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    if connections:
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = connections
    sys.argv = ["pretrain_gpt.py", *words]
    args = parse_args()
    validate_args(args)
    config = core_transformer_config_from_args(args)
    return {**vars(args), "layers": config.num_layers, "experts": config.num_moe_experts,
            "backend": args.attention_backend.name}
for name, question in given.items():
    tried(name, lambda: read(*question))
"""
TITAN = """
from torchtitan.config.manager import ConfigManager
from torchtitan.distributed.pipeline_parallel import _generate_llm_fqn_per_model_part
def read(words):
    c = ConfigManager().parse_args(words)
    p = c.parallelism
    ends = (p.pipeline_parallel_first_stage_less_layers, p.pipeline_parallel_last_stage_less_layers)
    layers = len(c.model_spec.model.layers)
    stages = -(-(layers + sum(ends)) // (p.pipeline_parallel_layers_per_stage or layers))
    parts = _generate_llm_fqn_per_model_part(stages, layers, *ends) if stages > 1 else []
    return {"compile": c.compile.enable, "async_tp": c.compile.enable_async_tensor_parallel,
            "no_graphs": c.training.disable_cuda_graphs, "loss": type(c.loss).__qualname__,
            "reduce": c.training.mixed_precision_reduce, "async": c.checkpoint.async_mode,
            "interval": c.checkpoint.interval, "saves": c.checkpoint.enable,
            "recompute": type(c.activation_checkpoint).__qualname__,
            "begins": c.checkpoint.initial_load_path,
            "optimizer": [g.optimizer_name for g in c.optimizer.param_groups],
            "stages": [sum(n.startswith("layers.") for n in part) for part in parts]}
for name, words in given.items():
    tried(name, lambda: read(words))
"""
AXOLOTL = """
from axolotl.utils.schemas.config import AxolotlConfigWCapabilities, AxolotlInputConfig
device = {"bf16": True, "fp8": True, "n_gpu": 16, "n_node": 2, "compute_capability": "sm_90",
          "tf32": True}
def read(values):
    if unknown := values.keys() - AxolotlInputConfig.model_fields.keys():
        raise ValueError(f"{unknown} would be ignored")
    c = AxolotlConfigWCapabilities(**values, capabilities=device,
                                   env_capabilities={"torch_version": "2.13.0"})
    return {name: getattr(c, name) for name in values}
for name, values in given.items():
    tried(name, lambda: read(values))
"""
MAXTEXT = """
os.environ.update(JAX_PLATFORMS="cpu", XLA_FLAGS="--xla_force_host_platform_device_count=16")
import yaml
from maxtext.configs import pyconfig
def read(values, slices):
    more = {"skip_jax_distributed_system": True, "num_slices": slices}
    Path("file.yml").write_text(yaml.safe_dump({**values, **more}))
    c = pyconfig.initialize(["train", "file.yml"])
    names = ("attention", "packing", "remat_policy", "checkpoint_period", "async_checkpointing",
             "enable_checkpointing", "opt_type", "mu_dtype", "grad_dtype", "num_vocab_tiling",
             "base_emb_dim", "load_parameters_path", "global_batch_size_to_train_on")
    return {name: getattr(c, name) for name in names}
for name, question in given.items():
    tried(name, lambda: read(*question))
"""
LLAMA_FACTORY = """
from llamafactory.hparams import get_train_args
def read(values):
    model, data, training, tuning, _ = get_train_args({**values, "use_cpu": True})
    return {"attention": model.flash_attn, "packs": [data.packing, data.neat_packing],
            "compile": training.torch_compile, "optim": training.optim,
            "saves": [training.save_strategy, training.save_steps],
            "recomputes": not model.disable_gradient_checkpointing,
            "liger": model.enable_liger_kernel}
for name, values in given.items():
    tried(name, lambda: read(values))
"""
DEEPSPEED = """
from unittest import mock
import deepspeed.comm as dist
from deepspeed.runtime.config import DeepSpeedConfig
def read(config):
    with mock.patch.object(dist, "get_world_size", return_value=16), \\
         mock.patch.object(dist, "get_rank", return_value=0), \\
         mock.patch.object(dist, "is_initialized", return_value=True):
        c = DeepSpeedConfig(config)
    return {"overlaps": c.zero_config.overlap_comm, "gradients": c.grad_accum_dtype}
for name, config in given.items():
    tried(name, lambda: read(config))
"""
TRAINER = """
from transformers import TrainingArguments
def read(values):
    a = TrainingArguments(use_cpu=True, **values)
    return {"compile": a.torch_compile, "liger": a.use_liger_kernel, "optim": a.optim,
            "recomputes": a.gradient_checkpointing, "saves": [a.save_strategy, a.save_steps]}
for name, values in given.items():
    tried(name, lambda: read(values))
"""
PROGRAMS = {  # stack -> environment, program
    "megatron-lm": ("torchtitan", MEGATRON),
    "torchtitan": ("torchtitan", TITAN),
    "axolotl": ("axolotl", AXOLOTL),
    "maxtext": ("maxtext", MAXTEXT),
    "llama-factory": ("llama_factory", LLAMA_FACTORY),
    "deepspeed": ("light", DEEPSPEED),
    "accelerate": ("llama_factory", TRAINER),
}
ON_OFF = {"on": True, "off": False}
OPTIM = {"adamw": "adamw_torch_fused", "adamw_8bit": "adamw_torch_8bit", "adafactor": "adafactor",
         "sgd": "sgd"}  # fmt: skip


def both(name, yes=True, no=False):
    """What a stack says of a habit that is on or off."""
    return {"on": {name: yes}, "off": {name: no}}


# What each stack must say of each choice, in its own names.
MEANS = {
    "megatron-lm": {
        "gradient_overlap": both("overlap_grad_reduce"),
        "param_overlap": both("overlap_param_gather"),
        "async_tp": both("tp_comm_overlap"),
        "attention": {"flash2": {"backend": "auto"}, "flash3": {"backend": "auto"},
                      "newest": {"backend": "auto"}, "unfused": {"backend": "unfused"}},
        "cuda_graphs": both("cuda_graph_impl", "transformer_engine", "none"),
        "gradients": {"fp32": {"accumulate_allreduce_grads_in_fp32": True},
                      "bf16": {"accumulate_allreduce_grads_in_fp32": False},
                      "fp16": {"accumulate_allreduce_grads_in_fp32": False}},
        "optimizer_states": {"adamw": {"optimizer": "adam"}, "sgd": {"optimizer": "sgd"}},
        "recompute": {"none": {"recompute_granularity": None},
                      "selective": {"recompute_granularity": "selective"},
                      "full": {"recompute_granularity": "full", "recompute_num_layers": 1}},
        "checkpoint_interval": {"steps": {"save_interval": 250, "save": "/ck"}},
        "async_checkpoint": both("async_save"),
        "dispatcher": {"per_expert": {"moe_token_dispatcher_type": "alltoall"},
                       "per_node": {"moe_token_dispatcher_type": "flex",
                                    "moe_flex_dispatcher_backend": "deepep"}},
    },
    "torchtitan": {
        "async_tp": both("async_tp"),
        "compile": both("compile"),
        "cuda_graphs": both("no_graphs", False, True),
        "loss": {c: {"loss": "ChunkedLossWrapper.Config"} for c in ("whole", "chunked")},
        "gradients": {"fp32": {"reduce": "float32"}},
        "optimizer_states": {"adamw": {"optimizer": ["AdamW"]}},
        "recompute": {"none": {"recompute": "NoneType"},
                      "selective": {"recompute": "SelectiveAC.Config"},
                      "full": {"recompute": "FullAC.Config"}},
        "checkpoint_interval": {"steps": {"interval": 250, "saves": True}},
        "async_checkpoint": both("async", "async", "disabled"),
    },
    "axolotl": {
        "attention": {c: {"attn_implementation": v} for c, v in (
            ("flash2", "flash_attention_2"), ("flash3", "flash_attention_3"),
            ("newest", "flash_attention_4"), ("unfused", "eager"))},
        "compile": both("torch_compile"),
        "loss": {"whole": {"chunked_cross_entropy": False},
                 "chunked": {"chunked_cross_entropy": True}},
        "packing": both("sample_packing"),
        "optimizer_states": {c: {"optimizer": v} for c, v in OPTIM.items()},
        "recompute": {"none": {"gradient_checkpointing": False},
                      "full": {"gradient_checkpointing": True, "activation_offloading": False},
                      "offload": {"gradient_checkpointing": True, "activation_offloading": True}},
        "checkpoint_interval": {"steps": {"save_steps": 250}},
    },
    "maxtext": {
        "attention": {c: {"attention": "dot_product" if c == "unfused" else "autoselected"}
                      for c in ("flash2", "flash3", "newest", "unfused")},
        "loss": {"whole": {"num_vocab_tiling": 1}, "chunked": {"num_vocab_tiling": 8}},
        "packing": both("packing"),
        "gradients": {"fp32": {"grad_dtype": "float32"}},
        "optimizer_states": {"adamw": {"opt_type": "adamw", "mu_dtype": "float32"},
                             "sgd": {"opt_type": "sgd"}},
        "recompute": {"selective": {"remat_policy": "minimal_with_context"},
                      "full": {"remat_policy": "full"}},
        "checkpoint_interval": {"steps": {"checkpoint_period": 250, "enable_checkpointing": True}},
        "async_checkpoint": both("async_checkpointing"),
    },
    "llama-factory": {
        "attention": {"unfused": {"attention": "disabled"},
                      **{c: {"attention": "fa2"} for c in ("flash2", "flash3", "newest")}},
        "compile": both("compile"),
        "packing": both("packs", [True, True], [False, False]),
        "optimizer_states": {c: {"optim": v} for c, v in OPTIM.items()},
        "recompute": {"none": {"recomputes": False}, "full": {"recomputes": True}},
        "checkpoint_interval": {"steps": {"saves": ["steps", 250]}},
    },
    "deepspeed": {
        "gradient_overlap": both("overlaps"),
        "param_overlap": both("overlaps"),
        "gradients": {"fp32": {"gradients": "fp32"}, "bf16": {"gradients": "bf16"},
                      "fp16": {"gradients": None}},
    },
    "accelerate": {
        "compile": both("compile"),
        "loss": {"whole": {"liger": False}},
        "optimizer_states": {c: {"optim": v} for c, v in OPTIM.items()},
        "recompute": {"none": {"recomputes": False}, "full": {"recomputes": True},
                      "offload": {"recomputes": True}},
        "checkpoint_interval": {"steps": {"saves": ["steps", 250]}},
    },
}  # fmt: skip
NEEDS_MORE = {  # Liger's kernels; DeepSpeed, whose own file is read above
    ("llama-factory", "loss", "chunked"), ("accelerate", "loss", "chunked"),
    ("llama-factory", "param_overlap", "on"), ("llama-factory", "param_overlap", "off"),
}  # fmt: skip


# Of a later stage: what each stack must say that it begins with.
START = Start(folder="01-main", name="main", num_steps=500, is_same_stack=True, is_whole=True)
BEGUN = {
    "megatron-lm": {"pretrained_checkpoint": "/01-main"},
    "torchtitan": {"begins": "/01-main/checkpoint/step-500"},
    "maxtext": {"load_parameters_path": "/01-main/main/checkpoints/499/items"},
    "axolotl": {"base_model": "/01-main"},
}


def question(stack, job):
    """The file of a job, as the stack's program takes it, every value filled in."""
    files = written(stack, job, PLACES)
    first = next(iter(files.values()))
    if stack == "megatron-lm":
        connections = "1" if "export CUDA_DEVICE_MAX_CONNECTIONS=1\n" in first else ""
        words = arguments.program_words(first, megatron.FILE)[1:]
        return [job.num_gpus, [w.replace("ROTARY", "10000") for w in words], connections]
    if stack == "torchtitan":
        return torchtitan.overrides(first)
    if stack == "deepspeed":
        return json.loads(first)
    if stack == "accelerate":
        return yaml.safe_load(files["training_arguments.yaml"])
    values = yaml.safe_load(first.replace("REPLACE_ME", "alpaca"))
    return [values, job.num_nodes] if stack == "maxtext" else values


def told_by(stack, questions, folder):
    """What a stack makes of files, by name."""
    name, program = PROGRAMS[stack]
    return asked(name, BEGIN + program + END, questions, folder)


@pytest.mark.parametrize("stack", PROGRAMS)
def test_a_stack_does_every_habit_that_its_file_was_written_for_and_begins_with_weights(
    stack, tmp_path
):
    cases = [
        (h, c) for h in HABITS for c in choices_of(stack, h) if (stack, h, c) not in NEEDS_MORE
    ]
    questions = {f"{h}={c}": question(stack, job_for(stack, h, c)) for h, c in cases}
    later = replace(job_for(stack, *cases[0]), start=START)
    told = told_by(stack, {**questions, "later": question(stack, later)}, tmp_path)
    assert not {name: found for name, found in told.items() if "error" in found}
    wanted = BEGUN.get(stack, {})
    assert {name: told["later"][name] for name in wanted} == wanted
    for habit, choices in MEANS[stack].items():
        for choice, wanted in choices.items():
            found = told[f"{habit}={choice}"]
            assert {name: found[name] for name in wanted} == wanted, (habit, choice)


# --- the models and layouts of single stacks -----------------------------------------------------

MIXTRAL = {"model_id": "mixtral-8x7b", "model": preset("mixtral-8x7b").transformer}
DEEPSEEK = {"model_id": "deepseek-v3", "model": preset("deepseek-v3").transformer}
MEGATRON_JOBS = {
    "llama": {"layout": layout(tp=2, pp=2, virtual_stages=2, dp_shard=4, num_microbatches=16,
                               sharding="zero1", recompute="full")},
    "mixtral": {**MIXTRAL, "layout": layout(tp=1, ep=8, dp_shard=16, num_microbatches=4,
                                            sharding="zero1")},
    "deepseek uneven": {
        **DEEPSEEK, "num_gpus": 128, "num_nodes": 16,
        "layout": layout(tp=2, pp=16, ep=4, dp_shard=4, sharding="zero1", num_microbatches=16)},
    "fp8": {"precision": "fp8_blockwise",
            "layout": layout(tp=2, dp_shard=8, num_microbatches=8, sharding="zero1")},
    "optimizer on the host": {"layout": layout(tp=2, dp_shard=8, num_microbatches=8,
                                               sharding="zero1", offload_optimizer="cpu")},
    "context": {"layout": layout(tp=1, cp=2, dp_shard=8, num_microbatches=8, sharding="zero1",
                                 recompute="full")},
}  # fmt: skip


def test_megatrons_own_parser_takes_the_plans_and_refuses_broken_copies(tmp_path):
    jobs = {name: recipe_job(**given) for name, given in MEGATRON_JOBS.items()}
    good = {name: question("megatron-lm", job) for name, job in jobs.items()}
    world, words, connections = good["llama"]

    def changed(flag, value):
        at = words.index(flag)
        return [world, [*words[: at + 1], value, *words[at + 2 :]], connections]

    broken = {
        "degree": changed("--tensor-model-parallel-size", "3"),
        "batch": changed("--global-batch-size", "65"),
        "recompute": changed("--recompute-granularity", "everything"),
        "typo": [world, [*words, "--overlap-grad-reduse"], connections],
    }
    told = told_by("megatron-lm", {**good, **broken}, tmp_path)
    assert {name for name, found in told.items() if "error" in found} == set(broken)
    for name, job in jobs.items():
        found, lay = told[name], job.layout
        assert found["data_parallel_size"] == job.dp
        assert found["context_parallel_size"] == lay.cp
        assert (found["layers"], found["experts"] or 0) == (
            job.model.num_layers, job.model.num_experts
        )  # fmt: skip
    assert told["deepseek uneven"]["mtp_num_layers"] == 1


def test_torchtitan_cuts_uneven_layers_into_no_fuller_ranks_than_forecast(tmp_path):
    model = {"model_id": "gpt-oss-120b", "model": preset("gpt-oss-120b").transformer}
    jobs = {
        "36 over 8": recipe_job(**model, layout=layout(
            tp=1, pp=8, dp_shard=2, num_microbatches=32, recompute="full")),
        "61 over 32": recipe_job(**DEEPSEEK, num_gpus=128, num_nodes=16, layout=layout(
            tp=2, pp=16, virtual_stages=2, dp_shard=4, num_microbatches=16, recompute="full")),
    }  # fmt: skip
    told = told_by("torchtitan", {n: question("torchtitan", j) for n, j in jobs.items()}, tmp_path)
    for name, job in jobs.items():
        pp, layers = job.layout.pp, int(job.model.num_layers)
        stages = told[name]["stages"]
        assert (len(stages), sum(stages)) == (pp * job.layout.virtual_stages, layers)
        assert max(sum(stages[rank::pp]) for rank in range(pp)) <= -(-layers // pp)


def test_maxtext_reads_every_model_as_ours_and_refuses_broken_copies(tmp_path):
    lay = layout(tp=1, dp_shard=16, num_microbatches=4, recompute="full")
    asked_of = {}
    for name in maxtext.MODELS:
        job = recipe_job(model_id=name, model=preset(name).transformer, layout=lay)
        asked_of[name] = question("maxtext", job)
    cut = layout(tp=1, cp=2, dp_shard=8, num_microbatches=8, recompute="full")
    asked_of["cut in a ring"] = question("maxtext", recipe_job(layout=cut))
    good = asked_of["llama3.1-8b"][0]
    broken = {
        "typo": [{**good, "remat_polici": "full"}, 2],
        "slices": [good, 1],
        "model": [{**good, "model_name": "llama3.1-9b"}, 2],
    }
    told = told_by("maxtext", {**asked_of, **broken}, tmp_path)
    assert {name for name, found in told.items() if "error" in found} == set(broken)
    for name in maxtext.MODELS:
        m = preset(name).transformer
        found = told[name]
        assert found["base_emb_dim"] == m.hidden_size, name
        assert found["global_batch_size_to_train_on"] == 64, name


def test_axolotl_takes_pretraining_adapters_and_context_and_refuses_broken_copies(tmp_path):
    ddp = layout(tp=1, dp_shard=16, micro_batch_size=2, num_microbatches=2, sharding="ddp",
                 recompute="full")  # fmt: skip
    jobs = {
        "pretrain": recipe_job(layout=FSDP),
        "lora": recipe_job(layout=FSDP, task="lora"),
        "qlora": recipe_job(layout=ddp, task="qlora"),
    }
    good = {name: question("axolotl", job) for name, job in jobs.items()}
    for values in good.values():
        values.update({"lora_alpha": 16} if "adapter" in values else {})
    broken = {
        "typo": {**good["lora"], "sample_pakcing": True},
        "adapter": {**good["lora"], "adapter": "lorra"},
        "optimizer": {**good["lora"], "optimizer": "adamw_bnb_8bit"},  # not under FSDP2
    }
    told = told_by("axolotl", {**good, **broken}, tmp_path)
    assert {name for name, found in told.items() if "error" in found} == set(broken), told


# --- torchtune: two steps of a tiny model --------------------------------------------------------

TINY = {"vocab_size": 128256, "num_layers": 2, "num_heads": 4, "num_kv_heads": 4, "embed_dim": 128,
        "intermediate_dim": 256, "max_seq_len": 64}  # fmt: skip
WEIGHTS = """
import json, sys
from pathlib import Path
import torch
from safetensors.torch import save_file
from torchtune.models.convert_weights import tune_to_hf
from torchtune.models.llama3_1 import llama3_1
size = json.loads(Path(sys.argv[1]).read_text())
heads, dim = size["num_heads"], size["embed_dim"]
state = tune_to_hf(llama3_1(**size).state_dict(), num_heads=heads, num_kv_heads=heads, dim=dim)
Path("weights").mkdir()
save_file({k: v.to(torch.bfloat16).contiguous() for k, v in state.items()},
          "weights/model.safetensors")
Path("weights/config.json").write_text(json.dumps(
    {"num_attention_heads": heads, "num_key_value_heads": heads, "hidden_size": dim,
     "vocab_size": size["vocab_size"]}))
print("{}")
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A folder with weights, a tokenizer of bytes and a data set."""
    folder = tmp_path_factory.mktemp("torchtune")
    asked("torchtune", WEIGHTS, TINY, folder)
    words = (f"{base64.b64encode(bytes([i])).decode()} {i}\n" for i in range(256))
    (folder / "tokenizer").write_text("".join(words))
    rows = [{"input": "hello there " * 3, "output": "general " * 4}] * 200
    (folder / "data.json").write_text(json.dumps(rows))
    return folder


@pytest.mark.parametrize(("task", "chunked"), [("sft", True), ("lora", False), ("qlora", True)])
def test_torchtune_trains_two_steps_with_the_file(tiny, task, chunked):
    """On a CPU, with a tiny model and a data set in the places that the file leaves open."""
    one = layout(tp=1, dp_shard=1, sharding="fsdp2", micro_batch_size=2, num_microbatches=2,
                 recompute="full")  # fmt: skip
    job = one_gpu(task=task, seq_len=64, num_steps=2, global_batch_size=4, layout=one,
                  habits=Habits(chunked_loss=chunked))  # fmt: skip
    given = {"model_path": "weights", "tokenizer": "tokenizer", "checkpoint_path": f"out-{task}",
             "learning_rate": "1e-3"}  # fmt: skip
    (text,) = torchtune.write(job, given).values()
    recipe = text.partition("Start with: tune run ... ")[2].split()[0]
    values = yaml.safe_load(text)
    builder = values["model"].pop("_component_")
    assert builder.rpartition(".")[2] == {"sft": "", "lora": "lora_", "qlora": "qlora_"}[
        task
    ] + "llama3_1_8b"  # fmt: skip
    kind = "llama3_1" if task == "sft" else "lora_llama3_1"
    quantised = {"quantize_base": True} if task == "qlora" else {}
    values["model"] |= {"_component_": f"torchtune.models.llama3_1.{kind}", **TINY, **quantised}
    values["dataset"] |= {"_component_": "torchtune.datasets.instruct_dataset", "source": "json",
                          "data_files": "data.json", "split": "train"}  # fmt: skip
    values |= {"checkpoint_files": ["model.safetensors"], "device": "cpu"}
    values |= {"lora_alpha": 16} if task != "sft" else {}
    (tiny / f"{task}.yaml").write_text(yaml.safe_dump(values))
    done = subprocess.run(
        [interpreter("torchtune"), "-m", "torchtune._cli.tune", "run", recipe, "--config",
         f"{task}.yaml"],
        cwd=tiny, env={**os.environ, **QUIET, "PYTHONPATH": ""}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    (log,) = Path(tiny, f"out-{task}/logs").glob("log_*.txt")
    steps = [line for line in log.read_text().splitlines() if line.startswith("Step ")]
    assert [line.split(" |")[0] for line in steps] == ["Step 1", "Step 2"]
    assert list(Path(tiny, f"out-{task}").glob("epoch_0/*.safetensors"))
