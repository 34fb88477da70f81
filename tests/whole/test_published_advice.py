"""The shipped answers to published advice and claims are those of today's model."""

import pytest

from core.evidence.claimed_speed import implied_utilisation
from core.evidence.published_claims import VERDICTS as CLAIM_VERDICTS
from core.model.presets import preset
from core.model.transformer import total_params, train_flops_per_token
from hardware import facts
from hardware.claims import claims as published
from hardware.claims import guide_cases as shipped_cases
from hardware.decision_tables import VERDICTS, decision_tables
from tests.support.guides.__main__ import advice_cells, guide_cases
from tests.support.guides.advice import DECIDE
from tests.support.guides.claim_text import DIGITS, FORECAST_DIGITS, span
from tests.support.guides.claims import EVALUATED, checked, printed, verdict

AGAIN = "the model has moved it: run `python -m tests.support.guides` and read what changed"
# What the arithmetic of a claim gives, worked out by hand: id -> (low, high) in the printed unit.
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
# Our figure in the best case: ever more GPUs, the best published run.
LIMITS = {"zero1_64": 4, "zero2_64": 8}


@pytest.mark.slow
@pytest.mark.parametrize("row", decision_tables(), ids=lambda row: row.id)
def test_the_verdict_on_advice_is_that_of_the_model(row):
    answer = advice_cells(DECIDE[row.kind](row))
    assert answer["verdict"] in VERDICTS
    assert (answer["verdict"], answer["job"]) == (row.verdict, row.job), AGAIN


@pytest.mark.slow
@pytest.mark.parametrize(
    "claim", [c for c in published() if c.id in EVALUATED], ids=lambda claim: claim.id
)
def test_the_verdict_on_a_claim_is_that_of_the_arithmetic(claim):
    answer = checked(claim)
    assert answer.verdict in CLAIM_VERDICTS
    assert (answer.verdict, answer.printed) == (claim.verdict, claim.printed), AGAIN


@pytest.mark.slow
def test_every_case_of_the_guides_has_its_forecast():
    now = {(c["case"].split(": ")[-1], c["printed"]) for c in guide_cases()}
    assert now == {(c.case.split(": ")[-1], c.printed) for c in shipped_cases()}


@pytest.mark.parametrize("name", BY_HAND)
def test_our_figure_is_what_a_hand_works_out(name):
    claim, (low, high) = printed(name), (x * printed(name).scale for x in BY_HAND[name])
    digits = FORECAST_DIGITS if name == "incidents_per_1000" else DIGITS
    assert claim.ours == span(low, high, claim.unit, digits)
    assert claim.printed == span(claim.low, claim.high, claim.unit)
    assert claim.verdict == verdict(
        rule=claim.rule, ours_low=low, ours_high=high, printed_low=claim.low,
        printed_high=claim.high, tolerance=claim.tolerance, limit=LIMITS.get(name),
    )  # fmt: skip


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
    chip, model = facts.accelerator(gpu), preset("llama3.1-70b").transformer
    by_rule, counted = (
        implied_utilisation(
            flops_per_token=flops, num_tokens=1e12, gpu_hours=gpu_hours,
            peak_flops_per_s=chip.bf16_flops_per_s if bits == 16 else chip.fp8_flops_per_s,
        )
        for flops in (6 * total_params(model), train_flops_per_token(model, 8192.0))
    )  # fmt: skip
    assert by_rule == pytest.approx(low, abs=0.005)
    assert by_rule < counted < high
    assert counted == pytest.approx(high, rel=0.025)


def test_activations_without_recompute_are_twice_what_is_printed():
    """Counted by hand: norms in and out, q, k, v, output, log-sum-exp, gate, up, product."""
    claim = printed("7b_activations")
    h, f, heads = 4096, 11008, 32
    at_least = 2 * (4 * h + 4 * h + 3 * f) + 4 * heads
    at_most = at_least + 2 * 2 * h + 2 * f
    tokens, layers = 4 * 4096, 32
    ours = EVALUATED[claim.id]().low
    assert at_least * tokens * layers <= ours <= at_most * tokens * layers
    assert ours > 1.5 * claim.high


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
