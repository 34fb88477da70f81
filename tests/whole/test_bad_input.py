"""What no stack can run is a sentence that names the rule it breaks, through the whole answer."""

import re

import pytest

from app.forecast import answer as forecast_answer
from app.forecast import resolve
from core.scenario import Scenario

JOB = {"gpu": "h100", "num_gpus": "16"}


def answer(**fields):
    return forecast_answer.answer(resolve.resolve_strict(Scenario.parse({**JOB, **fields})), top=1)


# What is asked for, the words that name the rule, and the nearest legal value where it is checked.
REFUSED = [
    ({"tp": 3}, "does not divide the number of GPUs", "tp=[24]"),
    ({"pp": 64}, "does not divide the number of GPUs", "pp=16"),
    ({"tp": 16, "model": "qwen2.5-0.5b"}, "attention heads"),  # 14 heads
    ({"tp": 8, "pp": 1, "model": "qwen2.5-14b"}, None),  # 40 heads, 8 KV heads
    ({"cp": 16, "tp": 1, "seq_len": 8200}, "does not divide the sequence"),
    (
        {"cp": 16, "tp": 4, "num_gpus": "64", "context_parallel": "ulysses", "seq_len": "128k",
         "global_batch_size": 64},
        "Ulysses", "tp=2|cp=8",
    ),
    (
        {"cp": 16, "tp": 2, "num_gpus": "64", "context_parallel": "ulysses", "seq_len": "128k",
         "global_batch_size": 64},
        None,
    ),
    ({"pp": 16, "virtual_stages": 2, "global_batch_size": 8}, "nterleaving needs"),
    ({"pp": 2, "virtual_stages": 4, "schedule": "interleaved"}, None),
    ({"virtual_stages": 4, "schedule": "1f1b"},
     "irtual stages belong to the interleaved schedule", "virtual_stages=1"),
    ({"pp": 1, "virtual_stages": 4}, "irtual stages need a pipeline"),
    ({"pp": 1, "virtual_stages": 2}, "irtual stages need a pipeline", "pp=2"),
    ({"cp": 5}, "does not divide the number of GPUs", "cp=4"),
    ({"pp": 2, "virtual_stages": 4, "schedule": "gpipe"}, "irtual stages belong to the inter"),
    ({"ep": 16, "model": "mixtral-8x7b"}, "divide the experts", "ep=8"),
    ({"ep": 3, "model": "mixtral-8x7b"}, "divide the experts"),
    ({"ep": 8, "etp": 4, "tp": 4, "model": "mixtral-8x7b"}, "ep x etp|Ep x etp"),
    ({"ep": 2, "etp": 2, "tp": 1, "model": "mixtral-8x7b"}, "tp does not divide tp", "tp=2"),
    ({"ep": 2}, "no experts to spread", "ep=1"),
    ({"etp": 2}, "no experts to spread"),
    ({"pp": 2, "sharding": "zero3"}, "do not combine with a pipeline", "pp=1"),
    ({"pp": 2, "sharding": "zero2"}, "do not combine with a pipeline"),
    ({"pp": 2, "sharding": "fsdp2"}, None),
    ({"sharding": "ddp", "offload_params": "cpu"}, "fetch weights from the host", "sharding=zero3"),
    ({"sharding": "zero1", "offload_params": "nvme"}, "fetch weights from the host"),
    ({"sharding": "zero2", "offload_params": "cpu"}, "fetch weights from the host"),
    ({"sharding": "zero3", "offload_params": "cpu"}, None),
    ({"sharding": "fsdp2", "num_gpus": "1", "offload_params": "none"}, "nothing to shard"),
    ({"gpu": "a100", "precision": "fp8"}, "none of the chosen GPUs has fp8"),
    ({"gpu": "h100", "precision": "nvfp4"}, "none of the chosen GPUs has nvfp4"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_the_rule_and_the_nearest_legal_value_are_named_or_the_layout_is_planned(case):
    asked, rule, *nearest = case
    found = answer(**asked)
    if rule is None:
        assert found.plans
        return
    assert not found.plans
    assert found.nothing_fits
    assert re.search(rule, found.nothing_fits)
    assert found.nothing_fits.endswith(".")
    assert "\n" not in found.nothing_fits
    if nearest:
        named = re.search(r"Nearest legal value: (\w+)=([\w.]+?)\.", found.nothing_fits)
        assert named
        assert re.fullmatch(nearest[0], f"{named[1]}={named[2]}")
        assert answer(**{**asked, named[1]: named[2]}).plans


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ({"sharding": "zeropp", "pp": 4}, "do not combine with a pipeline"),
        ({"sharding": "hsdp", "num_gpus": "2", "cloud": "aws"}, "HSDP needs|nothing to shard"),
    ],
    ids=str,
)
def test_a_pinned_strategy_is_blamed_before_the_degrees_that_are_free(asked, rule):
    """Some tp of the search breaks another rule, but no tp would help."""
    assert re.search(rule, answer(**asked).nothing_fits)


def test_weights_on_the_host_never_win_by_staying_on_the_device():
    """Where nothing is fixed, only strategies that can fetch weights are searched."""
    plan = answer(offload_params="cpu").plans[0]
    assert plan.layout.sharding in ("zero3", "fsdp1", "fsdp2", "hsdp", "zeropp")
    assert plan.memory_bytes["parameters"] == 0


def test_one_gpu_may_shard_alone_what_it_offloads():
    """ZeRO-Infinity on one card: arXiv:2104.07857."""
    away = {"sharding": "zero3", "offload_params": "cpu", "offload_optimizer": "cpu"}
    assert answer(**away, num_gpus="1").plans
