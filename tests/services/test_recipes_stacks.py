"""Files for training stacks, given to the stacks themselves: a real run where a CPU can do it,
their own parsers elsewhere. Each is also given a broken copy, which it must refuse."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from core.model.presets import preset
from runners.imports import training_log
from runners.recipes import (
    accelerate_config,
    deepspeed,
    fsdp2,
    llama_factory,
    torchtitan,
    torchtune,
)
from tests.made_up.plans import layout
from tests.made_up.recipes import recipe_job
from tests.servers.stack_environment import asked

pytestmark = [pytest.mark.services, pytest.mark.slow, pytest.mark.timeout(600)]
STEP = re.compile(
    r"step: (\d+)  loss: ([\d.]+)  memory: [\d.]+GiB\([\d.]+%\)  tps: [\d,]+  "
    r"tokens_per_s: ([\d.]+)  step_s: ([\d.]+)"
)


# --- FSDP2: a real run ---------------------------------------------------------------------------


def small(**changes):
    """A plan of two GPUs whose model trains on a CPU."""
    model = replace(
        preset("llama3.1-8b").transformer, num_layers=2, hidden_size=64, ffn_hidden_size=128,
        num_attention_heads=4, num_kv_heads=2, head_dim=16, vocab_size=256,
    )  # fmt: skip
    given = {
        "model": model, "seq_len": 64, "global_batch_size": 4, "num_gpus": 2, "num_nodes": 1,
        "gpus_per_node": 2, "num_steps": 3,
        "layout": layout(tp=1, dp_shard=2, num_microbatches=2), **changes,
    }  # fmt: skip
    return recipe_job(**given)


def trained(folder: Path, job, processes: int, *more: str) -> tuple[list[tuple[int, float]], str]:
    """Run the script of a job under torchrun: (step, loss) of each step, and all it printed."""
    (script,) = fsdp2.write(job, {}).values()
    (folder / "fsdp2_train.py").write_text(script)
    words = [
        sys.executable, "-m", "torch.distributed.run", "--standalone",
        f"--nproc-per-node={processes}", "fsdp2_train.py", "--device", "cpu", *more,
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    steps = [(int(m[1]), float(m[2])) for m in STEP.finditer(done.stdout)]
    return steps, done.stdout


def test_the_fsdp2_script_trains_saves_and_goes_on_with_another_world_size(tmp_path):
    first, out = trained(tmp_path, small(), 2, "--checkpoint-dir", "kept")
    assert [step for step, _ in first] == [1, 2, 3]
    assert first[-1][1] < first[0][1] - 0.05
    assert "parallelism: dp_replicate=1, dp_shard=2, tp=1" in out
    assert list((tmp_path / "kept/step-3").glob("*.distcp"))
    log = next(training_log.logs_of(out.splitlines()))  # what `runcast compare` reads
    assert [step.number for step in log.steps] == [1, 2, 3]
    assert (log.facts["global_batch_size"], log.facts["seq_len"]) == (4, 64)
    for processes in (1, 3):
        more = ("--any-world-size", "--resume", "--steps", "1", "--checkpoint-dir", "kept")
        again, out = trained(tmp_path, small(), processes, *more)
        assert f"dp_shard={processes}, tp=1" in out
        assert again[0][1] < first[-1][1]
    assert again[0][0] == 5  # the second one resumed what the first one saved


def test_tensor_parallel_fsdp2_continues_the_same_losses_as_one_process(tmp_path):
    """Two halves of a model compute what the whole does, from the same checkpoint."""
    one = layout(tp=1, dp_shard=1, num_microbatches=2, recompute="none")
    alone = small(num_gpus=1, gpus_per_node=1, global_batch_size=2, layout=one)
    pair = small(global_batch_size=2, layout=replace(one, tp=2, recompute="full"))
    trained(tmp_path, alone, 1, "--steps", "1", "--checkpoint-dir", "begun")
    # Steps are not saved again: both go on from the same one.
    whole, _ = trained(tmp_path, alone, 1, "--steps", "2", "--resume", "--checkpoint-dir", "begun")
    for later in (tmp_path / "begun").glob("step-3"):
        later.rename(tmp_path / "whole")
    halves, out = trained(
        tmp_path, pair, 2, "--steps", "2", "--resume", "--checkpoint-dir", "begun"
    )
    assert "dp_shard=1, tp=2" in out
    assert [s for s, _ in whole] == [s for s, _ in halves] == [2, 3]
    assert [loss for _, loss in halves] == pytest.approx([loss for _, loss in whole], abs=0.02)


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("hsdp", {"sharding": "hsdp", "dp_replicate": 2, "dp_shard": 2, "recompute": "selective"}),
        ("ddp", {"sharding": "ddp", "dp_shard": 4, "recompute": "full"}),
    ],
)
def test_other_shardings_of_the_fsdp2_script_train_too(tmp_path, what, changes):
    job = small(num_gpus=4, gpus_per_node=4, global_batch_size=8,
                layout=layout(tp=1, num_microbatches=2, **changes))  # fmt: skip
    steps, out = trained(tmp_path, job, 4)
    assert steps[-1][1] < steps[0][1]
    assert "global batch size 8" in out


def test_the_fsdp2_script_refuses_another_world_size(tmp_path):
    with pytest.raises(AssertionError, match=r"The plan is for 2 processes, not 1"):
        trained(tmp_path, small(), 1)


# --- DeepSpeed and Accelerate --------------------------------------------------------------------

DEEPSPEED = """
import json, sys
from pathlib import Path
from unittest import mock
import deepspeed.comm as dist
from deepspeed.runtime.config import DeepSpeedConfig
def read(config):
    with mock.patch.object(dist, "get_world_size", return_value=16), \\
         mock.patch.object(dist, "get_rank", return_value=0), \\
         mock.patch.object(dist, "is_initialized", return_value=True):
        c = DeepSpeedConfig(config)
    z = c.zero_config
    return {"overlaps": bool(z.overlap_comm), "dp": int(c.world_size),
            "stage": int(c.zero_optimization_stage),
            "batch": c.train_batch_size, "micro": c.train_micro_batch_size_per_gpu,
            "steps": c.gradient_accumulation_steps,
            "optimizer": z.offload_optimizer and getattr(
                z.offload_optimizer.device, "value", z.offload_optimizer.device),
            "param": z.offload_param and getattr(
                z.offload_param.device, "value", z.offload_param.device)}
