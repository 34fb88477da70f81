"""The whole answer to a scenario: prices, machines, layouts and what is left out."""

import re
from pathlib import Path

import numpy as np
import pytest

from app.forecast import answer as forecast_answer
from app.forecast import resolve
from app.scenario.model import custom_fields, read_config_file
from core.errors import ScenarioError
from core.scenario import Scenario
from hardware import facts
from pricing import offers as prices
from tests.made_up.plans import SUMMER_2026

CONFIGS = Path(__file__).parents[2] / "golden/configs"


def answer(top=50, **fields):
    return forecast_answer.answer(resolve.resolve_strict(Scenario.parse(fields)), top=top)


@pytest.mark.parametrize(
    ("preset", "config"),
    [
        ("llama3.1-8b", "llama3.1-8b.json"),
        ("llama3.1-70b", "llama3.1-70b.json"),
        ("llama3.1-405b", "llama3.1-405b.json"),
    ],
)
def test_a_config_gives_the_plans_of_its_preset_and_they_are_sane(preset, config):
    job = {
        "num_tokens": "1T",
        "global_batch_size": 2048,
        "gpu": "h100,b200",
        "deadline_days": 90,
        "stack": "megatron-lm",
    }  # of those that a stack has a configuration of, a preset is known
    model = custom_fields(read_config_file(str(CONFIGS / config)))
    found, same = answer(model=preset, **job), answer(**model, **job)
    assert [p.id for p in found.plans] == [p.id for p in same.plans]
    assert [p.usd for p in found.plans] == [p.usd for p in same.plans]
    assert len(found.plans) > 10
    for p in found.plans:
        chip = facts.accelerator(p.offer.accelerator)
        degrees = p.layout.tp * p.layout.pp * p.layout.cp
        assert degrees * p.layout.dp_replicate * p.layout.dp_shard == p.num_gpus
        assert p.layout.tp <= max(p.offer.gpu_count, chip.scale_up_domain)
        assert sum(p.memory_bytes.values()) <= p.memory_capacity_bytes
        assert 0.05 <= p.mfu <= 0.70
        assert p.hfu >= p.mfu
        step_s = sum(p.step_s.values())
        tokens = 8192 * 2048
        assert p.tokens_per_s.p50 == pytest.approx(tokens / step_s)
        assert p.wall_clock_hours * 3600 == pytest.approx(p.num_steps * step_s)
        assert p.usd is not None


def test_dollars_and_gpu_hours_are_of_whole_instances():
    found = answer(gpu="h100", num_gpus="12", cloud="aws", global_batch_size=384)
    plan = next(p for p in found.plans if p.offer.instance_type == "p5.48xlarge")
    assert plan.num_nodes == 2
    assert plan.billed_hours == pytest.approx(plan.startup_hours + plan.wall_clock_hours)
    assert plan.gpu_hours == pytest.approx(plan.billed_hours * 16)
    assert plan.usd.p50 == pytest.approx(plan.billed_hours * 2 * plan.offer.usd_per_hour)
    assert any("4 rented GPUs stay idle" in a for a in plan.assumptions)


def test_the_ranking_is_by_price_within_the_limits_or_by_time():
    cheap = answer(gpu="h100,h200", deadline_days=30, budget_usd="20k")
    meet = [p for p in cheap.plans[1:] if p.meets_deadline and p.meets_budget]
    usd = [(bool(p.against), p.paid_usd) for p in meet]
    assert usd == sorted(usd)
    kept = [p.meets_deadline and p.meets_budget for p in cheap.plans]
    assert kept == sorted(kept, reverse=True)
    fast = answer(gpu="h100,h200", rank_by="time")
    hours = [(bool(p.against), p.expected_hours) for p in fast.plans[1:] if p.usd]
    assert hours == sorted(hours)


def test_the_frontier_is_what_nothing_beats():
    points = answer(gpu="h100,b200,l40s").points
    stands = ~points["in_doubt"]
    assert not points["frontier"][~stands].any()
    names = ("paid_usd", "expected_hours", "frontier")
    usd, hours, frontier = (points[name][stands] for name in names)
    for i in range(len(usd)):
        beaten = bool(
            np.any((usd <= usd[i]) & (hours <= hours[i]) & (usd + hours < usd[i] + hours[i]))
        )
        assert not (frontier[i] and beaten)


