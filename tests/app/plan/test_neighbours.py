"""The published runs beside a plan: the right ones, in words, quickly."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.forecast import machines
from app.forecast.search import plan_job
from app.forecast.training import question_of
from app.plan import neighbours as plan_neighbours
from app.plan.neighbours import nearest
from core.evidence.neighbours import WEIGHTS, Configuration, distances, doublings, nearest_rows
from core.machine.offer import Offer
from core.scenario import Scenario
from tests.made_up import plans as made_up

ONE = Configuration(
    accelerator="H100-80GB-SXM", peak=989e12, params=8e9, architecture=False, task=False,
    quantised=False, bits=16.0,
    precision="bf16", num_gpus=64.0, seq_len=8192.0, tp=1.0, pp=1.0, cp=1.0, ep=1.0,
    framework="nemo",
)  # fmt: skip


def table(*rows):
    names = Configuration.__dataclass_fields__
    return Configuration(**{n: np.array([getattr(r, n) for r in rows]) for n in names})


def total(one, many):
    return np.sum(list(distances(one, many).values()), axis=0)


def plan_on(accelerator, num_gpus, asked=None, **layout):
    asked = (asked or Scenario()).model_copy(update={"stack": "generic"})
    offer = Offer(
        provider="aws", instance_type="any", accelerator=accelerator, gpu_count=8, region="*",
        purchase="on_demand", usd_per_hour=None, scale_out_gbit_per_s=3200, observed_at="",
        source="made up", quality="",
    )  # fmt: skip
    machine = machines.machine(offer, machines.accelerator_of(accelerator, asked))
    given = {"tp": 1, "dp_shard": num_gpus, "num_microbatches": 8, "recompute": "none", **layout}
    return made_up.plan(
        job=plan_job(asked, question_of(asked), machine, num_gpus),
        offer=offer,
        num_gpus=num_gpus,
        layout=made_up.layout(**given),
    )


LORA, QLORA = (Scenario(task=task) for task in ("lora", "qlora"))
LLAMA_405B = Scenario.parse({"model": "llama3.1-405b", "precision": "fp8", "seq_len": "8192"})


def test_a_configuration_is_at_no_distance_from_itself():
    assert total(ONE, table(ONE)) == 0


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"num_gpus": 512.0}, 3 * WEIGHTS["num_gpus"]),
        ({"num_gpus": 8.0}, 3 * WEIGHTS["num_gpus"]),
        ({"seq_len": 4096.0}, WEIGHTS["seq_len"]),
        ({"params": 16e9, "tp": 4.0}, WEIGHTS["params"] + 2 * WEIGHTS["tp"]),
        ({"bits": 8.0, "precision": "fp8"}, WEIGHTS["bits"] + WEIGHTS["precision"]),
        ({"architecture": True}, WEIGHTS["architecture"]),
        ({"accelerator": "X", "peak": 2 * 989e12}, WEIGHTS["accelerator"] + WEIGHTS["peak"]),
        ({"framework": "maxtext"}, WEIGHTS["framework"]),
        ({"pp": float("nan")}, WEIGHTS["pp"]),
    ],
)
def test_a_difference_counts_by_its_doublings(changed, expected):
    assert total(ONE, table(replace(ONE, **changed))) == pytest.approx(expected)


def test_no_stack_in_particular_is_far_from_none():
    assert total(replace(ONE, framework=""), table(ONE)) == 0


@given(st.floats(1, 1e6), st.floats(1, 1e6), st.floats(1, 1e6))
def test_doublings_are_a_metric(a, b, c):
    assert doublings(a, b) == pytest.approx(float(doublings(b, a)))
    assert doublings(a, c) <= doublings(a, b) + doublings(b, c) + 1e-9


def test_rows_that_tell_the_same_come_once_and_the_newest():
    terms = {"any": np.array([2.0, 1.0, 1.0, 3.0])}
    group = np.array(["a", "b", "b", "c"])
    newer = np.array(["2020", "2021", "2024", "2022"])
    assert nearest_rows(terms, top=3, group=group, newer=newer).tolist() == [2, 0, 3]
    assert nearest_rows(terms, top=1, group=group, newer=newer).tolist() == [2]


def test_a_published_run_is_its_own_nearest_neighbour():
    """Megatron Bridge 25.11: Llama 3.1 405B in fp8 on 128 B200, TP4 PP8 CP2."""
    plan = plan_on("B200-180GB", 128, LLAMA_405B, tp=4, pp=8, cp=2, dp_shard=2)
    first, *others = nearest(LLAMA_405B, replace(plan, stack="megatron-bridge"))
    assert first.run_id.startswith("mbridge-25.11-b200-llama3.1-405b-pretrain-fp8-current-128g")
    assert first.distance == 0
    assert first.differences == (
        "recompute not stated", f"sharding zero1 instead of {plan.layout.sharding}"
    )  # fmt: skip
    assert first.same == ("GPU", "model", "precision", "GPU count", "sequence length", "stack")
    assert first.measured == pytest.approx(661, rel=0.01)
    assert all(n.distance > 0 for n in others)


def test_what_differs_is_said():
    first = nearest(
        LLAMA_405B, plan_on("B200-180GB", 1024, LLAMA_405B, tp=4, pp=8, cp=2, dp_shard=16)
    )[0]
    assert "4x fewer GPUs" in first.differences
    asked = LLAMA_405B.model_copy(update={"precision": "bf16"})
    other = nearest(asked, plan_on("B200-180GB", 128, asked, tp=4, pp=8, cp=2, dp_shard=2), top=50)
    assert any("fp8 instead of bf16" in n.differences for n in other)
    assert any("GB300 instead of B200-180GB" in n.differences for n in other)


def test_neighbours_come_nearest_first_and_once():
    found = nearest(Scenario(), plan_on("H100-80GB-SXM", 64), top=200)
    assert [n.distance for n in found] == sorted(n.distance for n in found)
    assert len({n.run_id for n in found}) == len(found) == 200
    assert all(n.measured > 0 and n.forecast_p10 < n.forecast < n.forecast_p90 for n in found)
    assert all(n.error == pytest.approx(n.forecast / n.measured - 1) for n in found)


def test_what_of_the_layout_moves_the_speed_is_among_the_differences():
    inputs = plan_neighbours._table().runs.inputs
    run = int(np.flatnonzero((inputs.recompute == "full") & (inputs.micro_batch == 2))[0])
    like = replace(plan_on("H100-80GB-SXM", 64).layout, recompute="full", micro_batch_size=2)
    other = replace(like, recompute="none", micro_batch_size=48)
    found, more = (set(plan_neighbours._of_the_layout(inputs, run, x)) for x in (like, other))
    assert more - found == {"micro-batch 2 instead of 48", "recompute full instead of none"}


def test_adapters_are_compared_with_adapters():
    found = nearest(LORA, plan_on("H100-80GB-SXM", 8, LORA), top=5)
    assert all("all weights trained" not in n.differences for n in found)
    assert nearest(QLORA, plan_on("RTX4090", 1, QLORA))[0].run_id.count("qlora") == 1


@pytest.mark.parametrize("accelerator", ["H100-80GB-SXM", "A10G", "MI300X", "TPU-v5p"])
def test_every_accelerator_has_neighbours(accelerator):
    assert len(nearest(Scenario(), plan_on(accelerator, 8))) == 3


def test_after_the_first_time_it_is_quick():
    plan = plan_on("H100-80GB-SXM", 64)
    nearest(Scenario(), plan)
    start = time.thread_time()
    for _ in range(10):
        nearest(Scenario(), plan)
    assert (time.thread_time() - start) / 10 < 0.05


def test_forecasts_know_nothing_of_the_measurement(monkeypatch):
    """The table's forecasts are `predict` of the inputs alone."""
    seen = []
    real = plan_neighbours.predict
    monkeypatch.setattr(plan_neighbours, "predict", lambda *a: seen.append(a) or real(*a))
    plan_neighbours._table.__wrapped__()
    ((inputs, _),) = seen
    assert not [name for name in dir(inputs) if "measured" in name or "tokens_per_s" in name]