told = []
for config in json.loads(Path(sys.argv[1]).read_text()):
    try:
        told.append(read(config))
    except Exception as e:
        told.append({"error": f"{type(e).__name__}: {e}"})
print(json.dumps(told))
"""
ZERO = [
    ("zero2", {"offload_optimizer": "cpu"}, 2), ("zero3", {}, 3),
    ("zero3", {"offload_optimizer": "nvme", "offload_params": "cpu"}, 3), ("zeropp", {}, 3),
]  # fmt: skip
NOT_DEEPSPEED = (
    {"train_batch_size": 65},
    {"zero_optimization": {"stage": 5}},
    {"zero_optimization": {"stage": 3, "offload_optimiser": {"device": "cpu"}}},
)


def zero_job(sharding, **changes):
    return recipe_job(layout=layout(tp=1, dp_shard=16, micro_batch_size=2, num_microbatches=2,
                                    sharding=sharding, recompute="full", **changes))  # fmt: skip


def zero_config(sharding, **changes):
    files = deepspeed.write(zero_job(sharding, **changes), {"nvme_path": "/nvme/swap"})
    return json.loads(files[deepspeed.FILE])


@pytest.fixture(scope="module")
def told_by_deepspeed(tmp_path_factory):
    """What DeepSpeed makes of the file of each plan, and of broken copies; in one process."""
    plans = [zero_config(sharding, **changes) for sharding, changes, _ in ZERO]
    broken = [{**zero_config("zero3"), **change} for change in NOT_DEEPSPEED]
    told = asked("light", DEEPSPEED, plans + broken, tmp_path_factory.mktemp("deepspeed"))
    return told[: len(plans)], told[len(plans) :]


@pytest.mark.parametrize("which", range(len(ZERO)), ids=[sharding for sharding, _, _ in ZERO])
def test_deepspeed_reads_the_plan(told_by_deepspeed, which):
    _, changes, stage = ZERO[which]
    assert told_by_deepspeed[0][which] == {
        "overlaps": True, "dp": 16, "stage": stage, "batch": 64, "micro": 2, "steps": 2,
        "optimizer": changes.get("offload_optimizer"), "param": changes.get("offload_params"),
    }  # fmt: skip


@pytest.mark.parametrize("which", range(len(NOT_DEEPSPEED)))
def test_deepspeed_refuses_a_broken_copy(told_by_deepspeed, which):
    told = told_by_deepspeed[1][which]
    assert "error" in told, told


ACCELERATE = """
import json, sys
from pathlib import Path
import yaml
from accelerate.commands.launch import launch_command_parser, _validate_launch_command
from accelerate.utils.launch import prepare_multi_gpu_env, prepare_deepspeed_cmd_env
def read(files, config):
    for name, text in files.items():
        Path(name).write_text(text)
    args = launch_command_parser().parse_args(["--config_file", config, "train.py"])
    known = set(vars(args))
    args, defaults, _ = _validate_launch_command(args)
    args.deepspeed_fields_from_accelerate_config = ",".join(defaults.deepspeed_config or ())
    args.num_processes = int(args.num_processes)
    env = prepare_multi_gpu_env(args) if args.use_fsdp else prepare_deepspeed_cmd_env(args)[1]
    sections = [v for v in yaml.safe_load(files[config]).values() if isinstance(v, dict)]
    return {"processes": args.num_processes, "machines": args.num_machines,
            "ignored": sorted({k for s in sections for k in s} - known),
            "env": {k: v for k, v in env.items()
                    if k.startswith(("FSDP_", "ACCELERATE_", "PARALLELISM_"))}}
