"""Files for training stacks: what is written is read back as the plan, what a stack cannot do is
refused, and broken files are noticed. The stacks themselves are in tests/services."""

import ast
import json
import subprocess
import sys
from dataclasses import replace

import pytest
import yaml

from core.model.presets import preset
from core.model.transformer import total_params
from runners.recipes import (
    accelerate_config,
    axolotl,
    deepspeed,
    fsdp2,
    fsdp2_train,
    launch,
    llama_factory,
    maxtext,
    megatron,
    nemo,
    quoting,
    torchtitan,
    torchtune,
)
from runners.recipes.job import RecipeError, check_job
from runners.recipes.target import NOT_VALIDATED
from tests.made_up.plans import layout
from tests.made_up.recipes import HEADER, one_gpu, recipe_job

MODULES = (
    fsdp2, torchtitan, megatron, nemo, deepspeed, accelerate_config, torchtune, llama_factory,
    axolotl, maxtext,
)  # fmt: skip
TARGETS = {t.name: t for module in MODULES for t in module.TARGETS}

FSDP = layout(tp=1, dp_shard=16, micro_batch_size=2, num_microbatches=2, recompute="full")
HSDP = replace(FSDP, dp_replicate=2, dp_shard=8, sharding="hsdp")
TENSOR = layout(tp=2, dp_shard=8, num_microbatches=8, recompute="full")
ZERO1 = replace(TENSOR, sharding="zero1")
PIPELINE = replace(ZERO1, pp=2, virtual_stages=2, dp_shard=4, num_microbatches=16)
ZERO3 = replace(FSDP, sharding="zero3")
CONTEXT = layout(tp=1, cp=2, dp_shard=8, num_microbatches=8, recompute="full")
DDP = replace(FSDP, sharding="ddp")
# Target -> what it must be able to say.
SAYS = {
    "fsdp2": [FSDP, HSDP, TENSOR, DDP, replace(FSDP, recompute="selective"),
              replace(FSDP, offload_optimizer="cpu", offload_params="cpu")],
    "torchtitan": [FSDP, HSDP, TENSOR, CONTEXT, DDP, replace(PIPELINE, sharding="fsdp2")],
    "megatron": [ZERO1, PIPELINE, replace(CONTEXT, sharding="zero1"), DDP,
                 replace(ZERO1, offload_optimizer="cpu")],
    "megatron-bridge": [ZERO1, PIPELINE, replace(CONTEXT, sharding="zero1"),
                        replace(ZERO1, offload_optimizer="cpu")],
    "deepspeed": [ZERO3, replace(ZERO3, sharding="zero2"), replace(ZERO3, sharding="zeropp"),
                  replace(ZERO3, offload_optimizer="nvme", offload_params="nvme")],
    "accelerate-fsdp2": [FSDP, HSDP, replace(FSDP, recompute="offload")],
    "accelerate-deepspeed": [ZERO3, replace(ZERO3, sharding="zero2", offload_optimizer="cpu")],
    "torchtune": [FSDP],
    "llama-factory": [FSDP, ZERO3, DDP],
    "axolotl": [FSDP, HSDP, TENSOR, ZERO3, DDP, replace(CONTEXT, context_parallel="all_gather")],
    "maxtext": [FSDP, HSDP, TENSOR, CONTEXT, DDP],
}  # fmt: skip
TUNES = {"torchtune", "llama-factory", "axolotl"}
CASES = [(name, lay) for name, lays in SAYS.items() for lay in lays]


def job_of(name, lay, **changes):
    return recipe_job(layout=lay, task="lora" if name in TUNES else "pretrain", **changes)


def test_every_target_has_a_case():
    assert set(SAYS) == set(TARGETS)
    assert all(t.kind == "stack" for t in TARGETS.values())


@pytest.mark.parametrize(("name", "lay"), CASES)
def test_what_is_written_is_read_back_as_the_plan(name, lay):
    job, chosen = job_of(name, lay), TARGETS[name]
    check_job(job)
    assert chosen.refuses(job) == ""
    found = chosen.read(chosen.write(job, {}))
    degrees = (found.tp, found.pp, found.cp, found.dp)
    assert degrees == (lay.tp, lay.pp, lay.cp, job.dp)
    assert found.world_size == job.num_gpus == lay.tp * lay.pp * lay.cp * job.dp
    batch = (found.micro_batch_size, found.num_microbatches, found.global_batch_size)
    assert batch == (lay.micro_batch_size, lay.num_microbatches, job.global_batch_size)
    assert batch[0] * batch[1] * found.dp == batch[2]


