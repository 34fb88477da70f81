"""A varied job is evaluated as the answer does it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.forecast.answer import answer
from app.forecast.vary import vary
from core.scenario import Scenario

JOB = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "64", "num_tokens": "1e12"}
SCENARIOS = (
    JOB,
    {**JOB, "model": "mixtral-8x7b", "num_gpus": "128"},
    {**JOB, "purchase": "spot", "deadline_days": "30"},
    {**JOB, "model": "llama3.1-70b", "num_gpus": "8", "task": "sft"},
    {**JOB, "stack": "torchtitan", "anchor_tokens_per_s_per_gpu": "7000", "anchor_num_gpus": "64",
     "anchor_layout": "tp=2,sharding=zero1"},
    {"gpu": "TPU-v5p", "num_gpus": "64"},
)  # fmt: skip


def best(given):
    return answer(Scenario.parse(given), top=1).plans[0]


@pytest.mark.parametrize("given", SCENARIOS, ids=lambda s: ",".join(map(str, s.values())))
def test_a_job_that_is_not_varied_has_its_plan(given):
    plan = best(given)
    same = vary(plan.job)
    shown = {"rank": 1, "frontier": plan.frontier, "against": plan.against}
    assert same.nearby.moved_log == pytest.approx(plan.nearby.moved_log, abs=1e-9)
    shown |= {"chosen_correction": plan.chosen_correction, "nearby": plan.nearby}
    assert replace(same, **shown) == plan
    fixed = vary(plan.job, layout=plan.layout)
    assert fixed.layout == plan.layout
    assert fixed.tokens_per_s == plan.tokens_per_s
    assert fixed.cost.total == plan.cost.total


def test_another_count_machine_and_scenario_is_the_answer_there():
    plan = best(JOB)
    for change in ({"num_gpus": "128"}, {"seq_len": "4096"}):
        fixed = {"stack": plan.stack, "cuda_graphs": str(int(plan.job.scenario.cuda_graphs))}
        there = best({**JOB, **fixed, **change})
        if "num_gpus" in change:
            other = vary(plan.job, num_gpus=128)
        else:
            other = vary(plan.job, scenario=plan.job.scenario.model_copy(update={"seq_len": 4096}))
        assert other.layout == there.layout
        assert other.usd == there.usd
    dear = best({**JOB, "gpu": "B200-180GB"})
    other = vary(plan.job, machine=dear.job.machine)
    assert other.offer == dear.offer


def test_a_layout_that_does_not_fit_has_no_plan():
    plan = best({**JOB, "model": "llama3.1-70b"})
    alone = replace(plan.layout, tp=1, pp=1, cp=1, sharding="ddp", recompute="none")
    assert vary(plan.job, layout=alone) is None
