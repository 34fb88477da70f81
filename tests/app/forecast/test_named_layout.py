"""A layout that somebody names: what it leaves out, and what cannot be."""

from __future__ import annotations

import pytest

from app.explain import explained
from app.forecast import answer as forecast_answer
from app.forecast.fixed_layout import fixed_fields
from app.scenario.layout import KEYS, layout_text, parse_layout
from core.errors import ScenarioError
from core.scenario import Scenario
from core.search.plan import Layout

QUICK = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "64", "num_tokens": "1e12",
         "stack": "generic"}  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    """The best plan on 64 H100."""
    scenario = Scenario.parse(QUICK)
    return forecast_answer.answer(scenario, top=3).plans[0]


def named(plan, text, **changes):
    return explained.named(plan.job, text, like=plan.layout, **changes)


@pytest.mark.parametrize(
    "text",
    [
        "tp=8",
        "tp=2,sharding=zero1",
        "tp=4,pp=2",
        "sharding=hsdp",
        "recompute=full,micro_batch_size=4",
        "tp=8,pp=4,virtual_stages=2",
        "dp=64",
        "tp=2,dp=32,num_microbatches=16",
        "tp=1,pp=1,cp=1,sharding=fsdp2,num_microbatches=8",
        "dp=16,sharding=zero1",
        "tp=2,dp=16",
        "reshard_after_forward=0,sharding=fsdp2",
    ],
)
def test_what_is_said_stands_and_the_rest_is_as_estimate_finds_it(plan, text):
    found = named(plan, text)
    said = parse_layout(text)
    for key, value in said.items():
        if key == "dp":
            assert found.layout.dp_replicate * found.layout.dp_shard == value
        else:
            assert str(int(v) if isinstance(v := getattr(found.layout, key), bool) else v) == str(
                value
            )
    assert found.verdict == "fits"
    if not {*said} & {"dp", "num_microbatches", "reshard_after_forward"}:
        best = forecast_answer.answer(Scenario.parse({**QUICK, **fixed_fields(said)}), top=1).plans[
            0
        ]
        assert found.layout == best.layout
        assert found.figures.step_s == pytest.approx(sum(best.step_s.values()))


def test_the_best_plans_own_layout_is_itself(plan):
    found = named(plan, layout_text(plan.layout))
    assert found.layout == plan.layout
    assert found.figures.step_s == pytest.approx(sum(plan.step_s.values()))
    assert found.figures.usd == pytest.approx(plan.usd.p50)
    assert found.figures.memory_bytes == pytest.approx(dict(plan.memory_bytes))
    assert found.figures.probability_oom == pytest.approx(plan.probability_oom)


def test_a_group_of_shards_that_the_search_never_tries_is_taken_as_said(plan):
    found = named(plan, "sharding=hsdp,tp=1,dp_replicate=2,dp_shard=32")
    assert (found.layout.dp_replicate, found.layout.dp_shard) == (2, 32)
    assert found.verdict == "fits"


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("tp=3", {"gpu_count", "heads", "kv_heads", "ffn"}),
        ("pp=64", {"layers"}),
        ("ep=8", {"no_experts"}),
        ("tp=4,pp=2,sharding=zero3", {"pipeline_sharding"}),
        ("micro_batch_size=7", {"batch"}),
        ("tp=131072", {"gpu_count"}),
        ("virtual_stages=2,pp=1", {"no_pipeline"}),
    ],
)
def test_what_cannot_be_is_told_rule_by_rule(plan, text, reasons):
    found = named(plan, text)
    assert found.verdict == "illegal"
    assert found.figures is None
    assert reasons <= {o.reason for o in found.obstacles}
    assert found.text == text


def test_a_missing_degree_is_not_a_reason_of_its_own(plan):
    """What is completed breaks as few rules as it can."""
    assert [o.reason for o in named(plan, "ep=8").obstacles] == ["no_experts"]
    assert {o.reason for o in named(plan, "tp=5").obstacles} == {
        "gpu_count", "heads", "kv_heads", "ffn",
    }  # fmt: skip


def test_too_little_memory_is_told_with_what_fits(plan):
    scenario = Scenario.parse({**QUICK, "model": "llama3.1-70b"})
    plan = forecast_answer.answer(scenario, top=1).plans[0]
    found = explained.named(plan.job, "tp=1,pp=1,sharding=ddp", like=plan.layout)
    assert found.verdict == "does_not_fit"
    assert found.shortage.over_bytes > 0
    assert found.changes.ranked
    assert all(c.need_bytes < c.capacity_bytes for c in found.changes.ranked)
    larger = {c.accelerator for c in found.changes.ranked} - {"H100-80GB-SXM"}
    assert larger


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("fast please", "no KEY=VALUE"),
        ("tp=eight", "whole number"),
        ("tp=0", "whole number"),
        ("tp=-1", "whole number"),
        ("tp=999999999999", "whole number"),
        ("tp=2,tp=4", "twice"),
        ("sharding=zero9", "not one of"),
        ("<script>alert(1)</script>=1", "no key"),
        ("=,=,=", "no key"),
        ("tp=8" * 200, "at most"),
        ("dp=7", "7 GPUs"),
        ("tp=8,dp=16", "128 GPUs"),
        ("tp=1,pp=1,cp=1,dp_replicate=2,dp_shard=2", "GPUs"),
        ("dp=3,dp_shard=2", "dp"),
        ("num_microbatches=7", "does not follow"),
        ("tp=2,micro_batch_size=1,num_microbatches=3", "does not follow"),
        ("tp=\N{FULLWIDTH DIGIT EIGHT}", "whole number"),
    ],
)
def test_what_is_no_layout_is_one_sentence(plan, text, says):
    with pytest.raises(ScenarioError) as e:
        named(plan, text)
    sentence = str(e.value)
    assert says in sentence
    assert "--" not in sentence
    assert "\n" not in sentence
    assert len(sentence) < 500


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", ["1", "2", "131072", "none", "zero3", "ring", "naive"])
def test_no_single_key_breaks_anything(plan, key, value):
    try:
        found = named(plan, f"{key}={value}", most=1)
    except ScenarioError:
        return
    assert found.verdict in ("fits", "does_not_fit", "illegal")
    assert isinstance(found.layout, Layout)
