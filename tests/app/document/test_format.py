"""Numbers as text: units, significant digits, and nothing that is not a number."""

from __future__ import annotations

import datetime as dt
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.document import format as fmt
from core.search.plan import Layout

ONE_GPU = {
    "tp": 1,
    "pp": 1,
    "virtual_stages": 1,
    "cp": 1,
    "ep": 1,
    "dp_replicate": 1,
    "dp_shard": 1,
    "sharding": "fsdp2",
    "micro_batch_size": 1,
    "num_microbatches": 16,
    "recompute": "full",
}
NUMBERS = [
    fmt.usd,
    fmt.usd_short,
    fmt.usd_per_hour,
    fmt.hours,
    fmt.days,
    fmt.count,
    fmt.tokens,
    fmt.tokens_per_s,
    fmt.gib,
    fmt.percent,
    fmt.seconds,
]
TODAY = dt.date(2026, 11, 21)


def cut(**changes: object) -> Layout:
    return Layout(**{**ONE_GPU, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (fmt.usd(108_412.34), "$108,400"),
        (fmt.usd(1234), "$1,234"),
        (fmt.usd(12_412, digits=3), "$12,400"),
        (fmt.usd(9.5), "$9.50"),
        (fmt.usd(100), "$100"),
        (fmt.usd(0.004), "$0.004"),
        (fmt.usd(-1234), "-$1,234"),
        (fmt.usd_short(108_412), "$108k"),
        (fmt.usd_short(1_200_000), "$1.2M"),
        (fmt.usd_short(999_950), "$1M"),
        (fmt.usd_short(2.5e9), "$2.5B"),
        (fmt.usd_per_hour(2.9), "$2.90/h"),
        (fmt.usd_per_hour(98.32), "$98.32/h"),
        (fmt.hours(198_656), "199,000 h"),
        (fmt.days(16.2 * 24), "16.2 days"),
        (fmt.days(47.9), "47.9 h"),
        (fmt.days(48), "2 days"),
        (fmt.days(0.5), "30 min"),
        (fmt.days(0.001), "3.6 s"),
        (fmt.count(131_072), "131,072"),
        (fmt.tokens(100e9), "100B"),
        (fmt.tokens(1.5e12), "1.5T"),
        (fmt.tokens(70_553_706_496), "70.6B"),
        (fmt.tokens_per_s(1_234_567), "1.23M tokens/s"),
        (fmt.gib(1234.5 * 2**30), "1,230 GiB"),
        (fmt.gib(1e6), "0.000931 GiB"),
        (fmt.percent(0.412), "41.2%"),
        (fmt.percent(0.9999), "99.99%"),
        (fmt.percent(0.99996), ">99.99%"),
        (fmt.percent(1.0), "100%"),
        (fmt.percent(0.00523), "0.52%"),
        (fmt.seconds(2.314), "2.31 s"),
        (fmt.seconds(0.41249), "412 ms"),
        (fmt.seconds(0.99996), "1 s"),
        (fmt.seconds(1234.5), "1,230 s"),
    ],
)
def test_a_number_reads_in_its_unit(text, expected):
    assert text == expected


@pytest.mark.parametrize("write", NUMBERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_a_dash(write, value):
    assert write(value) == fmt.MISSING


@pytest.mark.parametrize("write", NUMBERS, ids=lambda f: f.__name__)
@given(value=st.floats(-1e18, 1e18))
def test_no_exponent_no_negative_zero(write, value):
    text = write(value)
    assert not re.search(r"\de[+-]?\d|nan|inf", text)
    if text.startswith("-"):
        assert re.search(r"[1-9]", text)
    assert re.search(r"\d", text)


@given(value=st.floats(1e-2, 1e14))
def test_what_is_read_is_near_what_was_meant(value):
    sizes = {"k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
    text = fmt.tokens(value)
    read = float(text.rstrip("kMBT").replace(",", "")) * sizes.get(text[-1], 1.0)
    assert read == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize(
    ("chosen", "long", "short"),
    [
        (
            cut(tp=8, pp=4, dp_shard=16),
            "TP8 · PP4 · DP16 (fsdp2) · micro-batch 1 · full recompute",
            "TP8 PP4 DP16 fsdp2 mb1 full",
        ),
        (
            cut(pp=4, virtual_stages=2, dp_replicate=8, sharding="ddp", recompute="none"),
            "PP4 (2 virtual stages) · DP8 (ddp) · micro-batch 1 · no recompute",
            "PP4 (2v) DP8 ddp mb1",
        ),
        (
            cut(dp_replicate=2, dp_shard=8, sharding="hsdp", cp=2, ep=8, micro_batch_size=4),
            "CP2 (ring) · EP8 · DP2x8 (hsdp) · micro-batch 4 · full recompute",
            "CP2 (ring) EP8 DP2x8 hsdp mb4 full",
        ),
        (
            cut(pp=4, schedule="zero_bubble", dp_shard=8, sharding="zero1"),
            "PP4 (zero bubble) · DP8 (zero1) · micro-batch 1 · full recompute",
            "PP4 (zero bubble) DP8 zero1 mb1 full",
        ),
        (
            cut(pp=4, schedule="1f1b", context_parallel="ulysses", reshard_after_forward=True),
            "PP4 · micro-batch 1 · full recompute",
            "PP4 mb1 full",
        ),
        (
            cut(cp=4, context_parallel="all_gather", dp_shard=8, reshard_after_forward=False),
            "CP4 (all-gather) · DP8 (fsdp2, weights stay gathered) · micro-batch 1 · "
            "full recompute",
            "CP4 (all-gather) DP8 fsdp2 gathered mb1 full",
        ),
        (
            cut(dp_shard=8, sharding="zero1", reshard_after_forward=False),
            "DP8 (zero1) · micro-batch 1 · full recompute",
            "DP8 zero1 mb1 full",
        ),
        (cut(recompute="selective"), "micro-batch 1 · selective recompute", "mb1 sel."),
        (cut(tp=2), "TP2 · micro-batch 1 · full recompute", "TP2 mb1 full"),
    ],
)
def test_a_layout_names_what_is_cut(chosen, long, short):
    assert fmt.layout(chosen) == long
    assert fmt.layout_short(chosen) == short


@pytest.mark.parametrize(
    ("observed_at", "expected"),
    [
        ("2026-11-21", "of today"),
        ("2026-11-20", "1 day old"),
        ("2026-11-18", "3 days old"),
        ("2026-07-20", "4 months old"),
        ("2026-07-20T10:00:00Z", "4 months old"),
        ("2025-03-07", "20 months old"),
        ("2025", "23 months old"),
        ("2023", "3.9 years old"),
        ("2026-12-01", "dated 2026-12-01"),
        ("2026-13-01", "of unknown age"),
        ("", "of unknown age"),
        ("last spring", "of unknown age"),
    ],
)
def test_age_is_counted_from_the_observation(observed_at, expected):
    assert fmt.age(observed_at, TODAY) == expected


def test_a_month_is_as_old_as_its_first_day():
    """The pessimistic reading: a price is never shown younger than it may be."""
    assert fmt.age_days("2026-10", TODAY) == (TODAY - dt.date(2026, 10, 1)).days


def test_a_number_in_the_unit_of_its_column():
    assert fmt.in_unit(79.2 * 2**30, "GiB") == "79.2"
    assert fmt.in_unit(3.35e12, "GB/s") == "3,350"
    assert fmt.in_unit(None, "W") == fmt.MISSING
