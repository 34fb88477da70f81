"""What a chosen stack leaves to the search, and the sentences on what it cannot do."""

import pytest

from app.forecast.answer import answer
from app.forecast.resolve import resolve, resolve_strict
from core.errors import ScenarioError
from core.scenario import Scenario

JOB = {"model": "llama3.1-8b", "gpu": "H100-80GB-SXM", "num_gpus": "64", "num_tokens": "10B"}


def asked(**fields: str) -> Scenario:
    return resolve_strict(Scenario.parse({**JOB, **fields}))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"stack": "megatron-lm", "task": "qlora"},
         "megatron-lm 0.16.1 has no task qlora: torchtune, deepspeed, accelerate, llama-factory, "
         "axolotl have."),
        ({"stack": "llama-factory", "task": "sft", "cp": "4"},
         "llama-factory 0.9.5 has no context parallelism"),
        ({"stack": "torchtitan", "precision": "nvfp4"}, "torchtitan 0.3.0 has no precision nvfp4."),
    ],
)  # fmt: skip
def test_what_a_stack_cannot_do_is_one_sentence(fields: dict[str, str], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence.replace("(", r"\(")):
        asked(**fields)


def test_a_link_of_what_a_stack_cannot_do_opens_without_the_stack() -> None:
    scenario, notes = resolve(Scenario.parse({**JOB, "stack": "megatron-lm", "task": "qlora"}))
    assert scenario.stack == "generic"
    assert any("megatron-lm 0.16.1 has no task qlora" in n for n in notes)


@pytest.mark.parametrize(
    ("stack", "task", "lacking"),
    [("torchtune", "sft", ("tp", "pp", "cp")), ("deepspeed", "pretrain", ("pp", "cp"))],
)
def test_plans_use_no_degree_that_the_stack_lacks(
    stack: str, task: str, lacking: tuple[str, ...]
) -> None:
    plans = answer(asked(stack=stack, task=task)).plans
    assert plans
    assert all(getattr(p.layout, name) == 1 for p in plans for name in lacking)


@pytest.mark.parametrize(("stack", "takes"), [("megatron-lm", True), ("torchtitan", False)])
def test_61_layers_are_placed_on_16_stages_where_the_stack_takes_a_list(
    stack: str, takes: bool
) -> None:
    job = {"model": "deepseek-v3", "num_gpus": "2048", "global_batch_size": "4096", "pp": "16"}
    assert bool(answer(asked(stack=stack, **job)).plans) == takes


def test_accelerators_that_a_stack_does_not_run_on_are_counted() -> None:
    found = answer(asked(stack="torchtitan", gpu="TPU-v5p", num_gpus="256"))
    assert not found.plans
    assert {e.reason for e in found.excluded} >= {"stack"}