def test_a_gpu_without_an_offer_is_planned_without_dollars_and_counted():
    found = answer(gpu="mi325x", prices=SUMMER_2026)
    assert found.plans
    assert all(p.usd is None and p.usd_per_gpu_hour is None for p in found.plans)
    assert next(e.count for e in found.excluded if e.reason == "no_price") == found.num_plans


def test_a_precision_that_the_chip_lacks_is_no_plan_but_a_sentence():
    found = answer(gpu="v100", precision="bf16")
    assert not found.plans
    assert "none of the chosen GPUs has bf16" in found.nothing_fits
    assert answer(gpu="v100", precision="fp16", model="llama3.2-1b").plans


def test_fp8_is_faster_than_bf16_on_a_chip_that_has_it():
    slow, fast = (
        answer(gpu="h100", num_gpus="64", cloud="aws", precision=p).plans[0].tokens_per_s.p50
        for p in ("bf16", "fp8")
    )
    assert 1.1 < fast / slow < 2.0


def test_nothing_fits_says_by_how_much_and_names_a_change_that_fits():
    job = {"model": "llama3.1-405b", "gpu": "h100", "global_batch_size": 2048}
    said = answer(**job, num_gpus="8").nothing_fits
    need, usable, capacity = map(float, re.findall(r"([\d.]+) GiB", said)[:3])
    assert usable < capacity < need
    assert "optimizer" in said
    count = re.search(r"It fits on (\d+) of the same GPUs", said)[1]
    assert answer(**job, num_gpus=count).plans


def test_a_fixed_layout_that_does_not_fit_is_told_to_let_go():
    job = {"model": "llama3.1-70b", "gpu": "h100", "num_gpus": "64", "recompute": "none"}
    said = answer(**job, tp=1, pp=1, sharding="ddp").nothing_fits
    assert "It fits when the layout is searched freely" in said


def test_a_typed_accelerator_is_estimated_like_the_row_it_copies():
    figures = {
        "custom_tflop_per_s": 989,
        "custom_memory_gib": 79.19,
        "custom_memory_gb_per_s": 3350,
        "custom_scale_up_gb_per_s": 450,
        "custom_scale_out_gbit_per_s": 400,
        "custom_usd_per_gpu_hour": 2.5,
    }
    mine = answer(gpu="custom", num_gpus="64", **figures).plans[0]
    row = answer(gpu="h100", num_gpus="64", cloud="aws").plans[0]
    assert mine.tokens_per_s.p50 == pytest.approx(row.tokens_per_s.p50, rel=0.02)
    assert mine.usd.p50 == pytest.approx(mine.gpu_hours * 2.5)
    with pytest.raises(ScenarioError, match="not given: custom_memory_gib"):
        answer(gpu="custom", **{**figures, "custom_memory_gib": None})


def test_a_page_keeps_standing_where_the_command_line_refuses():
    scenario = Scenario.parse({"gpu": "H100-80G-SXM,h200", "cloud": "asw", "model": "lama3.1-8b"})
    resolved, notes = resolve.resolve(scenario)
    assert resolved.gpu == ("H100-80GB-SXM", "H200-141GB-SXM") or len(notes) == 3
    assert any("Did you mean 'aws'" in n for n in notes)
    assert any("Did you mean 'llama3.1-8b'" in n for n in notes)
    assert resolved.model == Scenario().model
    with pytest.raises(ScenarioError):
        resolve.resolve_strict(scenario)


def test_gpus_that_their_network_starves_are_counted_unless_asked_for():
    found = answer(top=100_000)
    assert all(p.mfu >= 0.05 for p in found.plans)
    assert next(e.count for e in found.excluded if e.reason == "wasteful") > 0
    slow = {"cloud": "hyperstack", "global_batch_size": 1024}
    asked = answer(gpu="a100-80gb-pcie,h100", num_gpus="1024", network_gbit_per_gpu=1, **slow)
    assert any(p.mfu < 0.05 for p in asked.plans)


def test_the_same_scenario_gives_the_same_answer():
    one, two = answer(gpu="h100"), answer(gpu="h100")
    assert one.plans == two.plans
    assert {k: v.tolist() for k, v in one.points.items()} == {
        k: v.tolist() for k, v in two.points.items()
    }


def test_every_offer_is_ranked_or_counted():
    """Offers of the chosen GPUs at one count: each is a plan, or out for a stated reason."""
    found = answer(gpu="h100", num_gpus="8", purchase="on_demand,spot", top=1)
    newest = prices.newest_per_place(prices.snapshot().offers)
    offers = sum(o.accelerator == "H100-80GB-SXM" for o in newest)
    counts = {e.reason: e.count for e in found.excluded}
    out = sum(
        counts.get(r, 0)
        for r in ("purchase", "memory", "layout", "too_slow", "precision", "not_a_cluster")
    )
    assert found.num_plans + out == offers