@pytest.mark.parametrize(("name", "lay"), CASES)
def test_every_file_says_where_it_is_from_and_whether_its_tool_saw_it(name, lay):
    chosen = TARGETS[name]
    files = chosen.write(job_of(name, lay), {})
    text = "\n".join(files.values())
    assert HEADER.link in text
    assert HEADER.forecast[0] in text
    own = next(iter(files.values()))
    assert (NOT_VALIDATED in own) is (chosen.tier == "not_validated")


@pytest.mark.parametrize("name", sorted(set(TARGETS) - {"accelerate-fsdp2", "torchtune"}))
def test_one_gpu_has_nothing_to_shard(name):
    lay = layout(tp=1, dp_shard=1, sharding="ddp", num_microbatches=64, recompute="full")
    job = one_gpu(layout=lay, task="lora" if name in TUNES else "pretrain")
    found = TARGETS[name].read(TARGETS[name].write(job, {}))
    assert (found.world_size, found.dp, found.global_batch_size) == (1, 1, 64)


REFUSED = [
    ("fsdp2", {"layout": PIPELINE}, "pipeline parallelism"),
    ("fsdp2", {"layout": ZERO3}, "sharding zero3"),
    ("fsdp2", {"layout": FSDP, "task": "lora"}, "task lora"),
    ("fsdp2", {"layout": FSDP, "precision": "fp8"}, "precision fp8"),
    ("fsdp2", {"layout": replace(FSDP, offload_optimizer="cpu")}, "optimizer states alone"),
    ("fsdp2", {"layout": FSDP, "model": preset("mixtral-8x7b").transformer}, "no experts"),
    ("fsdp2", {"layout": FSDP, "model": preset("gemma3-4b").transformer}, "sliding windows"),
    ("torchtitan", {"layout": replace(FSDP, sharding="zeropp")}, "sharding zeropp"),
    ("torchtitan", {"layout": FSDP, "model_id": "custom"}, "no configuration"),
    ("torchtitan", {"layout": replace(TENSOR, etp=2)}, "tensor parallelism of experts"),
    ("torchtitan", {"layout": replace(PIPELINE, sharding="fsdp2", pp=5)}, "32 layers into 10"),
    ("megatron", {"layout": FSDP}, "sharding fsdp2"),
    ("megatron", {"layout": replace(DDP, offload_optimizer="cpu")}, "under zero1 alone"),
    ("megatron-bridge", {"layout": ZERO1, "precision": "fp8"}, "precision fp8"),
    ("deepspeed", {"layout": TENSOR}, "tensor parallelism"),
    ("deepspeed", {"layout": HSDP}, "sharding hsdp"),
    ("deepspeed", {"layout": replace(ZERO3, sharding="zero2", offload_params="cpu")}, "ZeRO-3"),
    ("accelerate-fsdp2", {"layout": ZERO3}, "sharding zero3"),
    ("accelerate-fsdp2", {"layout": TENSOR}, "plan with tp 1"),
    ("accelerate-fsdp2", {"layout": replace(FSDP, recompute="selective")}, "selective"),
    ("accelerate-deepspeed", {"layout": replace(ZERO3, recompute="selective")}, "selective"),
    ("torchtune", {"layout": FSDP}, "task pretrain"),
    ("llama-factory", {"layout": ZERO3, "task": "qlora"}, "bitsandbytes"),
    ("axolotl", {"layout": PIPELINE, "task": "lora"}, "pipeline parallelism"),
    ("maxtext", {"layout": replace(FSDP, recompute="none")}, "recompute none"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "reason"), REFUSED)
def test_what_a_stack_cannot_do_is_refused_with_one_sentence(name, changes, reason):
    job = recipe_job(**changes)
    said = TARGETS[name].refuses(job)
    assert reason in said
    assert "\n" not in said
    assert not said.endswith(".")
    with pytest.raises(RecipeError, match=r"\.$"):
        TARGETS[name].write(job, {})


