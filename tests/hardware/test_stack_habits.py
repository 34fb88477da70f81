"""hardware/stack_habits.csv: what a software, its stack or its family does."""

import pytest

from core.time.software import decimal_year
from hardware.efficiency import stack_of, stacks
from hardware.habits.built_on import built_on
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


def test_a_compiled_model_has_a_compiled_loss_only_where_a_source_says_so() -> None:
    compiled = {n for n, s in stacks().items() if habit(s, "compiled_loss", NOW) == "1"}
    assert compiled == {"torchtitan", "torchtune"}
    assert habit(stacks()["generic"], "compiled_loss", NOW) == ""


@pytest.mark.parametrize(
    ("name", "whole"),
    [("accelerate", True), ("trl", True), ("axolotl", True), ("litgpt", True), ("lingua", True),
     ("torchtitan", False), ("torchtune", False), ("llm-foundry", False), ("deepspeed", False),
     ("OLMo-core", False), ("generic", False)],
)  # fmt: skip
def test_which_software_sums_whole_gradients(name: str, whole: bool) -> None:
    stack = stacks().get(name) or built_on(name)
    assert stack is not None
    assert (habit(stack, "gradient_sums", NOW) == "whole") is whole


def test_data_parallelism_reduces_main_gradients_in_stacks_built_on_megatron() -> None:
    """Their weights have 16 bits; PyTorch's DDP has the gradients of fp32 weights."""
    as_held = {n for n, s in stacks().items() if habit(s, "reduces_as_held", NOW) == "1"}
    assert as_held == {n for n, s in stacks().items() if s.family == "megatron"}


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


def test_megatron_s_recipes_permute_tokens_by_kernels_since_transformer_engine_has_them() -> None:
    for stack in (stacks()["megatron-bridge"], stacks()["nemo"]):
        since = [
            habit(stack, "permutes_by_kernel", decimal_year(d)) for d in ("2025-04", "2025-05")
        ]
        assert since == ["", "1"]
    assert habit(stacks()["torchtitan"], "permutes_by_kernel", NOW) == ""


def test_transformers_reads_biases_of_experts_by_index_since_its_version_5() -> None:
    trl, halo = stacks()["trl"], built_on("halo")
    since = [habit(trl, "indexes_expert_biases", decimal_year(d)) for d in ("2025-12", "2026-01")]
    assert since == ["", "1"]
    assert halo is not None
    assert habit(halo, "indexes_expert_biases", NOW) == ""  # a matmul in its place


@pytest.mark.parametrize("name", ["trl", "axolotl", "ms-swift", "transformers", "hf+deepspeed"])
def test_transformers_runs_experts_one_after_another_until_its_version_5(name: str) -> None:
    stack = stacks().get(name) or built_on(name)
    assert stack is not None
    looped = [habit(stack, "loops_experts", decimal_year(d)) for d in ("2024-06", "2026-01")]
    assert looped == ["1", "0"]
    assert habit(stacks()["megatron-lm"], "loops_experts", decimal_year("2024-06")) == ""


@pytest.mark.parametrize(
    ("name", "date", "kind"),
    [("torchtitan", "2025-07", ""), ("torchtitan", "2025-12", "1"), ("torchtitan", "2026-05", "0"),
     ("halo", "2026-09", "2"), ("megatron-bridge", "2026-09", "")],
)  # fmt: skip
def test_whose_ranks_route_the_tokens_of_their_whole_group(name: str, date: str, kind: str) -> None:
    stack = stacks().get(name) or built_on(name)
    assert stack is not None
    assert habit(stack, "routes_group", decimal_year(date)) == kind


def test_a_compiled_step_without_a_capacity_has_room_for_the_worst_case() -> None:
    assert habit(stacks()["maxtext"], "expert_buffers", NOW) == "worst"
    assert habit(stacks()["megatron-bridge"], "expert_buffers", NOW) == ""


@pytest.mark.parametrize(
    ("date", "sends"), [("2026-03", ""), ("2026-04", "hybridep"), ("2026-11", "hybridep")]
)
def test_recipes_on_megatron_core_name_a_dispatcher_that_sends_once(date: str, sends: str) -> None:
    assert habit(stacks()["megatron-bridge"], "moe_dispatcher", decimal_year(date)) == sends
    assert habit(stacks()["megatron-lm"], "moe_dispatcher", decimal_year(date)) == "alltoall"


def test_what_is_built_on_megatron_core_adds_biases_of_experts_as_it_does() -> None:
    assert habit(stacks()["megatron-bridge"], "splits_expert_biases", NOW) == "1"
    assert habit(stacks()["torchtitan"], "splits_expert_biases", NOW) == ""


def test_software_built_on_no_stack_has_its_habits_and_generic_fractions() -> None:
    stack = built_on("PaddleNLP")
    assert stack is not None
    assert stack.name == "generic"
    for quantity in ("splits_projections", "reduces_to_owners", "broadcasts_weights"):
        assert habit(stack, quantity, NOW) == "1"
        assert habit(stacks()["generic"], quantity, NOW) == ""
    for quantity in ("sequence_parallel", "gradient_overlap", "weights_overlap"):
        assert habit(stack, quantity, NOW) == "0"


@pytest.mark.parametrize(
    ("name", "fuses"),
    [("megatron-lm", True), ("nemo", True), ("maxtext", True), ("torchtitan", False),
     ("internevo", False), ("megatron-deepspeed", False), ("gpt-neox", False), ("nanotron", False)],
)  # fmt: skip
def test_whose_matmuls_add_to_the_sum_of_gradients(name: str, fuses: bool) -> None:
    assert (habit(stacks()[name], "fuses_gradient_sums", NOW) == "1") is fuses


def test_torch_xla_runs_the_first_attention_kernel_of_tpus() -> None:
    for name in ("torchprime", "torch_xla"):
        found = built_on(name)
        assert found is not None
        assert habit(found, "attention_kernel", NOW) == "pallas_flash"
    assert habit(stacks()["maxtext"], "attention_kernel", NOW) == ""