told = {}
for name, question in json.loads(Path(sys.argv[1]).read_text()).items():
    try:
        told[name] = read(*question)
    except (Exception, SystemExit) as e:
        told[name] = {"error": f"{type(e).__name__}: {e}"}
print(json.dumps(told))
"""
NOT_ACCELERATE = {
    "key": ("num_processes:", "num_proceses:"),
    "kind": ("distributed_type: FSDP", "distributed_type: FSPD"),
}
IGNORED = ("fsdp_offload_params", "fsdp_ofload_params")


def fsdp_job(**changes):
    given = {"tp": 1, "dp_replicate": 2, "dp_shard": 8, "num_microbatches": 4, "sharding": "hsdp",
             "recompute": "full", **changes}  # fmt: skip
    return recipe_job(layout=layout(**given))


def fsdp_files(old="", new=""):
    """The files of a plan, with another text in place of a part of the configuration."""
    files, name = accelerate_config.write_fsdp(fsdp_job(), {}), accelerate_config.FSDP_FILE
    assert old in files[name]
    return {**files, name: files[name].replace(old, new)} if old else files


@pytest.fixture(scope="module")
def told_by_accelerate(tmp_path_factory):
    """What Accelerate makes of each plan's files, and of broken copies; in one process."""
    fsdp, zero = accelerate_config.FSDP_FILE, accelerate_config.DEEPSPEED_FILE
    questions = {
        "fsdp": (fsdp_files(), fsdp),
        "deepspeed": (accelerate_config.write_deepspeed(zero_job("zero3"), {}), zero),
        "ignored": (fsdp_files(*IGNORED), fsdp),
        **{name: (fsdp_files(*change), fsdp) for name, change in NOT_ACCELERATE.items()},
    }
    return asked("light", ACCELERATE, questions, tmp_path_factory.mktemp("accelerate"))