@pytest.mark.parametrize("name", TARGETS)
def test_what_a_stack_starts_is_a_command_of_its_own_file(name):
    """As launchers take it: an argument list that torchrun can start on every GPU."""
    job = job_of(name, SAYS[name][-1])
    files = TARGETS[name].write(job, {})
    command = TARGETS[name].starts(job, {})
    if not command:
        assert name in {
            "deepspeed",
            "accelerate-fsdp2",
            "accelerate-deepspeed",
            "torchtune",
            "maxtext",
        }
        return
    words = launch.under_torchrun(quoting.command_words(command))
    assert words[-1] in files
    assert words[0] in {"-m", "--no-python", words[-1]}


def test_no_stack_invents_a_learning_rate_or_data():
    for name, lays in SAYS.items():
        text = "\n".join(TARGETS[name].write(job_of(name, lays[0]), {}).values()).lower()
        assert any(word in text for word in ("learning rate", "replace_me", "todo runcast")), name


# --- what is broken is noticed -------------------------------------------------------------------

BROKEN = [
    ("fsdp2", FSDP, "fsdp2_train.py", "PLAN: dict", "PLAN! dict", "Python"),
    ("fsdp2", FSDP, "fsdp2_train.py", "PLAN: dict[", "PLIN: dict[", "no PLAN"),
    ("torchtitan", FSDP, "torchtitan_train.sh", "exec python", "exec perl", "not start python"),
    ("torchtitan", FSDP, "torchtitan_train.sh", "global_batch_size 64", "global_batch_size 65",
     "no multiple"),
    ("megatron", ZERO1, "megatron_train.sh", "--seq-length", "--seq-lenght", "--seq-lenght"),
    ("megatron", ZERO1, "megatron_train.sh", "# world 16", "# world 17", "is not 17"),
    ("megatron-bridge", ZERO1, "megatron_bridge_train.py", '"global_batch_size": 64',
     '"global_batch_size": 63', "no multiple"),
    ("deepspeed", ZERO3, "deepspeed_config.json", "train_micro_batch", "train_mikro_batch",
     "would ignore"),
    ("deepspeed", ZERO3, "deepspeed_config.json", '"train_batch_size": 64',
     '"train_batch_size": 63', "no multiple"),
    ("accelerate-fsdp2", FSDP, "accelerate_fsdp2.yaml", "fsdp_offload_params", "fsdp_offload",
     "fsdp_offload"),
    ("accelerate-fsdp2", FSDP, "accelerate_fsdp2.yaml", "num_processes: 16", "num_processes: 8",
     "8 processes"),
    ("accelerate-deepspeed", ZERO3, "training_arguments.yaml", "accumulation_steps: 2",
     "accumulation_steps: 3", "differ"),
    ("torchtune", FSDP, "torchtune.yaml", "batch_size: 2", "batch_sise: 2", "batch_sise"),
    ("llama-factory", ZERO3, "llama_factory.yaml", "accumulation_steps: 2",
     "accumulation_steps: 4", "different batches"),
    ("axolotl", HSDP, "axolotl.yaml", "dp_shard_size: 8", "dp_shard_size: 4", "others above"),
    ("maxtext", FSDP, "maxtext.yml", "ici_fsdp_parallelism: 8", "ici_fsdp_parallelism: 4",
     "others in its first lines"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "lay", "file", "old", "new", "reason"), BROKEN)
def test_a_broken_file_is_noticed(name, lay, file, old, new, reason):
    files = TARGETS[name].write(job_of(name, lay), {})
    assert old in files[file]
    files[file] = files[file].replace(old, new)
    with pytest.raises(RecipeError, match=reason):
        TARGETS[name].read(files)


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_no_such_file_is_one_sentence(name):
    chosen = TARGETS[name]
    files = chosen.write(job_of(name, SAYS[name][0]), {})
    for broken in ({}, dict.fromkeys(files, ""), dict.fromkeys(files, "\x00{[")):
        with pytest.raises(RecipeError):
            chosen.read(broken)


