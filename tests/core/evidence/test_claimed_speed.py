"""What published claims imply."""

from pathlib import Path

import pandas as pd
import pytest

from core.evidence.claimed_speed import implied_utilisation, low_precision_share, speed_verdict
from core.model.transformer import train_flops_per_token
from tests.made_up.jobs import LLAMA_70B

CLAIMS = pd.read_csv(Path(__file__).parents[2] / "golden/claims.csv").to_dict("records")


@pytest.mark.parametrize("row", CLAIMS, ids=lambda r: r["claim"])
def test_the_utilisation_that_a_claim_implies(row):
    share = implied_utilisation(
        flops_per_token=row["flops_per_param"] * row["params"],
        num_tokens=row["num_tokens"],
        gpu_hours=row["num_gpus"] * row["wall_clock_hours"],
        peak_flops_per_s=row["peak_tflop_per_s"] * 1e12,
    )
    assert row["low"] <= share <= row["high"]


def test_the_full_count_of_a_70b_raises_what_the_claim_implies():
    """1T tokens in 153,600 H100 hours: 77% by 6 N, more with attention and the LM head."""
    by_rule, counted = (
        implied_utilisation(
            flops_per_token=f, num_tokens=1e12, gpu_hours=153_600.0, peak_flops_per_s=989e12
        )
        for f in (6 * 70e9, float(train_flops_per_token(LLAMA_70B, 8192.0)))
    )
    assert by_rule == pytest.approx(0.77, abs=0.01)
    assert by_rule < counted < 0.9


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ({"share_of_peak": 1.01}, "impossible"),
        ({"share_of_peak": 0.5, "fits": False}, "not_credible"),
        ({"share_of_peak": 0.5, "over_p10": 1.5, "over_p90": 1.01}, "optimistic"),
        ({"share_of_peak": 0.5, "over_p10": 1.2, "over_p90": 0.99}, "plausible"),
        ({"share_of_peak": 0.5, "over_p10": 0.99, "over_p90": 0.6}, "conservative"),
        ({"share_of_peak": 0.5}, "plausible"),
    ],
)
def test_every_verdict_has_its_own_side_of_a_limit(claim, verdict):
    none = {"over_best": None, "over_p10": None, "over_p90": None}
    assert speed_verdict(**none | claim) == verdict


def test_attention_and_head_stay_in_16_bits():
    """A longer sequence has more attention, so less of it runs in low precision."""
    short, long = low_precision_share(LLAMA_70B, 4096.0), low_precision_share(LLAMA_70B, 131072.0)
    assert 0 < float(long) < float(short) < 1
