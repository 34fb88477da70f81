"""Every habit of every stack, read back from the file that was written for it, by the syntax of the
file: arguments, YAML, JSON, Python. tests/services gives the same files to the real tools."""

from __future__ import annotations

import ast
import json
from dataclasses import replace

import pytest
import yaml

from core.model.presets import preset
from hardware.habits.flags import (
    ABSENT,
    DIFFERS,
    FLAGS_CSV,
    HABITS,
    MODULES,
    SET,
    choices_of,
    flags,
    load_flags,
    rows_of,
    settings,
)
from hardware.stack_support import supports
from runners.recipes import arguments, deepspeed, megatron, stack_rules, torchtitan
from runners.recipes.job import Habits, RecipeError
from runners.recipes.registry import files_of
from runners.recipes.registry import target as target_of
from tests.made_up.plans import layout
from tests.made_up.recipes import recipe_job

TENSOR = layout(tp=2, dp_shard=8, num_microbatches=8, recompute="full")
FSDP = layout(tp=1, dp_shard=16, micro_batch_size=2, num_microbatches=2, recompute="full")
BASE = {
    "megatron-lm": replace(TENSOR, sharding="zero1"),
    "megatron-bridge": replace(TENSOR, sharding="zero1"),
    "torchtitan": TENSOR,
    "torchtune": FSDP,
    "deepspeed": replace(FSDP, sharding="zero2"),
    "accelerate": replace(FSDP, sharding="zero3"),
    "llama-factory": replace(FSDP, sharding="ddp"),
    "axolotl": TENSOR,
    "maxtext": TENSOR,
}
# What Accelerate's own file says under FSDP2, Trainer's arguments say under DeepSpeed.
TARGETS = {"accelerate": "accelerate-deepspeed"}
EXPERTS = layout(tp=1, ep=16, dp_shard=16, num_microbatches=4, recompute="full")


def job_for(stack, habit="", choice=""):
    """A job of this stack whose forecast assumes this choice."""
    lay, on = BASE[stack], choice == "on"
    tunes = stack in ("torchtune", "llama-factory", "axolotl")
    given = {"layout": lay, "checkpoint_steps": 250, "task": "sft" if tunes else "pretrain"}
    held = {
        "gradient_overlap": {"overlaps_gradients": on},
        "param_overlap": {"overlaps_gradients": on},
        "async_tp": {"async_tp": on},
        "attention": {"attention": choice},
        "cuda_graphs": {"cuda_graphs": on},
        "loss": {"chunked_loss": choice == "chunked"},
        "packing": {"packed": on},
        "gradients": {"reduces_in_fp32": choice == "fp32"},
        "async_checkpoint": {"async_checkpoint": on},
        "dispatcher": {"sends_once_per_node": choice == "per_node"},
    }.get(habit, {})
    given |= {
        "compile": {"compiled": on},
        "async_tp": {"compiled": on and stack == "torchtitan"},
        "gradients": {"precision": "fp16" if choice == "fp16" else "bf16"},
        "optimizer_states": {"optimizer": choice},
        "recompute": {
            "layout": replace(
                EXPERTS if choice in NAMED else lay, recompute=choice, sharding=lay.sharding
            ),
            **(
                {"model_id": "deepseek-v2", "model": preset("deepseek-v2").transformer}
                if choice in NAMED
                else {}
            ),
        },
        "cuda_graphs": {"layout": replace(lay, recompute="selective" if on else "full")},
        "param_overlap": {
            "layout": replace(lay, sharding=lay.sharding.replace("ddp", "zero2")),
        },
        "dispatcher": {
            "layout": replace(EXPERTS, sharding=lay.sharding),
            "model_id": "deepseek-v3" if stack == "torchtitan" else "deepseek-v2",
            "model": preset("deepseek-v3" if stack == "torchtitan" else "deepseek-v2").transformer,
        },
    }.get(habit, {})
    return recipe_job(habits=Habits(**held), **given)


# The modules of a model with dense layers, experts and latent attention.
NAMED = {"norm_act": {"layernorm", "moe_act", "mla_up_proj"}, "mlp": {"mlp", "moe"}}


def read_back(stack, files):
    """Flag -> value of the stack's file, by the file's own syntax."""
    first = next(iter(files.values()))
    if stack == "megatron-lm":
        return megatron.flags_of(files[megatron.FILE])
    if stack == "torchtitan":
        *words, last = torchtitan.overrides(files[torchtitan.FILE])
        name, _, value = last.partition(":")
        return arguments.flags(words, "") | {name: value}
    if stack == "megatron-bridge":
        (plan,) = (
            ast.literal_eval(n.value)
            for n in ast.parse(first).body
            if isinstance(n, ast.Assign) and n.targets[0].id == "PLAN"
        )
        return flat(plan)
    if stack == "deepspeed":
        return flat(json.loads(files[deepspeed.FILE]))
    if stack == "accelerate":
        return flat(yaml.safe_load(files["training_arguments.yaml"]))
    return flat(yaml.safe_load(first))


def flat(values):
    """Parts and their keys as a.b."""
    found = {}
    for key, value in values.items():
        inner = flat(value) if isinstance(value, dict) else {"": value}
        found |= {f"{key}.{name}".rstrip("."): held for name, held in inner.items()}
    return found


