"""hardware/stack_habits.csv: what a software, its stack or its family does."""

import pytest

from core.time.software import decimal_year
from hardware.efficiency import stack_of
from hardware.habits.unnamed import built_on, software_of
from hardware.stack_support import habit

NOW = decimal_year("2026-11")


def test_a_software_has_its_own_habits_before_those_of_its_stack() -> None:
    forge, olmo = built_on("kempnerforge"), built_on("OLMo-core")
    assert forge is not None
    assert olmo is not None
    assert forge.name == olmo.name == "torchtitan"
    assert habit(forge, "loss_kernel", NOW) == "standard"
    assert habit(olmo, "loss_kernel", NOW) == ""
    assert habit(olmo, "compiled_loss", NOW) == "1"  # of torchtitan


@pytest.mark.parametrize("task", ["lora", "qlora", "sft", "pretrain"])
def test_a_distributed_optimizer_is_megatron_s_with_adapters_too(task: str) -> None:
    run = {"vendor": "nvidia", "task": task, "divided": False}
    assert software_of("", sharding="zero1", **run).stack.family == "megatron"
    whole = software_of("", sharding="ddp", **run).stack.family
    assert (whole == "transformers") is (task != "pretrain")


@pytest.mark.parametrize(
    ("name", "like"),
    [("Megatron-Core 0.13", "megatron-lm"), ("FlagScale", "megatron-lm"), ("JAX", "maxtext"),
     ("JAX-Toolbox", "maxtext"), ("InternLM", "internevo"), ("Hugging Face", "accelerate"),
     ("torch_xla", "maxtext"), ("lit-gpt", "litgpt"), ("PyTorch/XLA", "maxtext")],
)  # fmt: skip
def test_which_stack_a_software_is_built_on(name: str, like: str) -> None:
    found = stack_of(name) or built_on(name)
    assert found is not None
    assert found.name == like


def test_software_built_on_no_stack_has_its_habits_and_generic_fractions() -> None:
    run = {"vendor": "nvidia", "task": "pretrain", "sharding": "zero2", "divided": True}
    found = software_of("PaddleNLP", **run)
    assert found.profile == found.stack.name == "generic"
    for quantity in ("splits_projections", "reduces_to_owners", "broadcasts_weights"):
        assert habit(found.stack, quantity, NOW) == "1"
        assert habit(software_of("", **run).stack, quantity, NOW) == ""
    for quantity in ("sequence_parallel", "gradient_overlap", "weights_overlap"):
        assert habit(found.stack, quantity, NOW) == "0"
