"""Figures that guides print, against our arithmetic: reproduced, or refuted with a reason."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.document import format as fmt
from app.guides import claims as guides_claims
from app.guides import runs
from core.errors import FactError
from core.evidence.published_claims import (
    ACCOUNTINGS,
    interruptions_per_week,
    microbatches_of_bubble,
    num_gpus_that_hold,
    run_hours,
    state_saving,
    throughput_lost,
    tokens_per_s,
    verdict,
)
from core.layout.pipeline import bubble_fraction
from core.layout.sharding import INDEX, model_state_bytes_per_param
from hardware.claims import CLAIMS_CSV, load_claims
from hardware.claims import claims as published

# What the arithmetic must give, worked out by hand: id -> (low, high) in the printed unit.
BY_HAND = {
    "70b_weights": (140, 140), "70b_gradients": (140, 140), "70b_adamw": (840, 840),
    "70b_states": (1120, 1120), "70b_weights_per_gpu": (17.5, 17.5),
    "70b_gradients_per_gpu": (17.5, 17.5), "70b_adamw_per_gpu": (105, 105),
    "70b_states_per_gpu": (140, 140), "7b_20_bytes": (140, 140),
    "zero1_64": (16 / 4.1875, 16 / 4.1875), "zero2_64": (16 / 2.21875, 16 / 2.21875),
    "zero3_64": (64, 64), "checkpoint_7b": (13.477, 16.061), "checkpoint_70b": (141.107, 141.107),
    "b200_fp8": (4.5, 4.5), "b200_fp4": (9, 9), "nvl72_fp4": (0.72, 0.72),
    "v6e_vs_h100": (918 / 989, 918 / 989), "405b_one_node": (8, 8),
    "405b_mi325x": (8 * 256 * 2**30 / 16, 8 * 256 * 2**30 / 16), "405b_min_h100": (80, 80),
    "405b_min_h200": (48, 48), "405b_32_memory": (202.5, 202.5), "bubble_8": (12, 12),
    "bubble_8_v2": (6, 6), "70b_8_rate": (8477, 9419), "70b_8_1b_hours": (29.49, 32.77),
    "70b_8_1b_usd": (696, 696), "70b_8_1b_spot": (192, 192), "70b_8_1t_hours": (29491, 32768),
    "70b_8_100m_hours": (2.949, 3.277), "405b_32_rate": (4558, 5210),
    "405b_32_1b_hours": (53.32, 60.94), "405b_32_1b_usd": (5104, 5104),
    "70b_256_gpu_hours": (153_600, 153_600), "70b_256_usd": (460_800, 460_800),
    "70b_256_days_bf16": (40.32, 40.32), "nvl72_gpu_hours": (24_192, 24_192),
    "nvl72_usd": (145_152, 145_152), "nvl72_days": (32.82, 32.82), "nvl72_power": (86.4, 86.4),
    "efa_p5": (3200, 3200), "ndr_nd_h100": (3200, 3200), "tcpx_a3": (100, 100),
    "zero1_optimizer": (64, 64), "fsdp_no_shard": (1, 1), "fsdp_shard_grad_op": (16 / 7, 16 / 7),
    "fsdp_full_shard": (4, 4), "fsdp_hybrid_shard": (2, 4), "offload_nvme_rate": (7, 7),
    "incidents_per_1000": (0.671 * 419 / 54 * 7 / 16.384, 419 / 54 * 7 / 16.384),
}  # fmt: skip
# What guides print, as they print it: id -> (low, high, unit). A wrong row refutes nobody.
PRINTED = {
    "selective_time": (1.05, 1.10, "x"), "full_time": (1.3, 1.3, "x"),
    "offload_cpu_times": (2, 5, "x"), "offload_cpu_loss": (30, 70, "%"),
    "offload_vs_ddp": (3, 10, "x"), "offload_ethernet": (20, 20, "x"),
    "offload_nvme_rate": (7, 7, "GB/s"), "ddp_lora": (1, 1, "x"), "ddp_fsdp": (1.1, 1.3, "x"),
    "ddp_zero3": (1.3, 1.6, "x"), "ddp_tp": (1.5, 2, "x"), "ddp_3d": (2, 3, "x"),
    "qlora_rule_7b": (0.5 * 7 + 10, 0.5 * 7 + 10, "GB"),
    "qlora_rule_70b": (0.5 * 70 + 10, 0.5 * 70 + 10, "GB"), "full_tuning_rule": (20, 20, "GB"),
    "fsdp_no_shard": (1, 1, "x"), "fsdp_shard_grad_op": (2, 2, "x"),
    "fsdp_full_shard": (4, 4, "x"), "fsdp_hybrid_shard": (2, 4, "x"),
    "zero1_optimizer": (4, 4, "x"), "zero2_64": (8, 8, "x"),
    "h100_band": (1.99, 3.50, "USD/h"), "b200_band": (4.50, 6.50, "USD/h"),
    "mi300x_band": (1.70, 2.80, "USD/h"), "incidents_per_1000": (1.5, 1.5, "per week"),
    "efa_p5": (3200, 3200, "Gbit/s"), "tcpx_a3": (200, 200, "Gbit/s"),
    "ndr_nd_h100": (3200, 3200, "Gbit/s"), "nvl72_power": (120, 120, "kW"),
    "gaudi3_price": (30, 40, "%"),
}  # fmt: skip


@pytest.mark.parametrize("claim", published(), ids=lambda c: c.id)
def test_the_verdict_of_the_table_is_the_arithmetic_s(claim):
    found = guides_claims.checked(claim)
    assert found.verdict == claim.verdict, f"{found.ours_text}: {found.ours.arithmetic}"


@pytest.mark.parametrize("name", BY_HAND)
def test_our_figure_is_what_a_hand_works_out(name):
    claim = next(c for c in published() if c.id == name)
    ours = guides_claims.checked(claim).ours
    assert (ours.low / claim.scale, ours.high / claim.scale) == pytest.approx(
        BY_HAND[name], rel=5e-4
    )


@pytest.mark.parametrize("name", PRINTED)
def test_the_table_holds_what_is_printed(name):
    claim = next(c for c in published() if c.id == name)
    low, high, unit = PRINTED[name]
    assert (claim.low / claim.scale, claim.high / claim.scale) == pytest.approx((low, high))
    assert claim.unit == unit


@pytest.mark.parametrize(
    "claim", [c for c in published() if c.verdict == "refuted"], ids=lambda c: c.id
)
def test_a_refutation_says_why_in_one_sentence(claim):
    assert claim.why.endswith(".")
    assert not re.search(r"[.!?]\s", claim.why)
    assert 40 < len(claim.why) < 250


def test_every_claim_is_worked_out_and_nothing_else():
    assert set(guides_claims.EVALUATED) == {c.id for c in published()}


def test_the_arithmetic_shows_our_figure():
    for c in guides_claims.all_checked():
        assert any(ch.isdigit() for ch in c.ours.arithmetic), c.claim.id
        assert not re.search(r"\b(nan|inf)\b", c.ours.arithmetic)
        if math.isfinite(c.ours.low):
            assert c.ours.low <= c.ours.high
        else:
            assert (c.verdict, c.ours_text) == ("input", fmt.MISSING), c.claim.id


@pytest.mark.parametrize(
    ("gpu", "gpu_hours", "bits", "low", "high"),
    [
        ("H100-80GB-SXM", 153_600, 16, 0.77, 0.83),
        ("H100-80GB-SXM", 153_600, 8, 0.39, 0.42),
        ("GB200", 24_192, 16, 1.94, 2.09),
        ("GB200", 24_192, 8, 0.97, 1.05),
    ],
)
def test_what_a_claim_of_days_implies(gpu, gpu_hours, bits, low, high):
    """The upper figure counts attention; ours leaves the embedding look-up out of the FLOPs."""
    by_rule, counted = runs.implied(accelerator=gpu, gpu_hours=gpu_hours, bits=bits)
    assert by_rule == pytest.approx(low, abs=0.005)
    assert by_rule < counted < high
    assert counted == pytest.approx(high, rel=0.025)


def test_activations_without_recompute_are_twice_what_is_printed():
    """Counted by hand: norms in and out, q, k, v, output, log-sum-exp, gate, up, product."""
    claim = next(c for c in published() if c.id == "7b_activations")
    h, f, heads = 4096, 11008, 32
    at_least = 2 * (4 * h + 4 * h + 3 * f) + 4 * heads
    at_most = at_least + 2 * 2 * h + 2 * f
    tokens, layers = 4 * 4096, 32
    ours = guides_claims.checked(claim).ours.low
    assert at_least * tokens * layers <= ours <= at_most * tokens * layers
    assert ours > 1.5 * claim.high


def test_checkpointing_is_inside_the_printed_range():
    found = {c.claim.id: c.ours.low for c in guides_claims.all_checked()}
    assert 0.30 <= found["checkpointing_flops"] <= 1 / 3
    assert 4 <= found["checkpointing_memory"] <= 8


def test_qlora_leaves_room_for_the_device_s_own_context():
    found = {c.claim.id: c.ours.high for c in guides_claims.all_checked()}
    assert 4e9 < found["qlora_7b"] < 14e9
    assert 7e9 < found["qlora_13b"] < 16e9


def test_the_accountings_are_those_of_the_sharding_table():
    sums = {a.name: a.total_bytes for a in ACCOUNTINGS}
    assert sums == {"16 bytes": 16, "16 bytes, all fp32": 16, "18 bytes": 18, "20 bytes": 20}
    for strategy, total in (("zero3", 16), ("ddp", 16), ("zero1", 18)):
        assert float(model_state_bytes_per_param(strategy=INDEX[strategy], shards=1.0)) == total


@given(stage=st.sampled_from([1, 2, 3]), shards=st.integers(1, 4096))
def test_a_saving_grows_with_the_shards_up_to_its_limit(stage, shards):
    a = ACCOUNTINGS[0]
    saved = float(state_saving(accounting=a, stage=stage, shards=float(shards)))
    more = float(state_saving(accounting=a, stage=stage, shards=float(shards + 1)))
    limit = {1: 4, 2: 8, 3: shards + 1}[stage]
    assert 1 <= saved < more <= limit * (1 + 1e-12)


@given(stages=st.integers(2, 64), chunks=st.integers(1, 8), idle=st.floats(0.01, 2.0))
def test_the_micro_batches_of_a_bubble_give_that_bubble(stages, chunks, idle):
    m = microbatches_of_bubble(pp=stages, virtual_stages=chunks, bubble_fraction=idle)
    assert float(
        bubble_fraction(pp=stages, virtual_stages=chunks, num_microbatches=m)
    ) == pytest.approx(idle)


@given(total=st.floats(1e9, 1e14), per_node=st.sampled_from([1, 4, 8]))
def test_the_gpus_hold_the_bytes_and_one_node_less_does_not(total, per_node):
    gpus = float(
        num_gpus_that_hold(total_bytes=total, memory_bytes=80e9, gpus_per_node=float(per_node))
    )
    assert gpus % per_node == 0
    assert (gpus - per_node) * 80e9 < total <= gpus * 80e9


def test_hours_and_rate_are_one_equation():
    rate = tokens_per_s(num_gpus=8, peak_flops_per_s=1e15, mfu=0.5, flops_per_token=4e11)
    assert float(rate) == pytest.approx(10_000)
    assert float(run_hours(num_tokens=36e6, tokens_per_s=rate)) == pytest.approx(1)


@given(times=st.floats(1, 100))
def test_what_a_slower_step_leaves_and_what_it_loses_are_the_whole(times):
    assert float(throughput_lost(times)) + 1 / times == pytest.approx(1)


def test_interruptions_are_in_proportion_to_time_and_gpus():
    rate = {"count": 30.0, "days": 10.0, "gpus": 2000.0}
    assert float(interruptions_per_week(**rate)) == pytest.approx(10.5)
    half = interruptions_per_week(**{**rate, "gpus": 4000.0})
    assert float(half) == pytest.approx(5.25)
    longer = interruptions_per_week(**{**rate, "days": 40.0})
    assert float(longer) == pytest.approx(10.5 / 4)


@pytest.mark.parametrize(
    ("ours", "printed", "limit", "rule", "says"),
    [
        ((10, 10), (10, 10), None, "equals", "reproduced"),
        ((10, 12), (11.5, 14), None, "equals", "reproduced"),
        ((10, 10), (11, 11), None, "equals", "refuted"),
        ((10, 10), (11, 11), 11, "equals", "reproduced as a limit"),
        ((10, 10), (11, 11), 13, "equals", "refuted"),
        ((10, 10), (11, 11), None, "fits", "reproduced"),
        ((12, 12), (11, 11), None, "fits", "refuted"),
        ((99, 99), (11, 11), None, "input", "input"),
    ],
)
def test_a_verdict(ours, printed, limit, rule, says):
    found = verdict(
        rule=rule, ours_low=ours[0], ours_high=ours[1], printed_low=printed[0],
        printed_high=printed[1], tolerance=0.0, limit=limit,
    )  # fmt: skip
    assert found == says


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("unit", "furlongs", "unit 'furlongs' is not one of"),
        ("rule", "maybe", "has rule 'maybe'"),
        ("verdict", "true", "verdict 'true'"),
        ("why", "", "has no why"),
        ("source", "", "has no source"),
        ("low", "0", "has no range"),
        ("high", "one", "could not convert"),
    ],
)
def test_a_claim_that_cannot_be_trusted_stops_the_load(tmp_path, column, value, says):
    header, row = CLAIMS_CSV.read_text().splitlines()[:2]
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    cells[column] = value
    table = tmp_path / "claims.csv"
    table.write_text(f"{header}\n{','.join(cells.values())}\n")
    with pytest.raises(FactError, match=r"claims.csv:2") as e:
        load_claims(table)
    assert says in str(e.value)