def test_every_plan_s_id_can_be_linked():
    found = answer(purchase="on_demand,spot,reserved_1y,reserved_3y,capacity_block", top=1)
    ids = found.points["id"].tolist()
    assert len(set(ids)) == len(ids)
    for name in ids[:: max(len(ids) // 500, 1)]:
        assert Scenario.parse({"plan": name}).plan == name


ANCHOR = {"gpu": "h100", "num_gpus": "64", "cloud": "aws", "model": "llama3.1-70b"}


def test_a_measurement_of_the_same_layout_becomes_the_forecast():
    plain = min(answer(**ANCHOR, stack="generic").plans, key=lambda p: p.usd.p50)
    layout = plain.layout
    said = (
        f"tp={layout.tp},pp={layout.pp},micro_batch_size={layout.micro_batch_size},"
        f"sharding={layout.sharding},recompute={layout.recompute}"
    )
    measured = {
        "anchor_tokens_per_s_per_gpu": plain.tokens_per_s_per_gpu * 0.8,
        "anchor_gpu": "h100",
        "anchor_num_gpus": 64,
        "anchor_layout": said,
    }
    moved = next(p for p in answer(**ANCHOR, **measured, stack="generic").plans if p.id == plain.id)
    assert moved.layout == layout
    ratio = moved.tokens_per_s_per_gpu / plain.tokens_per_s_per_gpu
    assert ratio == pytest.approx(0.8, rel=0.05)
    assert moved.tokens_per_s.p90 / moved.tokens_per_s.p10 < 1.2
    assert plain.tokens_per_s.p90 / plain.tokens_per_s.p10 > 1.4
    told = re.search(r"moves this forecast by (-\d+)%", " ".join(moved.assumptions))
    assert told is not None
    assert abs(int(told[1]) + 20) <= 3
    assert sum(moved.step_s.values()) == pytest.approx(8192 * 512 / moved.tokens_per_s.p50)


@pytest.mark.parametrize(
    ("anchor", "says"),
    [
        ({"anchor_num_gpus": 64, "anchor_gpu": "h100"}, "is 1"),
        ({"anchor_gpu": "h100"}, "anchor_num_gpus is not given"),
        ({"anchor_num_gpus": 64, "anchor_layout": "tp=3"}, "no legal layout"),
        ({"anchor_num_gpus": 64, "anchor_layout": "tq=3"}, "Did you mean"),
    ],
)
def test_a_measurement_that_cannot_be_is_a_sentence(anchor, says):
    value = 1e5 if says == "is 1" else 500
    fields = {**ANCHOR, "anchor_tokens_per_s_per_gpu": value, **anchor}
    with pytest.raises(ScenarioError, match=r"anchor_|layout") as e:
        answer(**fields)
    if says != "is 1":
        assert says in str(e.value)
    resolved, notes = resolve.resolve(Scenario.parse(fields))
    assert resolved.anchor_tokens_per_s_per_gpu is None
    assert any("Left out the measurement" in n for n in notes)


def test_padding_and_epochs_are_paid_for():
    job = {"gpu": "h100", "num_gpus": "8", "cloud": "aws", "stack": "generic"}
    once = answer(**job).plans[0]
    twice = answer(**job, epochs=2, packing_efficiency=0.5).plans[0]
    assert twice.usd.p50 / once.usd.p50 == pytest.approx(4, rel=1e-3)
    data = {"num_examples": "50M", "tokens_per_example": 1000}
    assert answer(**job, **data).plans[0].usd.p50 == pytest.approx(once.usd.p50 / 2, rel=1e-3)


JOB = {"gpu": "H100-80GB-SXM", "num_gpus": "64", "cloud": "aws", "tp": "4", "pp": "1",
       "seq_len": "4096", "global_batch_size": "256"}  # fmt: skip


def assumed(**fields):
    """What the first plan assumes, in one text, and its layout."""
    found = forecast_answer.answer(resolve.resolve_strict(Scenario.parse({**JOB, **fields})), top=1)
    return " ".join(found.plans[0].assumptions), found.plans[0].layout


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            {"sharding": "zero1", "stack": "generic"},
            "fp32 and reduced in 4 bytes, as zero1 does: 18 bytes",
        ),
        ({"sharding": "zero1", "stack": "deepspeed"}, "16 bits and reduced in 2 bytes, as deeps"),
        ({"sharding": "zero1", "stack": "deepspeed"}, "deepspeed does: 16 bytes"),
        ({"sharding": "zero1", "stack": "nanotron"}, "an fp32 sum and reduced in 4 bytes"),
        ({"sharding": "zero1", "stack": "nanotron"}, "nanotron does: 20 bytes"),
        (
            {"sharding": "zero1", "stack": "generic", "optimizer": "adamw_8bit"},
            "zero1 does: 12 bytes",
        ),
        ({"sharding": "zero1", "stack": "nanotron"}, "sums gradients in an fp32"),
    ],
)
def test_the_type_of_gradients_is_said_where_it_is_assumed(fields, says):
    assert says in assumed(**fields)[0]


