"""One named layout: what it fixes, what contradicts it, what became of it."""

from __future__ import annotations

import pytest

from app.forecast.fixed_layout import FIXED, FOLLOWS, check_degrees, fixed_fields, judged
from app.scenario.layout import KEYS, parse_layout
from core.errors import ScenarioError
from core.scenario import Scenario
from core.search.plan import Exclusion
from tests.made_up import plans as made_up

JOB = Scenario(num_gpus=(64,), global_batch_size=512)


def contradiction(text):
    """What is wrong with the degrees, '' if nothing is."""
    try:
        check_degrees(parse_layout(text), JOB)
    except ScenarioError as e:
        return str(e)
    return ""


def test_every_key_of_a_layout_is_fixed_or_follows():
    assert {*FIXED, *FOLLOWS, "dp"} == set(KEYS)
    assert set(FIXED) <= set(Scenario.model_fields)


def test_a_layout_fixes_the_fields_of_the_scenario():
    text = "tp=8,pp=4,cp=1,ep=1,etp=1,dp_shard=2,sharding=zero1,virtual_stages=2"
    scenario = Scenario.parse(fixed_fields(parse_layout(text)))
    assert scenario == Scenario(
        tp=8, pp=4, cp=1, ep=1, etp=1, sharding=("zero1",), virtual_stages=2
    )


@pytest.mark.parametrize(
    "text",
    [
        "tp=8",
        "tp=8,pp=8",
        "dp=64",
        "dp=16,dp_shard=8",
        "tp=8,pp=1,cp=1,dp=8",
        "tp=8,pp=2,cp=1,dp_replicate=2,dp_shard=2",
        "tp=8,pp=2,cp=2,dp_replicate=1,dp_shard=2,micro_batch_size=4,num_microbatches=64",
        "ep=64",  # experts are spread over the other ranks
    ],
)
def test_degrees_that_go_together(text):
    assert contradiction(text) == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tp=48", "over 48 GPUs (tp=48), and --num-gpus is 64."),
        ("tp=8,pp=2,dp=8", "over 128 GPUs (tp=8 x pp=2 x data parallel=8)"),
        ("tp=8,pp=2,dp=8", "--num-gpus is 64; data parallel would be 4."),
        ("tp=8,pp=2,cp=1,dp=2", "over 32 GPUs"),
        ("tp=128", "over 128 GPUs"),
        ("dp=16,dp_replicate=2,dp_shard=4", "dp=16 in the layout is dp_replicate x dp_shard"),
        ("dp=16,dp_shard=32", "which the layout gives as 32"),
        (
            "tp=8,pp=1,cp=1,dp=8,micro_batch_size=2,num_microbatches=16",
            "a global batch of 256 sequences",
        ),
    ],
)
def test_degrees_that_contradict_are_a_mistake(text, says):
    assert says in contradiction(text)


def test_a_layout_that_fits():
    found, verdict = judged(made_up.answer(made_up.plan(), num_plans=7), {"tp": 8, "dp_shard": 8})
    assert verdict.word == "fits"
    assert len(found.plans) == 1
    assert found.num_plans == 7


def test_plans_that_are_cut_otherwise_are_no_answer():
    """Eight ranks of data parallelism on made-up machines: one shards 8, one 2 x 4."""
    other = made_up.plan(layout=made_up.layout(dp_replicate=2, dp_shard=4, sharding="hsdp"))
    both = made_up.answer(made_up.plan(), other)
    found, verdict = judged(both, {"dp_replicate": 2, "dp_shard": 4})
    assert (found.plans, found.num_plans, verdict.word) == ((other,), 1, "fits")
    assert len(judged(both, {"dp": 8})[0].plans) == 2
    found, verdict = judged(made_up.answer(other), {"dp_shard": 8})
    assert (found.plans, verdict.word) == ((), "illegal")
    assert verdict.sentence.endswith("hsdp has dp_shard=4.")
    assert found.nothing_fits == verdict.sentence
    _, verdict = judged(made_up.answer(other), {"dp": 16})
    assert verdict.sentence.endswith("hsdp has dp_replicate=2, dp_shard=4.")


@pytest.mark.parametrize(
    ("reasons", "word"),
    [
        (["purchase", "memory", "candidate_memory", "candidate_heads"], "does_not_fit"),
        (["purchase", "layout", "candidate_heads"], "illegal"),
        (["purchase"], "no_offer"),
        ([], "no_offer"),
    ],
)
def test_the_verdict_without_a_plan(reasons, word):
    excluded = tuple(Exclusion(reason=r, count=1, sentence=f"1 {r}.") for r in reasons)
    none = made_up.answer(excluded=excluded, nothing_fits="No plan: the rule and what to change.")
    found, verdict = judged(none, {"tp": 8})
    assert verdict.word == word
    assert verdict.sentence == found.nothing_fits == "No plan: the rule and what to change."
