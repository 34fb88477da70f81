"""One plan, one cost: every command, page, file and API answer shows the same value of it.

`runcast plan --json` is the reference; tests/support/media reads every other medium.
Numbers are equal to 1e-9, texts are the reference as app/document/format.py writes it.
"""

import math
from functools import cache
from pathlib import Path

import pytest

from app.document import format as fmt
from app.prices.book_file import read_book
from app.scenario.model import custom_fields, read_config_file
from core.scenario import Scenario
from pricing.book.files import save_book
from tests.pricing.book.test_price_book import OWNED, csv_of
from tests.support.media.documents import MEDIA
from tests.support.media.shown import TODAY, shown

CONFIGS = Path(__file__).parent.parent / "golden/configs"
BOOKS = {"owner": [OWNED], "storage": [
    {"kind": "storage", "provider": "aws", "usd_per_gb_month": "0.02", "checkpoints": "10"},
    {"kind": "egress", "provider": "aws", "usd_per_gb": "0.09", "checkpoints": "1"},
]}  # fmt: skip
RUN = {
    "model": "llama3.1-8b", "num_tokens": "100B", "seq_len": "8192", "global_batch_size": "512",
    "gpu": "H100-80GB-SXM", "num_gpus": "64", "prices": "9a4277b798e9",
}  # fmt: skip
AWS = {**RUN, "cloud": "aws"}
TUNED = {**RUN, "num_tokens": "50M", "global_batch_size": "64", "num_gpus": "8"}
ANY_AGE = {"max_price_age_days": "0"}
SCENARIOS = {
    "pretrain": RUN,
    "deadline": {**AWS, "deadline_days": "3", "deadline_confidence": "0.95"},
    "budget": {**AWS, "num_gpus": "64,128", "budget_usd": "20000", "rank_by": "time"},
    "spot": {**AWS, **ANY_AGE, "purchase": "spot", "deadline_days": "2.4"},
    "sft": {**TUNED, "task": "sft"},
    "lora": {**TUNED, "task": "lora"},
    "qlora": {**TUNED, "task": "qlora", "gpu": "A100-80GB-SXM", "num_gpus": "1"},
    "quote": {**AWS, "quotes": "acme,h100,2.20", "deadline_days": "4"},
    "reservation": {**RUN, **ANY_AGE, "purchase": "reserved_1y", "budget_usd": "2e6"},
    "capacity block": {**RUN, **ANY_AGE, "purchase": "capacity_block"},
    "owned": {**AWS, "price_book": "owner", "purchase": "owned"},
    "everything on the bill": {
        **AWS, "price_book": "storage", "deadline_days": "9", "experiment_share": "0.4",
        "dataset_tb": "20",
    },
    "experts": {**RUN, "model": "mixtral-8x7b", "cloud": "aws,lambda"},
    "TPU": {**RUN, **ANY_AGE, "gpu": "TPU-v6e", "cloud": "gcp"},
    "custom config": {**AWS, "model": "gemma3-4b.json"},
    "custom GPU": {
        **RUN, "gpu": "custom", "custom_tflop_per_s": "400", "custom_memory_gib": "64",
        "custom_memory_gb_per_s": "2000", "custom_scale_up_gb_per_s": "300",
        "custom_scale_out_gbit_per_s": "200", "custom_usd_per_gpu_hour": "1.5",
    },
    "programme": {**AWS, "stages": "main", "deadline_days": "9"},
    "layout": {**AWS, "tp": "4", "pp": "2", "micro_batch_size": "2", "recompute": "full"},
    "several GPUs": {**RUN, "gpu": "H100-80GB-SXM,A100-80GB-SXM,MI300X", "num_gpus": "32,64"},
    "CUDA graphs": {**AWS, "cuda_graphs": "1"},
    "offload": {
        **TUNED, "task": "sft", "gpu": "A100-40GB-SXM", "sharding": "zero3",
        "offload_optimizer": "cpu",
    },
    "failures": {**AWS, "failures_per_node_day": "0.3", "checkpoint_s": "60", "num_gpus": "512"},
}  # fmt: skip

# How a text may write a number; the rest is dollars.
WRITTEN = {
    "expected_hours": (fmt.days,),
    "wall_clock_hours": (fmt.days,),
    "memory_bytes.total": (fmt.gib,),
}


@cache
def answered(name):
    """One answer for all media of a scenario."""
    if book := SCENARIOS[name].get("price_book"):
        save_book(read_book(csv_of(*BOOKS[book]), file_name="b.csv", name=book, today=TODAY))
    return shown(Scenario.parse(values(name)))


def values(name):
    given = dict(SCENARIOS[name])
    if given["model"].endswith(".json"):
        del given["model"]
        given |= custom_fields(read_config_file(CONFIGS / SCENARIOS[name]["model"]))
    return {key: str(value) for key, value in given.items()}


def writings(quantity, value):
    """Every way in which a text may write the value of the reference."""
    for prefix, formats in WRITTEN.items():
        if quantity.startswith(prefix):
            return {write(value) for write in formats}
    return {fmt.usd(value), fmt.usd(value, digits=3), fmt.usd_short(value)}


def is_same(quantity, value, reference):
    if isinstance(value, str):
        return reference is not None and value in writings(quantity, reference)
    if value is None or reference is None:
        return value is reference
    return math.isclose(value, reference, rel_tol=1e-9, abs_tol=1e-12)


def disagreements(name, medium):
    """What a medium shows otherwise than `plan --json`."""
    case = answered(name)
    return [
        f"{name}: {medium}: {quantity} is {value!r}, in plan --json {case.reference[quantity]!r}"
        for quantity, value in MEDIA[medium](case).items()
        if not is_same(quantity, value, case.reference[quantity])
    ]


@pytest.mark.parametrize("medium", MEDIA)
@pytest.mark.parametrize("name", SCENARIOS)
def test_medium_shows_the_values_of_the_plan(name, medium):
    assert not disagreements(name, medium)


def test_budget_is_held_against_what_is_paid():
    plan = answered("reservation").plan
    assert plan.term_usd > float(SCENARIOS["reservation"]["budget_usd"]) > plan.expected_usd
    assert not plan.meets_budget


def test_capacity_block_costs_whole_days():
    plan = answered("capacity block").plan
    days = math.ceil(plan.cost.hours.p90 / 24)  # the block that holds nine runs in ten
    assert plan.expected_usd >= days * 24 * plan.usd_per_hour * (1 - 1e-9)


@pytest.mark.parametrize("name", SCENARIOS)
def test_terms_of_the_cost_add_up(name):
    plan = answered(name).plan
    hours = math.fsum(float(h) for h in plan.cost.hour_terms.values())
    assert hours == pytest.approx(plan.expected_hours)
    if plan.expected_usd is not None:
        usd = math.fsum(float(term.mean) for term in plan.cost.terms.values())
        assert usd == pytest.approx(plan.expected_usd, abs=0.005)


@pytest.mark.parametrize("name", SCENARIOS)
def test_quantiles_are_in_order(name):
    reference = answered(name).reference
    for quantity in ("expected_usd", "paid_usd", "expected_hours"):
        p10, p50, p90 = (reference[f"{quantity}_{p}"] for p in ("p10", "p50", "p90"))
        assert p10 <= p50 <= p90
        assert p10 < reference[quantity] <= p90
