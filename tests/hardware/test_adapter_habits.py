"""How stacks apply adapters, norms and rotation."""

from dataclasses import replace
from functools import partial

import pytest

from core.model.adapter_passes import KINDS
from hardware.efficiency import stacks
from hardware.habits.adapters import adapter_fields, runs_eagerly, targets_of


def kind(stack, task, year, **given):
    return KINDS[int(adapter_fields(stacks()[stack], task, year, **given)["adapter_kind"])]


@pytest.mark.parametrize("task", ["pretrain", "sft"])
def test_nothing_is_said_without_adapters(task):
    assert adapter_fields(stacks()["trl"], task, 2026.0) == {}


@pytest.mark.parametrize("stack", ["trl", "llama-factory", "axolotl", "ms-swift", "accelerate"])
def test_adapters_of_peft_are_fp32_from_2024_05_on(stack):
    assert kind(stack, "lora", 2024.2) == "own"
    assert kind(stack, "lora", 2024.5) == "fp32"


def test_layers_with_a_packed_base_cast_nothing():
    assert kind("trl", "qlora", 2025.0) == "packed"
    assert kind("torchtune", "qlora", 2025.0) == "own"


def test_targets_are_said_or_the_default_of_the_stack():
    nemo, trl = stacks()["nemo"], stacks()["trl"]
    assert targets_of(nemo, 2024.5, "") == "qkv"
    assert targets_of(nemo, 2025.0, "") == targets_of(trl, 2025.0, "unknown") == "all"
    assert targets_of(nemo, 2025.0, "attention") == "attention"


@pytest.mark.parametrize("task", ["lora", "qlora"])
def test_unsloth_fuses_its_adapters_and_its_norms(task):
    found = adapter_fields(stacks()["unsloth"], task, 2025.0)
    assert KINDS[int(found["adapter_kind"])] == "fused"
    assert not found["adapter_dropout"]
    assert not runs_eagerly(stacks()["unsloth"], 2025.0, tunes=True)


@pytest.mark.parametrize("stack", ["nemo", "megatron-bridge"])
def test_megatron_has_one_adapter_for_queries_keys_and_values(stack):
    found = adapter_fields(stacks()[stack], "lora", 2025.0)
    assert found["joined_adapters"]
    assert kind(stack, "lora", 2025.0) == "own"


@pytest.mark.parametrize("stack", ["maxtext", "optimum-habana"])
def test_of_other_stacks_no_passes_are_known(stack):
    assert kind(stack, "lora", 2025.0) == "none"


@pytest.mark.parametrize(
    ("said", "loss", "eager"),
    [
        ("", "", True),
        ("", "standard", True),
        ("", "chunked", True),
        ("", "fused_linear", False),
        ("eager", "fused_linear", True),
        ("fused", "", False),
    ],
)
def test_norms_of_transformers_are_eager_unless_kernels_are_asked_for(said, loss, eager):
    assert runs_eagerly(stacks()["trl"], 2025.0, tunes=True, said=said, loss=loss) == eager
    assert not runs_eagerly(stacks()["megatron-lm"], 2025.0, tunes=True, loss=loss)


def test_a_stack_that_nobody_names_pretrains_as_eagerly_as_the_mean_of_all():
    unnamed = replace(stacks()["trl"], name="generic")
    assert not runs_eagerly(unnamed, 2025.0, tunes=False)
    assert runs_eagerly(unnamed, 2025.0, tunes=False, said="eager")


@pytest.mark.parametrize("tunes", [True, False])
def test_unknown_software_tunes_as_transformers_does(tunes):
    assert runs_eagerly(stacks()["generic"], 2025.0, tunes=tunes) == tunes
    assert not runs_eagerly(stacks()["generic"], 2025.0, tunes=tunes, said="fused")


def test_software_with_a_name_runs_its_own_kernels():
    of = partial(runs_eagerly, year=2025.0, tunes=True)
    assert of(stacks()["trl"])
    assert of(stacks()["torchtune"])  # modules of its own, operator by operator
    assert not of(stacks()["torchtitan"])
    assert not of(stacks()["unsloth"])
