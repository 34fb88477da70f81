"""What a stack does by habit is in its plans as in its published runs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from app.accuracy.scenario_of_row import scenario_of_row
from app.forecast import answer, resolve
from app.forecast.training import habits_of, workload_of
from app.scenario.model import model_of
from core.layout.workload import SHARE
from core.scenario import Scenario
from hardware.efficiency import stacks
from hardware.habits.workload_fields import workload_fields
from hardware.measured import MODELS_CSV, RUNS_CSV, read_models, read_runs


def as_number(value: object) -> float:
    """NaN equals nothing; -1 stands for it here."""
    number = float(value)  # type: ignore[arg-type]
    return -1.0 if math.isnan(number) else number


@pytest.mark.parametrize("name", stacks())
def test_a_plan_and_a_run_of_a_stack_have_the_same_habits(name: str) -> None:
    inputs, models = read_runs(RUNS_CSV).inputs, read_models(MODELS_CSV).facts
    row = next(i for i in range(len(inputs)) if inputs.software_date[i])
    of_stack = replace(inputs, framework=np.full(len(inputs), name))
    run = scenario_of_row(of_stack, row, models).scenario
    assert run.stack == name
    asked = Scenario.parse({"stack": name, "software_date": run.software_date})
    plan, of_run = (workload_of(s, model_of(s)) for s in (asked, run))
    fields_of_habits = set(workload_fields(stacks()[name], 2025.5)) - {"reduces_as_held"}
    for field in fields_of_habits - {"logit_bytes", "routes_by_masks", "loops_experts"}:
        assert as_number(getattr(plan, field)) == as_number(getattr(of_run, field)), field


def test_habits_are_looked_up_by_the_date() -> None:
    """LLaMA-Factory's labels are shifted, its logits not copied, since 2025-02 (transformers pull
    request 35646); nanotron's plain loss passes over each logit in 52 bytes."""
    factory, nanotron = stacks()["llama-factory"], stacks()["nanotron"]
    assert workload_fields(factory, 2025.5)["logit_bytes"] == 12
    assert math.isnan(workload_fields(factory, 2024.5)["logit_bytes"])
    assert workload_fields(nanotron, 2025.5)["loss_bytes"] == 52
    assert workload_fields(nanotron, 2025.5)["routes_group"] == SHARE


@pytest.mark.parametrize("name", ["llama-factory", "axolotl"])
def test_a_plan_holds_as_many_bytes_a_logit_as_its_stack(name: str) -> None:
    """12 bytes since 2025-02, of 8,192 tokens and 128,256 words, where no piece is cut."""
    job = {"model": "llama3.1-8b", "task": "lora", "stack": name, "gpu": "h100", "num_gpus": "8",
           "num_tokens": "1e8", "seq_len": 8192, "global_batch_size": 16, "micro_batch_size": 1,
           "recompute": "full", "sharding": "fsdp2", "tp": 1, "pp": 1,
           "chunked_loss": False}  # fmt: skip
    plan = answer.answer(resolve.resolve_strict(Scenario.parse(job)), top=1).plans[0]
    assert plan.memory_bytes["logits"] == pytest.approx(12 * 8192 * 128_256)


@pytest.mark.parametrize(
    ("model", "stack", "date", "said"),
    [("qwen3-30b-a3b", "trl", "2025-06", "the 128 experts of a layer one after another"),
     ("qwen3-30b-a3b", "trl", "2026-06", ""),
     ("llama4-scout", "trl", "2026-06", "every token by all 16 experts"),
     ("llama4-scout", "megatron-lm", "2025-06", ""),
     ("llama3.1-8b", "trl", "2025-06", "")],
)  # fmt: skip
def test_a_plan_says_when_its_stack_groups_no_experts(
    model: str, stack: str, date: str, said: str
) -> None:
    asked = Scenario.parse({"model": model, "stack": stack, "software_date": date})
    words = [w for w in habits_of(asked, "zero1", ep=1) if "experts of a layer" in w]
    assert len(words) == bool(said)
    assert all(said in w for w in words)