def test_a_given_type_of_gradients_is_not_assumed():
    text, _ = assumed(sharding="zero1", gradient_dtype="bf16")
    assert "Gradients are assumed" not in text


@pytest.mark.parametrize(
    ("stack", "tried"),
    [("torchtitan", {"selective", "full"}), ("torchtune", {"full"}), ("axolotl", {"none", "full"})],
)
def test_a_stack_s_recompute_is_what_is_tried(stack, tried):
    """On a machine with room for any: the least of what the stack's recipes use."""
    least = next(r for r in ("none", "selective", "full") if r in tried)
    fields = {"task": "sft", "tp": "1"} if stack == "torchtune" else {}
    assert assumed(model="llama3.2-1b", stack=stack, **fields)[1].recompute == least


def test_a_plan_says_its_methods():
    fields = {"cp": "2", "context_parallel": "ulysses", "pp": "2", "schedule": "zero_bubble",
              "sharding": "fsdp2", "reshard_after_forward": "0"}  # fmt: skip
    found = assumed(**fields)[1]
    assert (found.context_parallel, found.schedule) == ("ulysses", "zero_bubble")
    assert not found.reshard_after_forward


def test_virtual_stages_that_are_given_rule_out_a_job_without_a_pipeline():
    searched = {k: v for k, v in JOB.items() if k != "pp"}
    scenario = resolve.resolve_strict(Scenario.parse({**searched, "virtual_stages": "2"}))
    found = forecast_answer.answer(scenario, top=1)
    assert found.plans[0].layout.virtual_stages == 2
    assert {e.reason for e in found.excluded} >= {"candidate_no_pipeline"}


@pytest.mark.parametrize("config", ["mamba-2.8b", "mamba-codestral-7b", "falcon-h1-7b"])
@pytest.mark.parametrize("fields", [{}, {"optimizer": "muon"}, {"task": "lora"}])
def test_models_of_state_spaces_are_planned(config, fields):
    given = custom_fields(read_config_file(CONFIGS / f"{config}.json"))
    searched = {k: v for k, v in JOB.items() if k not in ("tp", "pp")}
    scenario = Scenario.parse({**given, **searched, **fields})
    plan = forecast_answer.answer(resolve.resolve_strict(scenario), top=1).plans[0]
    assert 0.13 < plan.mfu < 0.6
    assert plan.step_s.get("attention", 0) > 0  # the scans are counted there


@pytest.mark.parametrize(
    ("job", "slow", "fast"),
    [
        ({"sharding": "zero1"}, {"gradient_overlap": "off"}, {}),
        ({"sharding": "fsdp2"}, {"param_overlap": "off"}, {}),
        ({"model": "mixtral-8x7b", "ep": 8}, {}, {"moe_overlap": "1"}),
        ({"model": "mixtral-8x7b", "ep": 8}, {}, {"cuda_graph_parts": "1"}),
        ({"model": "mixtral-8x7b", "ep": 8}, {"cuda_graph_parts": "1"}, {"cuda_graphs": "1"}),
    ],
)
def test_what_software_overlaps_or_captures_makes_the_step_shorter(job, slow, fast):
    fixed = {"model": "llama3.1-8b", "gpu": "h100", "num_gpus": 16, "seq_len": 4096, "tp": 1,
             "pp": 1, "micro_batch_size": 1, "stack": "generic", "cloud": "aws",
             "rank_by": "time", **job}  # fmt: skip
    before, after = (
        sum(answer(top=1, **fixed, **some).plans[0].step_s.values()) for some in (slow, fast)
    )
    assert after < before