def test_accelerate_reads_the_fsdp2_plan(told_by_accelerate):
    told = told_by_accelerate["fsdp"]
    assert (told["processes"], told["machines"], told["ignored"]) == (16, 2, [])
    wanted = {
        "FSDP_VERSION": "2", "FSDP_RESHARD_AFTER_FORWARD": "true", "FSDP_OFFLOAD_PARAMS": "false",
        "FSDP_ACTIVATION_CHECKPOINTING": "true", "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT",
        "ACCELERATE_USE_FSDP": "true", "ACCELERATE_MIXED_PRECISION": "bf16",
        "PARALLELISM_CONFIG_DP_REPLICATE_SIZE": "2", "PARALLELISM_CONFIG_DP_SHARD_SIZE": "8",
    }  # fmt: skip
    assert {name: told["env"].get(name) for name in wanted} == wanted


def test_accelerate_reads_the_deepspeed_plan(told_by_accelerate):
    told = told_by_accelerate["deepspeed"]
    assert "error" not in told, told
    assert (told["processes"], told["machines"], told["ignored"]) == (16, 2, [])
    assert told["env"]["ACCELERATE_USE_DEEPSPEED"] == "true"
    assert told["env"]["ACCELERATE_DEEPSPEED_CONFIG_FILE"] == deepspeed.FILE


@pytest.mark.parametrize("name", NOT_ACCELERATE)
def test_accelerate_refuses_a_broken_copy(told_by_accelerate, name):
    assert "error" in told_by_accelerate[name], told_by_accelerate[name]


def test_a_key_that_accelerate_only_ignores_is_noticed(told_by_accelerate):
    """Its loader takes a misspelt key inside fsdp_config; the comparison and our reader do not."""
    assert told_by_accelerate["ignored"]["ignored"] == ["fsdp_ofload_params"]
    with pytest.raises(ValueError, match="fsdp_ofload_params"):
        accelerate_config.read_fsdp(fsdp_files(*IGNORED))


# --- TorchTitan's own parser ---------------------------------------------------------------------

TITAN = """
import contextlib, io, json, sys
from pathlib import Path
given = json.loads(Path(sys.argv[1]).read_text())
told = {}
from torchtitan.config.manager import ConfigManager
for name, words in given.items():
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            c = ConfigManager().parse_args(words)
        p, t, m = c.parallelism, c.training, c.model_spec.model
        told[name] = {
            "dp": p.data_parallel_replicate_degree * p.data_parallel_shard_degree,
            "tp": p.tensor_parallel_degree, "pp": p.pipeline_parallel_degree,
            "cp": p.context_parallel_degree, "ep": p.expert_parallel_degree,
            "batch": t.global_batch_size, "local": t.local_batch_size, "seq": t.seq_len,
            "recompute": type(c.activation_checkpoint).__qualname__,
            "layers": len(m.layers), "hidden": m.dim, "vocabulary": m.vocab_size,
            "saves": [c.checkpoint.enable, c.checkpoint.interval, c.dump_folder],
            "data": c.dataloader.dataset, "profiles": c.profiler.enable_profiling}
    except (Exception, SystemExit) as e:
        told[name] = {"error": f"{type(e).__name__}: {e}: {out.getvalue()[-500:]}"}
print(json.dumps(told))
"""


def titan_job(model_id):
    return recipe_job(model_id=model_id, model=preset(model_id).transformer, model_label=model_id)


def titan_words(job):
    given = {"dataset": "c4", "tokenizer": "tokenizer", "checkpoint_path": "kept"}
    return torchtitan.overrides(torchtitan.write(job, given)[torchtitan.FILE])


def test_torchtitan_reads_every_model_as_ours(tmp_path):
    told = asked("torchtitan", TITAN,
                 {n: titan_words(titan_job(n)) for n in torchtitan.CONFIGS}, tmp_path)  # fmt: skip
    for name in torchtitan.CONFIGS:
        m = preset(name).transformer
        assert "error" not in told[name], told[name]
        assert (told[name]["layers"], told[name]["hidden"], told[name]["vocabulary"]) == (
            m.num_layers, m.hidden_size, m.vocab_size
        ), name  # fmt: skip
        assert (told[name]["dp"], told[name]["tp"], told[name]["batch"]) == (8, 2, 64)
        assert told[name]["saves"] == [True, 1000, "kept"]
        assert (told[name]["data"], told[name]["profiles"]) == ("c4", False)


