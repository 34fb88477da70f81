"""What a chosen stack leaves to the search, and the sentences on what it cannot do."""

import pytest

from app.forecast.answer import answer
from app.forecast.resolve import resolve, resolve_strict
from app.forecast.stack_limits import obstacle, targets_of
from app.launch.job import job_of
from app.plan.decided import recommended_sentence
from app.plan.words import answer_sentence
from core.errors import ScenarioError
from core.scenario import Scenario
from hardware.stack_support import supports
from runners.recipes.registry import target

JOB = {"model": "llama3.1-8b", "gpu": "H100-80GB-SXM", "num_gpus": "64", "num_tokens": "10B"}


def asked(**fields: str) -> Scenario:
    return resolve_strict(Scenario.parse({**JOB, **fields}))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"stack": "megatron-lm", "task": "qlora"},
         "megatron-lm 0.19.2 has no task qlora: torchtune, deepspeed, accelerate, llama-factory, "
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
    assert scenario.stack == "auto"
    assert any("megatron-lm 0.19.2 has no task qlora" in n for n in notes)


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


@pytest.mark.parametrize(
    ("stack", "pp", "takes"),
    [("megatron-lm", "32", True), ("torchtitan", "16", True), ("torchtitan", "32", False)],
)
def test_61_layers_are_placed_on_stages_as_the_stack_divides_them(
    stack: str, pp: str, takes: bool
) -> None:
    job = {"model": "deepseek-v3", "num_gpus": "2048", "global_batch_size": "4096", "pp": pp}
    assert bool(answer(asked(stack=stack, **job)).plans) == takes


def test_accelerators_that_a_stack_does_not_run_on_are_counted() -> None:
    found = answer(asked(stack="torchtitan", gpu="TPU-v5p", num_gpus="256"))
    assert not found.plans
    assert {e.reason for e in found.excluded} >= {"stack"}


def test_of_the_stacks_that_take_a_job_the_fastest_is_planned_on_each_machine() -> None:
    given = {"model": "llama3.1-70b", "gpu": "H100-80GB-SXM,TPU-v5p", "num_gpus": "64"}
    one_by_one = {
        name: {p.id: p for p in answer(asked(**given, stack=name), top=500).plans}
        for name in supports()
        if not obstacle(asked(**given), name)
    }
    found = answer(asked(**given), top=500)
    assert {p.stack for p in found.plans} == {"megatron-bridge", "maxtext"}
    assert {p.id for p in found.plans} == {i for plans in one_by_one.values() for i in plans}
    for plan in found.plans:
        others = [plans[plan.id] for plans in one_by_one.values() if plan.id in plans]
        shown = [sum(p.step_s.values()) for p in (plan, *others)]  # after what measured runs say
        assert shown[0] == pytest.approx(min(shown))
        assert plan.job.scenario.stack == plan.stack


def test_fp8_is_searched_only_where_it_is_allowed_and_won_by_those_that_have_it() -> None:
    given = {"model": "llama3.1-70b", "gpu": "A100-80GB-SXM,H100-80GB-SXM", "cloud": "aws"}
    plain, both = (answer(asked(**given, allow_fp8=word), top=500) for word in ("0", "1"))
    assert {p.precision for p in plain.plans} == {"bf16"}
    found = {(p.offer.accelerator, p.precision) for p in both.plans}
    assert found == {("A100-80GB-SXM", "bf16"), ("H100-80GB-SXM", "fp8")}
    of_fp8 = {p.id: p for p in answer(asked(**given, precision="fp8"), top=500).plans}
    for plan in both.plans:
        if plan.precision == "fp8":
            assert plan.step_s == of_fp8[plan.id].step_s


def test_what_the_scenario_leaves_open_is_compiled_or_a_graph_where_the_stack_can() -> None:
    """As JSON and files name it: with the same choice asked for, the plan has the same step."""
    small = {
        "model": "llama3.2-1b",
        "tp": "8",
        "micro_batch_size": "1",
        "seq_len": "1024",
    }  # which waits for launches
    for stack, given in (("torchtitan", {}), ("megatron-lm", small)):
        (best, *_) = answer(asked(**given, stack=stack)).plans
        assert (best.compiled, best.cuda_graphs) == (stack == "torchtitan", stack == "megatron-lm")
        job = job_of(asked(**given, stack=stack), best)
        assert (job.compiled, job.habits.cuda_graphs) == (best.compiled, best.cuda_graphs)
        words = {"compile": str(int(job.compiled)), "cuda_graphs": str(int(job.habits.cuda_graphs))}
        if stack == "megatron-lm":
            del words["compile"]
        (same, *_) = answer(asked(**given, stack=stack, **words)).plans
        (without, *_) = answer(asked(**given, stack=stack, compile="0", cuda_graphs="0")).plans
        assert sum(same.step_s.values()) == sum(best.step_s.values())
        assert sum(without.step_s.values()) > sum(best.step_s.values())


