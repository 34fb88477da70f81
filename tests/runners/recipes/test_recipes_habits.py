"""What the forecast assumes of a training stack stands in its file; what nobody decided stands in
one block at the top, which the preflight does not pass over."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from dataclasses import replace

import pytest
import yaml

from core.model.presets import preset
from runners.recipes import (
    accelerate_config,
    axolotl,
    deepspeed,
    llama_factory,
    maxtext,
    megatron,
    torchtitan,
    torchtune,
)
from runners.recipes.header import FILL_IN, FILLED_IN
from runners.recipes.job import Habits, RecipeError
from runners.recipes.registry import OPTIONS, files_of, target
from tests.made_up.plans import layout
from tests.made_up.recipes import recipe_job

ZERO1 = layout(tp=2, dp_shard=8, num_microbatches=8, sharding="zero1", recompute="full")
FSDP = layout(tp=1, dp_shard=16, micro_batch_size=2, num_microbatches=2, recompute="full")
ZERO3 = replace(FSDP, sharding="zero3")
GIVEN = {
    "data_path": "/data/tokens", "dataset": "mine", "model_path": "org/model",
    "tokenizer": "/data/tokenizer", "checkpoint_path": "/shared/run", "learning_rate": "3e-4",
    "nvme_path": "/nvme",
}  # fmt: skip


def model(name, **changes):
    """A job of a named model."""
    return recipe_job(model_id=name, model=preset(name).transformer, model_label=name, **changes)


def written(name, job, options=None):
    """The files of a target, read back against the plan."""
    return files_of(name, job, options or {})


def given_to(name):
    """Every option that a target takes."""
    return {k: v for k, v in GIVEN.items() if k in target(name).options}


def megatron_flags(job, options=None):
    """The flags of its file."""
    return megatron.flags_of(written("megatron", job, options)[megatron.FILE])


# --- the block -----------------------------------------------------------------------------------

BLOCKS = {
    "megatron": ZERO1, "megatron-bridge": ZERO1, "torchtitan": FSDP, "torchtune": FSDP,
    "llama-factory": FSDP, "axolotl": FSDP, "maxtext": FSDP,
}  # fmt: skip
TASKS = dict.fromkeys(("torchtune", "llama-factory", "axolotl"), "lora")
OPEN = {  # what no option gives
    "torchtune": ["checkpoint_files", "dataset", "lora_alpha"],
    "llama-factory": ["template"],
    "axolotl": ["datasets", "lora_alpha"],
}


def block_of(text):
    """The lines of the first block."""
    head, _, rest = text.partition(f"{FILL_IN}\n")
    assert head in ("", "#!/usr/bin/env bash\n"), "the block is not at the top"
    return rest.partition(f"{FILLED_IN}\n")[0]


def todos(text):
    """The names that are still to be filled in, in the whole file."""
    return re.findall(r"^# TODO runcast: (\w+) - \S", text, re.M)


@pytest.mark.parametrize("name", BLOCKS)
def test_what_nobody_decided_is_listed_at_the_top_until_it_is_given(name):
    job = recipe_job(layout=BLOCKS[name], task=TASKS.get(name, "pretrain"))
    (text, *_) = written(name, job).values()
    assert todos(text) == todos(block_of(text))
    assert len(todos(text)) >= 3
    (text, *_) = written(name, job, given_to(name)).values()
    assert todos(text) == OPEN.get(name, [])
    for value in {**given_to(name), "learning_rate": "", "nvme_path": ""}.values():
        assert value in text
    assert ("0.0003" in text) is (name != "torchtitan")  # whose configuration has one


def test_files_beside_the_first_have_a_block_of_their_own():
    arguments = written("accelerate-fsdp2", recipe_job(layout=FSDP))[accelerate_config.ARGUMENTS]
    assert todos(block_of(arguments)) == ["output_dir", "learning_rate"]
    on_disk = replace(ZERO3, offload_optimizer="nvme", offload_params="nvme")
    readme = written("deepspeed", recipe_job(layout=on_disk))[deepspeed.README]
    assert todos(block_of(readme)) == ["nvme_path"]


def test_the_preflight_lists_what_is_not_filled_in_and_ends_with_3(tmp_path):
    job = recipe_job(layout=ZERO1)
    for path, text in {**written("megatron", job), **written("preflight", job)}.items():
        (tmp_path / path).write_text(text)

    def preflight(*words):
        return subprocess.run(
            ["/bin/bash", tmp_path / "preflight.sh", *words], cwd="/", capture_output=True,
            text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "PYTHON": "no-such-python", "DISK_MIB": "1",
                 "DISK_DIR": str(tmp_path)},
        )  # fmt: skip

    for done in (preflight(), preflight(tmp_path / megatron.FILE)):
        assert done.returncode == 3
        assert "4 values are still to be filled in" in done.stdout
        assert re.search(r"megatron_train\.sh: TOKENIZER - folder or name", done.stdout)
        assert not done.stderr
    for path, text in written("megatron", job, GIVEN_TO_MEGATRON).items():
        (tmp_path / path).write_text(text)
    done = preflight()
    assert done.returncode == 10  # no GPU
    assert "no value is left to fill in" in done.stdout


GIVEN_TO_MEGATRON = given_to("megatron")


@pytest.mark.parametrize("value", ["", "0", "-1e-4", "nan", "inf", "high", "1e-4;x", "11"])
def test_a_learning_rate_is_a_small_positive_number(value):
    with pytest.raises(RecipeError, match="learning_rate"):
        written("megatron", recipe_job(layout=ZERO1), {"learning_rate": value or " "})
    assert "learning_rate" in OPTIONS


# --- Megatron-LM and Megatron-Bridge -------------------------------------------------------------


def test_megatron_saves_goes_on_and_never_evaluates():
    flags = megatron_flags(recipe_job(layout=ZERO1, checkpoint_steps=250), GIVEN_TO_MEGATRON)
    assert flags["--save"] == flags["--load"] == "/shared/run"
    assert flags["--save-interval"] == "250"
    assert flags["--tensorboard-dir"] == "/shared/run/logs"
    assert flags["--eval-iters"] == "0"
    assert megatron_flags(recipe_job(layout=ZERO1))["--save-interval"] == "1000"  # at the end


@pytest.mark.parametrize(
    ("name", "base", "scaling"),
    [("llama3.1-8b", "500000", "8"), ("llama2-7b", "10000", None), ("qwen3-8b", "1000000", None)],
)
def test_megatron_rotates_as_the_model_does(name, base, scaling):
    flags = megatron_flags(model(name, layout=ZERO1))
    assert flags["--rotary-base"] == base
    assert flags.get("--rope-scaling-factor") == scaling


def test_the_rotation_of_an_unknown_model_is_to_be_filled_in():
    (text,) = written("megatron", recipe_job(layout=ZERO1, model_id="custom")).values()
    assert "ROTARY_BASE" in todos(text)


DEEPSEEK = {
    "num_gpus": 512, "num_nodes": 64, "global_batch_size": 1024,
    "layout": layout(tp=2, pp=16, ep=8, dp_shard=16, num_microbatches=64, sharding="zero1"),
}  # fmt: skip


def test_megatron_routes_deepseek_v3_as_it_was_trained():
    flags = megatron_flags(model("deepseek-v3", **DEEPSEEK))
    wanted = {
        "--moe-router-score-function": "sigmoid", "--moe-router-enable-expert-bias": True,
        "--moe-router-num-groups": "8", "--moe-router-group-topk": "4",
        "--moe-router-topk-scaling-factor": "2.5", "--mtp-num-layers": "1", "--qk-layernorm": True,
    }  # fmt: skip
    assert {flag: flags.get(flag) for flag in wanted} == wanted
    mixtral = megatron_flags(model("mixtral-8x7b", layout=ZERO1))
    assert not [f for f in mixtral if f.startswith("--moe-router") and f != "--moe-router-topk"]


@pytest.mark.parametrize(
    ("name", "pp", "virtual"),
    [("deepseek-v3", 16, 1), ("deepseek-v3", 16, 2), ("llama3.1-405b", 16, 1),
     ("llama3.1-405b", 16, 8), ("llama3.1-70b", 8, 4)],
)  # fmt: skip
def test_layers_that_do_not_divide_get_a_layout_no_slower_than_forecast(name, pp, virtual):
    lay = layout(tp=8, pp=pp, virtual_stages=virtual, dp_shard=1, num_microbatches=64,
                 sharding="zero1")  # fmt: skip
    job = model(name, layout=lay, num_gpus=8 * pp, num_nodes=pp)
    flags = megatron_flags(job)
    stages = str(flags["--pipeline-model-parallel-layout"]).split("|")
    layers = int(job.model.num_layers)
    assert len(stages) == pp * virtual
    assert sum(s.count("t") for s in stages) == layers
    assert (stages[0][0], stages[-1][-1]) == ("E", "L")
    assert "".join(stages).count("m") == int(flags.get("--mtp-num-layers", 0))
    per_rank = [sum(s.count("t") for s in stages[rank::pp]) for rank in range(pp)]
    assert max(per_rank) <= -(-layers // pp)
    assert stages[-1].count("t") < max(s.count("t") for s in stages)  # it has the LM head, too
    assert "--num-virtual-stages-per-pipeline-rank" not in flags
    (text,) = written("megatron-bridge", job).values()
    assert f"'{flags['--pipeline-model-parallel-layout']}'" in text
    with pytest.raises(RecipeError, match="divides other layers"):
        target("megatron").read(
            {megatron.FILE: written("megatron", job)[megatron.FILE].replace("t|", "|", 1)}
        )


def test_bridge_has_a_tokenizer_data_and_checkpoints():
    job = recipe_job(layout=ZERO1, habits=Habits(async_tp=True), checkpoint_steps=250)
    (text,) = written("megatron-bridge", job, given_to("megatron-bridge")).values()
    names = {
        n.targets[0].id: ast.literal_eval(n.value)
        for n in ast.parse(text).body
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
    }
    assert names["TOKENIZER"] == "/data/tokenizer"
    assert names["DATA_PATH"] == "/data/tokens"
    assert names["CHECKPOINTS"] == "/shared/run"
    for use in ("tokenizer_model = TOKENIZER", "blend = ([DATA_PATH], None)", "load = CHECKPOINTS"):
        assert use in text
    plan = names["PLAN"]
    assert plan["model"]["tp_comm_overlap"]
    assert plan["checkpoint"]["save_interval"] == 250
    assert plan["ddp"]["overlap_grad_reduce"]
    assert plan["ddp"]["overlap_param_gather"]


# --- DeepSpeed and Accelerate --------------------------------------------------------------------


def zero_of(job):
    """Its JSON, and the part about ZeRO."""
    found = json.loads(written("deepspeed", job, {"nvme_path": "/nvme"})[deepspeed.FILE])
    return found, found["zero_optimization"]


@pytest.mark.parametrize("sharding", ["zero1", "zero2", "zero3", "zeropp"])
def test_deepspeed_names_its_buffers(sharding):
    habits = Habits(reduces_in_fp32=False)
    found, zero = zero_of(recipe_job(layout=replace(ZERO3, sharding=sharding), habits=habits))
    assert zero["reduce_bucket_size"] == 500_000_000
    assert found["gradient_clipping"] == 1.0
    third = {"stage3_prefetch_bucket_size", "stage3_param_persistence_threshold"}
    assert third <= zero.keys() if zero["stage"] == 3 else not third & zero.keys()


def test_what_deepspeed_offloads_is_pinned_and_a_buffer_holds_the_largest_matrix():
    lay = replace(ZERO3, offload_optimizer="cpu", offload_params="nvme")
    _, zero = zero_of(recipe_job(layout=lay))
    assert zero["offload_optimizer"] == {"device": "cpu", "pin_memory": True}
    assert zero["offload_param"]["pin_memory"]
    assert zero["offload_param"]["buffer_size"] == 128256 * 4096


def test_the_trainer_saves_logs_and_clips():
    job = recipe_job(layout=FSDP, checkpoint_steps=250)
    given = yaml.safe_load(written("accelerate-fsdp2", job)[accelerate_config.ARGUMENTS])
    assert (given["save_steps"], given["save_strategy"]) == (250, "steps")
    assert (given["max_grad_norm"], given["logging_steps"]) == (1.0, 10)


# --- TorchTitan and torchtune --------------------------------------------------------------------


def test_torchtitan_saves_names_its_data_and_does_not_profile():
    job = recipe_job(layout=FSDP, checkpoint_steps=250)
    words = torchtitan.overrides(
        written("torchtitan", job, given_to("torchtitan"))[torchtitan.FILE]
    )
    for flag, value in (
        ("--checkpoint.interval", "250"), ("--dump_folder", "/shared/run"),
        ("--dataloader.dataset", "mine"), ("--hf_assets_path", "/data/tokenizer"),
    ):  # fmt: skip
        assert words[words.index(flag) + 1] == value
    assert {"--checkpoint.enable", "--profiler.no-enable_profiling"} <= {*words}


def test_torchtitan_overlaps_tensors_in_a_compiled_model_only():
    tensors = layout(tp=2, dp_shard=8, num_microbatches=8, recompute="full")
    with pytest.raises(RecipeError, match="only in a compiled model"):
        written("torchtitan", recipe_job(layout=tensors, habits=Habits(async_tp=True)))
    piped = replace(tensors, pp=2, dp_shard=4, num_microbatches=16)
    with pytest.raises(RecipeError, match="no CUDA graphs with pipelines"):
        written("torchtitan", recipe_job(layout=piped, habits=Habits(cuda_graphs=True)))


@pytest.mark.parametrize("task", ["sft", "lora", "qlora"])
@pytest.mark.parametrize("name", torchtune.MODELS)
def test_torchtune_has_every_key_that_its_recipes_read(name, task):
    """They read these without a default; its own check does not see that one is missing."""
    job = model(name, layout=FSDP, task=task)
    if torchtune.refuses(job):
        return
    given = yaml.safe_load(written("torchtune", job)[torchtune.FILE])
    needed = {"seed", "epochs", "max_steps_per_epoch", "output_dir", "metric_logger", "shuffle",
              "resume_from_checkpoint", "compile", "optimizer_in_bwd"}  # fmt: skip
    assert needed <= given.keys()
    assert ("lr_scheduler" in given) is (task != "sft")
    assert given["dataset"]["packed"] is True
    assert "REPLACE_ME" not in str({**given["tokenizer"], **given["checkpointer"]})


# --- LLaMA-Factory, Axolotl and MaxText ----------------------------------------------------------


def yaml_of(name, job):
    """Its YAML."""
    return yaml.safe_load(next(iter(written(name, job).values())))


def test_llama_factory_recomputes_once():
    files = written("llama-factory", recipe_job(layout=FSDP, task="sft"))
    own = yaml.safe_load(files[llama_factory.FILE])
    shards = yaml.safe_load(files[accelerate_config.FSDP_FILE])["fsdp_config"]
    assert own["disable_gradient_checkpointing"] is shards["fsdp_activation_checkpointing"] is True


CONTEXT = layout(tp=1, cp=2, dp_shard=8, num_microbatches=8, recompute="full")


def test_axolotl_pretrains_and_cuts_sequences():
    given = yaml_of("axolotl", recipe_job(layout=CONTEXT))
    assert given["pretraining_dataset"] == [{"path": "REPLACE_ME", "type": "pretrain"}]
    assert "datasets" not in given
    assert (given["reinit_weights"], given["streaming"]) == (True, True)
    assert (given["context_parallel_size"], given["ring_attn_func"]) == (2, "batch_ring")
    packed = replace(CONTEXT, context_parallel="all_gather", recompute="offload")
    given = yaml_of("axolotl", recipe_job(layout=packed, task="sft"))
    assert (given["gradient_checkpointing"], given["activation_offloading"]) == (True, True)
    assert (given["sample_packing"], given["ring_attn_func"]) == (True, "varlen_llama3")
    for changes, why in (
        ({"layout": CONTEXT, "task": "sft"}, "context-parallel method of packed sequences ring"),
        ({"layout": replace(packed, micro_batch_size=2, num_microbatches=4), "task": "sft"},
         "micro-batch of 1"),
        ({"layout": CONTEXT, "habits": Habits(attention="newest")}, "FlashAttention 2 or 3"),
        ({"layout": replace(CONTEXT, sharding="zero3")}, "context parallelism"),
    ):  # fmt: skip
        assert why in axolotl.refuses(recipe_job(**changes))


def test_maxtext_cuts_sequences_with_the_one_kernel_that_can():
    given = yaml_of("maxtext", recipe_job(layout=CONTEXT, checkpoint_steps=250))
    assert (given["attention"], given["packing"]) == ("cudnn_flash_te", True)
    assert given["max_segments_per_seq"] > 0
    assert given["checkpoint_period"] == 250
    gathered = replace(CONTEXT, context_parallel="all_gather")
    assert "in a ring only" in maxtext.refuses(recipe_job(layout=gathered))
    padded = recipe_job(layout=gathered, habits=Habits(packed=False))
    assert yaml_of("maxtext", padded)["packing"] is False
    on_tpu = recipe_job(layout=gathered, vendor="google", accelerator="TPU-v6e")
    assert yaml_of("maxtext", on_tpu)["attention"] == "autoselected"
    assert yaml_of("maxtext", on_tpu)["hardware"] == "tpu"
    assert "context-parallel" in maxtext.refuses(replace(on_tpu, layout=CONTEXT))