LAYOUTS = {
    "pipeline": layout(tp=2, pp=2, virtual_stages=2, dp_shard=4, num_microbatches=16,
                       recompute="full"),
    "hsdp": layout(tp=1, dp_shard=8, dp_replicate=2, sharding="hsdp", num_microbatches=4,
                   recompute="none", reshard_after_forward=False),
    "context": layout(tp=1, cp=2, dp_shard=8, num_microbatches=8, recompute="selective"),
    "ddp": layout(tp=1, dp_shard=16, sharding="ddp", num_microbatches=4, recompute="full"),
    "offload": layout(tp=1, dp_shard=16, num_microbatches=4, recompute="full",
                      offload_optimizer="cpu", offload_params="cpu"),
}  # fmt: skip
RECOMPUTE = {"none": "NoneType", "selective": "SelectiveAC.Config", "full": "FullAC.Config"}


def test_torchtitan_reads_every_layout(tmp_path):
    jobs = {name: recipe_job(layout=lay, compiled=True) for name, lay in LAYOUTS.items()}
    spread = layout(tp=1, ep=8, dp_shard=16, num_microbatches=4, recompute="full")
    jobs["experts"] = replace(titan_job("qwen3-30b-a3b"), layout=spread)
    told = asked("torchtitan", TITAN, {n: titan_words(j) for n, j in jobs.items()}, tmp_path)
    for name, job in jobs.items():
        assert "error" not in told[name], told[name]
        found, lay = told[name], job.layout
        assert [found[k] for k in ("tp", "pp", "cp", "ep")] == [lay.tp, lay.pp, lay.cp, lay.ep]
        assert found["dp"] == job.dp
        assert found["recompute"] == RECOMPUTE[lay.recompute]


def test_torchtitan_refuses_broken_copies(tmp_path):
    good = titan_words(recipe_job(layout=LAYOUTS["pipeline"]))
    broken = {
        "typo": [w.replace("tensor_parallel", "tensor_paralel") for w in good],
        "number": [w if w != "8192" else "8k" for w in good],
        "model": [w.replace("llama3_8b", "llama3_9b") for w in good],
        "graphs": [w for w in good if w != "--training.disable_cuda_graphs"],
    }
    assert all(words != good for words in broken.values())
    told = asked("torchtitan", TITAN, broken, tmp_path)
    assert {name for name, found in told.items() if "error" in found} == set(broken)


# --- LLaMA-Factory and torchtune -----------------------------------------------------------------

LLAMA_FACTORY = """
import json, sys
from pathlib import Path
from llamafactory.hparams import get_train_args
given = json.loads(Path(sys.argv[1]).read_text())
told = {}
for name, values in given.items():
    try:
        model, data, training, tuning, _ = get_train_args({**values, "use_cpu": True})
        told[name] = {"micro": training.per_device_train_batch_size,
                      "steps": training.gradient_accumulation_steps, "seq": data.cutoff_len,
                      "kind": tuning.finetuning_type, "rank": tuning.lora_rank,
                      "bits": model.quantization_bit, "packs": data.packing}
    except Exception as e:
        told[name] = {"error": f"{type(e).__name__}: {e}"}
print(json.dumps(told))
"""
TRAINER = """
import json, sys
from pathlib import Path
from transformers import TrainingArguments
given = json.loads(Path(sys.argv[1]).read_text())
told = {}
for name, values in given.items():
    try:
        a = TrainingArguments(use_cpu=True, **values)
        told[name] = [a.per_device_train_batch_size, a.gradient_accumulation_steps, a.max_steps]
    except Exception as e:
        told[name] = f"{type(e).__name__}: {e}"
print(json.dumps(told))
"""


def test_the_trainer_takes_the_batch_and_refuses_a_broken_copy(tmp_path):
    files = accelerate_config.write_fsdp(fsdp_job(), {})
    own = {"output_dir": "out", "learning_rate": 1e-5}
    good = {**yaml.safe_load(files[accelerate_config.ARGUMENTS]), **own}
    other = accelerate_config.write_deepspeed(zero_job("zero3"), {})
    asked_of = {
        "fsdp": good,
        "deepspeed": {**yaml.safe_load(other[accelerate_config.ARGUMENTS]), **own},
        "typo": {**good, "max_stepz": 3},
        "optimizer": {**good, "optim": "adamw_torched"},
    }
    told = asked("llama_factory", TRAINER, asked_of, tmp_path)
    assert (told["fsdp"], told["deepspeed"]) == ([1, 4, 1000], [2, 2, 1000])
    assert "max_stepz" in told["typo"]
    assert "adamw_torched" in told["optimizer"]