def test_stacks_that_do_not_take_the_job_are_counted_each_with_its_reason() -> None:
    (left_out,) = (e for e in answer(asked(tp="2", pp="2")).excluded if e.reason == "stacks")
    assert left_out.count == 6
    assert "torchtune 0.6.1: no task pretrain; deepspeed" in left_out.sentence
    assert "axolotl 0.19.0: no pipeline parallelism (pp)" in left_out.sentence
    named = answer(asked(tp="2", pp="2", stack="megatron-lm")).excluded
    assert "stacks" not in {e.reason for e in named}


@pytest.mark.parametrize(
    ("fields", "gpu", "stack"),
    [
        ({"cp": "2", "ep": "1", "pp": "2", "sharding": "fsdp2"}, "MI300X", "torchtitan"),
        ({}, "TPU-v6e", "maxtext"),
        ({}, "Trainium2", "generic"),  # no stack with a launch file runs there, and it is named
        ({"schedule": "zero_bubble", "pp": "2"}, "H100-80GB-SXM", "generic"),
    ],
)
def test_a_job_that_few_stacks_take_names_one_that_does(
    fields: dict[str, str], gpu: str, stack: str
) -> None:
    plan = answer(asked(**fields, gpu=gpu, num_gpus="32")).plans[0]
    assert plan.stack == stack
    assert ("No launch file" in " ".join(plan.assumptions)) == (stack == "generic")


@pytest.mark.parametrize(
    "fields",
    [
        {"num_gpus": "1,8,64"},
        {"model": "mixtral-8x7b"},
        {"num_gpus": "1,8", "task": "lora", "seq_len": "2048"},
        {"num_gpus": "1,8", "task": "qlora", "model": "llama3.1-70b", "seq_len": "2048"},
        {"num_gpus": "8", "task": "sft"},
        {"seq_len": "128k", "global_batch_size": "64"},
    ],
)
def test_a_plan_says_what_its_launch_file_refuses_and_a_searched_one_is_taken(
    fields: dict[str, str],
) -> None:
    scenario = resolve_strict(Scenario.parse({**JOB, "gpu": "H100-80GB-SXM,MI300X", **fields}))
    plans = {(p.stack, p.layout): p for p in answer(scenario, top=500).plans}.values()
    assert plans
    for plan in plans:
        job = job_of(scenario, plan)
        reasons = [target(name).refuses(job) for name in targets_of(plan.stack)]
        assert plan.no_launch == ("" if "" in reasons else reasons[0])
        assert not plan.no_launch, plan.layout


def test_a_plan_that_its_launch_file_refuses_is_not_recommended_while_another_one_stands() -> None:
    tune = {"task": "lora", "num_tokens": "5M", "global_batch_size": "16"}
    few = asked(
        **tune, seq_len="8192", gpu="A10G", num_gpus="1,8", max_price_age_days="0",
        stack="llama-factory",
    )  # fmt: skip
    found = answer(few, top=500)
    refused = [p for p in found.plans if p.no_launch]
    assert {p.num_gpus for p in refused} == {1}
    assert "on one GPU" in refused[0].no_launch
    assert refused[0].expected_usd < found.plans[0].expected_usd  # type: ignore[operator]
    assert "has no launch file (llama-factory)" in recommended_sentence(few, found)


def test_no_particular_stack_is_choosable_and_says_that_it_has_no_launch_file() -> None:
    scenario = asked(stack="generic")
    found = answer(scenario)
    (gate,) = (g for g in found.recommendation.gates if g.name == "launch")  # type: ignore[union-attr]
    assert (gate.num_passing, gate.is_empty) == (0, True)
    assert (
        "No launch file takes such a plan: generic is no particular stack."
        in recommended_sentence(scenario, found)
    )
    assert "stack generic, no launch file, " in answer_sentence(scenario, found)