def agrees(row, given, steps=250):
    """Whether a file has what a row says; `steps` are between its checkpoints."""
    if row.value == ABSENT:
        return row.flag not in given
    if row.value == MODULES:
        words = given.get(row.flag, ())
        words = words.split() if isinstance(words, str) else words
        return bool(words) and set(words) <= NAMED[row.choices[0]]
    value = settings(row.stack, {row.habit: row.choices[0]}, steps=steps or 0)[row.flag]
    return str(given.get(row.flag)) == str(value)


def written(stack, job, options=()):
    """The files of a stack for a job, read back against its degrees."""
    return files_of(TARGETS.get(stack, supports()[stack].target), job, dict(options))


CASES = [(s, h, c) for s in flags() for h in HABITS for c in choices_of(s, h)]


@pytest.mark.parametrize(("stack", "habit", "choice"), CASES)
def test_a_habit_that_is_assumed_is_read_back_from_the_file(stack, habit, choice):
    """The file has every flag of the choice, and those of no other."""
    job = job_for(stack, habit, choice)
    given = read_back(stack, written(stack, job))
    assert stack_rules.habits(job)[habit] == choice
    own = [row for row in rows_of(stack, habit, choice) if row.flag]
    assert all(agrees(row, given) for row in own), (own, given)
    for other in {*choices_of(stack, habit)} - {choice}:
        rows = [row for row in rows_of(stack, habit, other) if row.flag and row.how == SET]
        same = {(r.flag, r.value) for r in rows} <= {(r.flag, r.value) for r in own}
        assert same or not rows or not all(agrees(row, given) for row in rows), other


def test_every_stack_has_something_to_say_about_every_habit():
    assert set(flags()) == set(supports())
    missing = {(s, h) for s in flags() for h in HABITS if not choices_of(s, h)}
    assert {h for _, h in missing} == {"async_tp", "dispatcher"}
    for stack, habit in missing - {("deepspeed", "async_tp"), ("deepspeed", "dispatcher")}:
        assert {"async_tp": "tp", "dispatcher": "ep"}[habit] not in supports()[stack].degrees


@pytest.mark.parametrize(
    ("stack", "habit", "choice", "sentence"),
    [
        ("megatron-lm", "loss", "chunked", r"logits of the loss chunked \(chunked_loss\)"),
        ("megatron-lm", "compile", "on", r"Megatron-LM cannot express compiler on \(compile\)"),
        ("maxtext", "cuda_graphs", "on", "it has off"),
        ("axolotl", "async_checkpoint", "on", "it has off"),
        ("llama-factory", "cuda_graphs", "on", "CUDA graphs on"),
        ("torchtitan", "attention", "unfused", "it has flash2, flash3, newest"),
    ],
)
def test_what_a_stack_cannot_be_asked_for_is_refused(stack, habit, choice, sentence):
    with pytest.raises(RecipeError, match=sentence):
        written(stack, job_for(stack, habit, choice))


@pytest.mark.parametrize(("stack", "habit", "choice"), [
    c for c in CASES if rows_of(*c)[0].how == DIFFERS
])  # fmt: skip
def test_what_a_run_does_otherwise_stands_in_the_first_lines(stack, habit, choice):
    files = written(stack, job_for(stack, habit, choice))
    text = " ".join("\n".join(files.values()).replace("\n# ", " ").split())
    if stack == "accelerate":  # with DeepSpeed its file says so
        return
    assert (
        f"Not as forecast: {HABITS[habit][0]}: {rows_of(stack, habit, choice)[0].source.printed}"
        in text
    )


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("gradient_overlap,on,set", "gradient_overlapp,on,set", "no habit"),
        ("gradient_overlap,on,set", "gradient_overlap,never,set", "no choice"),
        ("gradient_overlap,on,set", "gradient_overlap,on,sets", "not how"),
        ("gradient_overlap,off,set", "gradient_overlap,on,set", "two ways"),
        ("--overlap-grad-reduce,true", "--overlap-grad-reduce,", "not how"),
        (",megatron-core 0.19.2: megatron/training/arguments.py,", ",,", "has no source"),
    ],
)
def test_a_row_that_says_nothing_is_an_error(tmp_path, old, new, reason):
    text = FLAGS_CSV.read_text()
    assert old in text
    (tmp_path / "flags.csv").write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=reason):
        load_flags(tmp_path / "flags.csv")


def test_no_other_gradient_overlap_than_the_forecasts():
    """DeepSpeed reduces after backward without ZeRO, and under ZeRO-1 in fp32."""
    refuses = target_of("deepspeed").refuses
    for sharding, fp32, why in (("ddp", False, "without ZeRO"), ("zero1", True, "under ZeRO-1")):
        job = recipe_job(
            layout=replace(FSDP, sharding=sharding), habits=Habits(reduces_in_fp32=fp32)
        )
        assert why in refuses(job)
        late = Habits(reduces_in_fp32=fp32, overlaps_gradients=False)
        assert refuses(replace(job, habits=late)) == ""
    assert refuses(recipe_job(layout=replace(FSDP, sharding="zero1"),
                              habits=Habits(reduces_in_fp32=False))) == ""  # fmt: skip