def tuned(task, **changes):
    given = {"tp": 1, "dp_shard": 16, "micro_batch_size": 2, "num_microbatches": 2,
             "sharding": "ddp", "recompute": "full", **changes}  # fmt: skip
    return recipe_job(task=task, layout=layout(**given))


def filled(values):
    """What the reader puts where a file says REPLACE_ME."""
    return {**values, "template": "llama3", "dataset": "mine", "output_dir": "out",
            "learning_rate": 1e-5, "model_name_or_path": "some/model"}  # fmt: skip


def test_llama_factory_reads_every_task_and_refuses_broken_copies(tmp_path):
    jobs = {task: tuned(task) for task in ("sft", "lora", "qlora")}
    written = {n: yaml.safe_load(llama_factory.write(j, {})[llama_factory.FILE])
               for n, j in jobs.items()}  # fmt: skip
    asked_of = {name: filled(values) for name, values in written.items()}
    broken = {"typo": {"lora_rnk": 8}, "kind": {"finetuning_type": "lorra"},
              "bits": {"finetuning_type": "full", "quantization_bit": 4}}  # fmt: skip
    asked_of |= {name: {**asked_of["lora"], **change} for name, change in broken.items()}
    told = asked("llama_factory", LLAMA_FACTORY, asked_of, tmp_path)
    for name, kind, bits in (("sft", "full", None), ("lora", "lora", None), ("qlora", "lora", 4)):
        found = told[name]
        assert "error" not in found, found
        # It fills packed sequences up to one less, and pads by one.
        assert (found["micro"], found["steps"], found["seq"]) == (2, 2, 8191)
        assert (found["kind"], found["bits"], found["packs"]) == (kind, bits, True)
    assert told["lora"]["rank"] == 16
    assert {name for name, found in told.items() if "error" in found} == set(broken)


TORCHTUNE = """
import json, sys
from pathlib import Path
from omegaconf import OmegaConf
from torchtune.config import validate
from torchtune.config._errors import ConfigError
given = json.loads(Path(sys.argv[1]).read_text())
told = {}
for name, values in given.items():
    try:
        validate(OmegaConf.create(values))
        told[name] = {}
    except (ConfigError, Exception) as e:
        told[name] = {"error": f"{type(e).__name__}: {e}"}
print(json.dumps(told))
"""
TUNED = {
    "tokenizer": {"_component_": "torchtune.models.llama3.llama3_tokenizer", "path": "t"},
    "dataset": {"_component_": "torchtune.datasets.alpaca_dataset"},
}


def test_torchtune_takes_every_model_and_refuses_broken_copies(tmp_path):
    asked_of = {}
    for name in torchtune.MODELS:
        for task in ("sft", "lora", "qlora"):
            job = replace(tuned(task, sharding="fsdp2"), model_id=name,
                          model=preset(name).transformer)  # fmt: skip
            if not torchtune.refuses(job):
                written = yaml.safe_load(torchtune.write(job, {})[torchtune.FILE])
                asked_of[f"{name} {task}"] = {**written, **TUNED}
    good = asked_of["llama3.1-8b lora"]
    broken = {
        "rank": {**good, "model": {**good["model"], "lora_rnk": 8}},
        "builder": {**good, "model": {"_component_": "torchtune.models.llama3_1.llama3_1_9b"}},
        "optimizer": {**good, "optimizer": {**good["optimizer"], "learning": 1.0}},
    }
    told = asked("torchtune", TORCHTUNE, {**asked_of, **broken}, tmp_path)
    assert len(asked_of) > 30
    assert {n: found for n, found in told.items() if "error" in found}.keys() == set(broken)