@pytest.mark.parametrize("name", TARGETS)
def test_a_file_that_lost_a_line_is_read_or_refused(name):
    """Never an error that is not ours."""
    chosen = TARGETS[name]
    files = chosen.write(job_of(name, SAYS[name][0]), {})
    refused = 0
    for path, text in files.items():
        lines = text.splitlines(keepends=True)
        for i in range(min(len(lines), 90)):
            try:
                chosen.read({**files, path: "".join(lines[:i] + lines[i + 1 :])})
            except RecipeError:
                refused += 1
    assert refused > 2


# --- foreign text --------------------------------------------------------------------------------

HOSTILE = ["a b", "x\ny", "$(touch canary)", "`id`", "'; touch canary; '", "a\u2028b", "x" * 10_000]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(
    ("name", "option"),
    [(t.name, option) for t in TARGETS.values() for option in t.options if option != "nvme_path"],
)
def test_a_foreign_path_is_refused(name, option, text):
    with pytest.raises(RecipeError, match=option):
        TARGETS[name].write(job_of(name, SAYS[name][0]), {option: text})


@pytest.mark.parametrize("text", [*HOSTILE, '"""', "'''", "\\", "# world 9 = tp 9"])
@pytest.mark.parametrize("name", TARGETS)
def test_foreign_text_in_the_header_stays_a_comment(name, text):
    lay = SAYS[name][0]
    header = replace(HEADER, forecast=(text,), assumptions=(text,))
    job = job_of(name, lay, header=header, model_label=text)
    files = TARGETS[name].write(job, {})
    assert TARGETS[name].read(files).world_size == 16
    for path, body in files.items():
        if path.endswith(".py"):
            ast.parse(body)
        elif path.endswith((".yaml", ".yml")):
            assert isinstance(yaml.safe_load(body), dict)


@pytest.mark.parametrize("name", ["torchtitan", "megatron"])
def test_a_shell_file_runs_our_words_and_no_other(name, tmp_path):
    """bash with a python that prints its arguments: nothing of a foreign label is executed."""
    nasty = "'; touch canary; $(touch canary) `touch canary`\n touch canary"
    header = replace(HEADER, forecast=(nasty,), assumptions=(nasty,))
    job = job_of(name, SAYS[name][0], header=header, model_label=nasty)
    given = {o: "1e-4" if o == "learning_rate" else "/a/b" for o in TARGETS[name].options}
    ((path, text),) = TARGETS[name].write(job, given).items()
    (tmp_path / path).write_text(text)
    fake = tmp_path / "python"
    fake.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    fake.chmod(0o755)
    done = subprocess.run(
        ["/bin/bash", path, "--more", "a b"], cwd=tmp_path, env={"PATH": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    words = json.loads(done.stdout)
    assert "--more" in words
    assert "a b" in words
    assert not (tmp_path / "canary").exists()
    count = [w for w in words if w not in ("--more", "a b")]
    module = {"torchtitan": torchtitan, "megatron": megatron}[name]
    known = {"torchtitan": 2, "megatron": 1}[name]
    if name == "torchtitan":
        assert count[known:] == module.overrides(text)
    else:
        assert len(count) > known + 30


# --- the FSDP2 script's model --------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["llama3.1-8b", "llama3.2-1b", "qwen2.5-7b", "qwen3-8b", "gpt3-175b"]
)
def test_the_scripts_model_has_the_parameters_that_the_forecast_counts(name, monkeypatch):
    import torch

    model = preset(name).transformer
    job = recipe_job(layout=FSDP, model=model, model_id=name, seq_len=2048)
    found = fsdp2.read(fsdp2.write(job, {})).more
    monkeypatch.setattr(fsdp2_train, "MODEL", {**found["MODEL"], "num_layers": 2})
    with torch.device("meta"):
        built = fsdp2_train.Decoder()
    expected = total_params(replace(model, num_layers=2))
    assert sum(p.numel() for p in built.parameters()) == expected


def test_the_shipped_script_is_a_plan_of_its_own():
    """Without a plan written into it, it is the tiny example of its first lines."""
    source = fsdp2_train.__file__
    with open(source, encoding="utf-8") as file:
        found = fsdp2.read({fsdp2.FILE: file.read()})
    assert found.world_size == found.dp == 2
    assert found.micro_batch_size * found.num_microbatches * 2 == found.global_batch_size
